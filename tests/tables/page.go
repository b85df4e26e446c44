package tables

import (
	"fmt"
	"os"
	"strings"
)

// Replaced is a page with a text between two of its lines.
func Replaced(page, begin, end, text string) (string, error) {
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("the lines %q and %q are missing: put them where the results belong", begin, end)
	}
	return before + begin + "\n\n" + text + "\n" + end + after, nil
}

// Write puts a text between two lines of a page in a file.
func Write(path, begin, end, text string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the page to write into: %w", err)
	}
	page, err := Replaced(string(raw), begin, end, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}
