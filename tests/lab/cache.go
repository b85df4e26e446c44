package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// keep is how long a cached build survives without being used.
const keep = 14 * 24 * time.Hour

// cacheRoot is where built binaries and the Ray environment are kept, outside
// the checkout so that all checkouts and worktrees share them.
func cacheRoot() (string, error) {
	base := os.Getenv("XDG_CACHE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the cache directory: set XDG_CACHE_HOME: %w", err)
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "rayfit", "lab"), nil
}

// cacheKey names a build by everything that goes into it: the sources of a
// module, its go.mod and go.sum, and what else the caller says (the Go version).
func cacheKey(dir string, also ...string) (string, error) {
	files, err := moduleFiles(dir)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, s := range also {
		fmt.Fprintf(hash, "%d %s\n", len(s), s)
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return "", fmt.Errorf("read %s for its build key: %w", file, err)
		}
		fmt.Fprintf(hash, "%s %d\n", filepath.ToSlash(file), len(content))
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// moduleFiles are the files of a module that decide what is built, sorted.
func moduleFiles(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		if strings.HasSuffix(name, ".go") || name == "go.mod" || name == "go.sum" {
			relative, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			files = append(files, relative)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the sources in %s: %w", dir, err)
	}
	slices.Sort(files)
	return files, nil
}

// cached returns <cache>/<key>/<name>, making it first if it is not there. Of
// several callers, in this process or others, one makes it and the rest wait.
// make writes to a path next to the final one, which is then renamed: what is
// in the cache is always complete.
func cached(ctx context.Context, say *progress, key, name string, make func(path string) error) (string, error) {
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	final := filepath.Join(root, key, name)
	if used(final) {
		return final, nil
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return "", fmt.Errorf("make the cache directory: %w", err)
	}
	unlock, err := lockFile(ctx, say, filepath.Join(root, key+".lock"), name)
	if err != nil {
		return "", err
	}
	defer unlock()
	if used(final) {
		return final, nil
	}
	partial := final + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return "", fmt.Errorf("remove an unfinished build of %s: %w", name, err)
	}
	if err := make(partial); err != nil {
		return "", errors.Join(err, os.RemoveAll(partial))
	}
	if err := os.Rename(partial, final); err != nil {
		return "", fmt.Errorf("keep the build of %s: %w", name, err)
	}
	prune(root, key, name)
	return final, nil
}

// isThere reports whether the cache has an entry.
func isThere(key, name string) bool {
	root, err := cacheRoot()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(root, key, name))
	return err == nil
}

// used reports whether an entry exists, and marks it as in use.
func used(path string) bool {
	if _, err := os.Stat(path); err != nil {
		return false
	}
	now := time.Now()
	_ = os.Chtimes(filepath.Dir(path), now, now)
	return true
}

// prune removes builds of the same thing that nobody used for a while. That is
// housekeeping: what cannot be removed stays.
func prune(root, key, name string) {
	siblings, _ := filepath.Glob(filepath.Join(root, "*", name))
	for _, sibling := range siblings {
		dir := filepath.Dir(sibling)
		info, err := os.Stat(dir)
		if err == nil && filepath.Base(dir) != key && time.Since(info.ModTime()) > keep {
			_ = os.RemoveAll(dir)
			_ = os.Remove(dir + ".lock")
		}
	}
}

// lockFile takes an exclusive lock that the kernel gives back if we die.
func lockFile(ctx context.Context, say *progress, path, what string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock of %s: %w", what, err)
	}
	take := func() error { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
	err = take()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = say.during("another process builds "+what+", waiting", func() error {
			return Eventually(ctx, time.Hour, "wait for the lock of "+what, take)
		})
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}

// textKey names something that is made of no files.
func textKey(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}
