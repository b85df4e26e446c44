package walk_test

import (
	"regexp"
	"strings"
	"testing"
)

// part is a piece of the page: text that is passed over, or one that asks for
// something.
type part struct {
	text     string
	file     string    // the name of the file that the text is
	until    string    // a command to wait for
	commands []command // of a block marked console, in place of its text
}

type command struct{ line, output string }

var directive = regexp.MustCompile(`^<!-- (file|until) (.+) -->$`)

// parse reads the page; render writes it again.
func parse(page string) []part {
	var parts []part
	var text strings.Builder
	flush := func(p part) {
		p.text = text.String()
		text.Reset()
		if p.text != "" || p.until != "" || p.commands != nil {
			parts = append(parts, p)
		}
	}
	file, inFile := "", false
	var console *part
	for line := range strings.Lines(page) {
		bare := strings.TrimSuffix(line, "\n")
		asked := directive.FindStringSubmatch(bare)
		switch {
		case console != nil && bare == "```":
			parts = append(parts, *console)
			console = nil
			text.WriteString(line)
		case console != nil && strings.HasPrefix(bare, "$ "):
			console.commands = append(console.commands, command{line: bare[2:]})
		case console != nil:
			last := &console.commands[len(console.commands)-1]
			last.output = strings.TrimPrefix(last.output+"\n"+bare, "\n")
		case bare == "```console":
			text.WriteString(line)
			flush(part{})
			console = &part{}
		case inFile && bare == "```":
			flush(part{file: file})
			file, inFile = "", false
			text.WriteString(line)
		case asked != nil && asked[1] == "until":
			text.WriteString(line)
			flush(part{until: asked[2]})
		case asked != nil:
			file = asked[2]
			text.WriteString(line)
		case file != "" && strings.HasPrefix(bare, "```"):
			text.WriteString(line)
			flush(part{})
			inFile = true
		default:
			text.WriteString(line)
		}
	}
	flush(part{})
	return parts
}

func render(parts []part) string {
	var page strings.Builder
	for _, p := range parts {
		page.WriteString(p.text)
		for _, c := range p.commands {
			page.WriteString("$ " + c.line + "\n")
			if c.output != "" {
				page.WriteString(c.output + "\n")
			}
		}
	}
	return page.String()
}

// translated is a translation of the page with the commands of these parts, and
// what they print, block by block.
func translated(page string, parts []part) string {
	var blocks [][]command
	for _, p := range parts {
		if p.commands != nil {
			blocks = append(blocks, p.commands)
		}
	}
	theirs := parse(page)
	for i := range theirs {
		if theirs[i].commands != nil && len(blocks) > 0 {
			theirs[i].commands, blocks = blocks[0], blocks[1:]
		}
	}
	return render(theirs)
}

// changing is what is different each time: how old something is, names that are
// made up, days.
var changing = regexp.MustCompile(`\b(\d+[smh])+\b|\b\d{4}-\d\d-\d\d\b|-[0-9a-f]{8,10}-[0-9a-z]{5}\b`)

// masked is an output without what changes, and without the width of columns
// that goes by it.
func masked(output string) string {
	return regexp.MustCompile(` {2,}`).ReplaceAllString(changing.ReplaceAllString(output, "…"), "  ")
}

func TestThePageIsReadAndWrittenWithoutLoss(t *testing.T) {
	const page = "# A\n\n<!-- file a.yaml -->\n```yaml\na: 1\n```\n\n<!-- until true -->\n```console\n$ echo 1\n1\n$ true\n$ printf '2\\n\\n3'\n2\n\n3\n```\nend\n"
	parts := parse(page)
	if got := render(parts); got != page {
		t.Errorf("it becomes:\n%s", got)
	}
	var files, waits, commands []string
	for _, p := range parts {
		if p.file != "" {
			files = append(files, p.file+": "+p.text)
		}
		if p.until != "" {
			waits = append(waits, p.until)
		}
		for _, c := range p.commands {
			commands = append(commands, c.line+" -> "+c.output)
		}
	}
	if strings.Join(files, "|") != "a.yaml: a: 1\n" || strings.Join(waits, "|") != "true" ||
		strings.Join(commands, "|") != "echo 1 -> 1|true -> |printf '2\\n\\n3' -> 2\n\n3" {
		t.Errorf("files %q, waits %q, commands %q", files, waits, commands)
	}
}

func TestATranslationShowsWhatThePageShows(t *testing.T) {
	parts := parse("# A\n\n<!-- until true -->\n```console\n$ echo 1\n1\n```\nb\n```console\n$ true\n```\n")
	got := translated("# 甲\n\n```console\n$ echo 1\n0\n```\n乙\n```console\n$ true\n```\n", parts)
	if want := "# 甲\n\n```console\n$ echo 1\n1\n```\n乙\n```console\n$ true\n```\n"; got != want {
		t.Errorf("it becomes:\n%s", got)
	}
}
