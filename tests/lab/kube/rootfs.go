package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// rootfs is a container's root in the making: the host's files, read-only, with
// the container's mounts on top. Where a mount point does not exist on the host
// it is not made there; instead the directory above it becomes a private one
// that shows the host's entries.
type rootfs struct{ dir string }

// writable are the host's directories that stay as they are: devices, shared
// memory and the kernel's own.
var writable = []string{"/dev", "/proc", "/sys"}

// buildRoot makes dir the root of this mount namespace.
func buildRoot(dir string, mounts []bindMount) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	// Sources are opened first: a mount may hide another's source.
	sources := make([]string, len(mounts))
	for i, m := range mounts {
		fd, err := unix.Open(m.Source, unix.O_PATH, 0)
		if err != nil {
			return fmt.Errorf("open volume %s for %s: %w", m.Source, m.Target, err)
		}
		sources[i] = fmt.Sprintf("/proc/self/fd/%d", fd)
	}
	root := rootfs{dir}
	if err := root.mirror("/"); err != nil {
		return err
	}
	for _, i := range byDepth(mounts) {
		if err := root.bind(sources[i], mounts[i]); err != nil {
			return fmt.Errorf("mount %s at %s: %w", mounts[i].Source, mounts[i].Target, err)
		}
	}
	return root.enter()
}

// byDepth orders mounts so that one inside another comes after it.
func byDepth(mounts []bindMount) []int {
	order := make([]int, len(mounts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return strings.Count(filepath.Clean(mounts[a].Target), "/") - strings.Count(filepath.Clean(mounts[b].Target), "/")
	})
	return order
}

func (r rootfs) at(path string) string { return filepath.Join(r.dir, path) }

// mirror makes a private directory in the root that shows the host directory's
// entries, each bound read-only.
func (r rootfs) mirror(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("list %s: %w", path, err)
	}
	if err := unix.Mount("tmpfs", r.at(path), "tmpfs", unix.MS_NOSUID, "mode=0755"); err != nil {
		return fmt.Errorf("mount a private %s: %w", path, err)
	}
	for _, entry := range entries {
		if err := r.mirrorEntry(filepath.Join(path, entry.Name()), entry); err != nil {
			return err
		}
	}
	return nil
}

func (r rootfs) mirrorEntry(path string, entry fs.DirEntry) error {
	if entry.Type()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err != nil {
			return fmt.Errorf("read the link %s: %w", path, err)
		}
		return os.Symlink(target, r.at(path))
	}
	if err := makePoint(r.at(path), entry.IsDir()); err != nil {
		return err
	}
	err := unix.Mount(path, r.at(path), "", unix.MS_BIND|unix.MS_REC, "")
	if errors.Is(err, unix.ENOENT) {
		return nil // gone since it was listed
	}
	if err != nil {
		return fmt.Errorf("show %s: %w", path, err)
	}
	if slices.Contains(writable, path) {
		return nil
	}
	return readOnly(r.at(path), unix.AT_RECURSIVE)
}

func makePoint(path string, dir bool) error {
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	file, err := os.OpenFile(path, os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("make a mount point: %w", err)
	}
	return file.Close()
}

func readOnly(path string, flags uint) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		return fmt.Errorf("make %s read-only (this needs Linux 5.12): %w", path, err)
	}
	return nil
}

// bind mounts one of the container's volumes.
func (r rootfs) bind(source string, m bindMount) error {
	info, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("look at the volume: %w", err)
	}
	point, err := r.point(filepath.Clean(m.Target), info.IsDir())
	if err != nil {
		return err
	}
	if err := unix.Mount(source, point, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if m.ReadOnly {
		return readOnly(point, 0)
	}
	return nil
}

// point finds or makes the place in the root for a mount at target.
func (r rootfs) point(target string, dir bool) (string, error) {
	existing, missing := target, ""
	for {
		resolved, err := r.resolve(existing)
		if err == nil {
			existing = resolved
			break
		}
		missing = filepath.Join(filepath.Base(existing), missing)
		existing = filepath.Dir(existing)
	}
	if missing == "" {
		return r.at(existing), nil
	}
	point := filepath.Join(r.at(existing), missing)
	if unix.Access(r.at(existing), unix.W_OK) != nil {
		if err := r.mirror(existing); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(filepath.Dir(point), 0o755); err != nil {
		return "", fmt.Errorf("make the way to %s: %w", target, err)
	}
	return point, makePoint(point, dir)
}

// resolve follows the symbolic links of a path that exists in the root. Links
// outside of the container's own mounts are the host's and lead to the same
// path in the root.
func (r rootfs) resolve(path string) (string, error) {
	if _, err := os.Lstat(r.at(path)); err == nil {
		if real, err := filepath.EvalSymlinks(r.at(path)); err == nil && strings.HasPrefix(real, r.dir) {
			return "/" + strings.TrimPrefix(strings.TrimPrefix(real, r.dir), "/"), nil
		}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(r.at(real)); err != nil {
		return "", err
	}
	return real, nil
}

// enter makes the finished tree the root and drops the host's.
func (r rootfs) enter() error {
	if err := unix.Mount("proc", r.at("/proc"), "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc for the container's processes: %w", err)
	}
	if err := os.Chdir(r.dir); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	// Old and new root on the same place: the old one is on top and goes away.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("drop the host's root: %w", err)
	}
	return nil
}
