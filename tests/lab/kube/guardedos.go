package main

import (
	"os"
	"path/filepath"
	"strings"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
)

// hostFiles answers what the kubelet asks about a path of which a container mounts a
// part (subPath). kubemark's own knows no file.
type hostFiles struct{ *hostutil.FakeHostUtil }

func (hostFiles) PathExists(path string) (bool, error) {
	_, err := os.Stat(path)
	if os.IsNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

func (hostFiles) GetMode(path string) (os.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Mode(), nil
}

// guardedOS is the kubelet's view of the file system: real below root, and
// without effect outside of it, where the kubelet would make its well-known
// directories and symbolic links.
type guardedOS struct {
	kubecontainer.RealOS
	root string
}

func (g guardedOS) inside(path string) bool {
	return strings.HasPrefix(filepath.Clean(path), g.root+string(filepath.Separator))
}

func (g guardedOS) MkdirAll(path string, mode os.FileMode) error {
	if !g.inside(path) {
		return nil
	}
	return g.RealOS.MkdirAll(path, mode)
}

func (g guardedOS) Symlink(oldName, newName string) error {
	if !g.inside(newName) {
		return nil
	}
	return g.RealOS.Symlink(oldName, newName)
}

func (g guardedOS) Remove(path string) error {
	if !g.inside(path) {
		return nil
	}
	return g.RealOS.Remove(path)
}

func (g guardedOS) RemoveAll(path string) error {
	if !g.inside(path) {
		return nil
	}
	return g.RealOS.RemoveAll(path)
}
