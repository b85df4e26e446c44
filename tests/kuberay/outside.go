package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
)

// outside is the folder with what pods find of the internet. It is downloaded once,
// by this machine; without it, some tests are left out.
func (o *options) outside(ctx context.Context) string {
	folder := filepath.Join(o.folder, "outside")
	o.without = nil
	for _, a := range applications {
		if err := download(ctx, folder, a.named, cmp.Or(a.served, a.named)); err != nil {
			fmt.Fprintf(o.progress, "left out, because their application is not there (%v): %v\n", err, a.tests)
			o.without = append(o.without, a.tests...)
		}
	}
	return folder
}

// download puts a file of the internet into a folder, by the host and path of its name,
// unless it is there.
func download(ctx context.Context, folder, name, address string) error {
	named, err := url.Parse(name)
	if err != nil {
		return fmt.Errorf("read the address %s: %w", name, err)
	}
	target := filepath.Join(folder, named.Host, filepath.FromSlash(named.Path))
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("make a folder for %s: %w", address, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, answer.Status)
	}
	part := target + ".part"
	file, err := os.Create(part)
	if err != nil {
		return fmt.Errorf("keep %s: %w", address, err)
	}
	_, err = io.Copy(file, answer.Body)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("download %s: %w", address, err)
	}
	return os.Rename(part, target)
}
