package lab

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// module writes a small Go module and returns its folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func key(t *testing.T, dir string, also ...string) string {
	t.Helper()
	k, err := cacheKey(dir, also...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestCacheKeyFollowsWhatIsBuilt(t *testing.T) {
	base := map[string]string{"go.mod": "module x\n", "go.sum": "", "main.go": "package main\n", "sub/a.go": "package sub\n"}
	with := func(name, content string) string {
		files := map[string]string{}
		for n, c := range base {
			files[n] = c
		}
		files[name] = content
		return key(t, module(t, files), "go1.26.0")
	}
	same := key(t, module(t, base), "go1.26.0")
	if again := key(t, module(t, base), "go1.26.0"); again != same {
		t.Errorf("the key depends on where the module lies: %s, %s", same, again)
	}
	for _, name := range []string{"main.go", "go.mod", "go.sum", "sub/a.go", "new.go"} {
		if with(name, "changed\n") == same {
			t.Errorf("a change of %s keeps the key", name)
		}
	}
	for _, name := range []string{"README.md", "main_test.go"} {
		if with(name, "changed\n") != same {
			t.Errorf("a change of %s changes the key, although it is not built", name)
		}
	}
	if key(t, module(t, base), "go1.27.0") == same {
		t.Error("another Go version keeps the key")
	}
}

func TestCachedBuildsOnce(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var builds atomic.Int32
	build := func(path string) error {
		builds.Add(1)
		time.Sleep(20 * time.Millisecond) // long enough for the others to find the lock taken
		return os.WriteFile(path, []byte("binary"), 0o755)
	}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			path, err := cached(context.Background(), newProgress(nil), "key", "thing", build)
			if err != nil {
				t.Error(err)
			} else if content, err := os.ReadFile(path); err != nil || string(content) != "binary" {
				t.Errorf("cache holds %q, %v", content, err)
			}
		})
	}
	callers.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times, want once", n)
	}
}

func TestCachedKeepsNothingOfAFailure(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	fail := func(path string) error {
		if err := os.WriteFile(path, []byte("half"), 0o755); err != nil {
			return err
		}
		return os.ErrDeadlineExceeded
	}
	if path, err := cached(context.Background(), newProgress(nil), "key", "thing", fail); err == nil {
		t.Fatalf("a failed build gives %s", path)
	}
	good := func(path string) error { return os.WriteFile(path, []byte("whole"), 0o755) }
	path, err := cached(context.Background(), newProgress(nil), "key", "thing", good)
	if err != nil {
		t.Fatal(err)
	}
	if content, _ := os.ReadFile(path); string(content) != "whole" {
		t.Errorf("the cache holds %q", content)
	}
}

func TestNewEnough(t *testing.T) {
	for version, want := range map[string]bool{
		"go1.26.0": true, "go1.26": true, "go1.27rc1": true, "devel go1.28-abc": true,
		"go1.25.9": false, "go1.9": false, "gibberish": false,
	} {
		if got := newEnough(version); got != want {
			t.Errorf("newEnough(%q) = %v, want %v", version, got, want)
		}
	}
}

// The constants are what the documentation says; the go.mod files are what is built.
func TestVersionsAgree(t *testing.T) {
	for line, folder := range map[string]string{
		"k8s.io/kubernetes v" + KubernetesVersion:     "kube",
		KubeRayModule + " v" + KubeRayVersion:         "operator",
		KubeRayModule + " v" + OlderKubeRayVersion:    "operator-" + OlderKubeRayVersion,
		GatewayAPIModule + " v" + GatewayAPIVersion:   "operator",
		CertManagerModule + " v" + CertManagerVersion: "certmanager",
		KueueModule + " v" + KueueVersion:             "kueue",
		VPAModule + " v" + VPAVersion:                 "vpa",
		KarpenterModule + " v" + KarpenterVersion:     "karpenter",
		HelmModule + " v" + HelmVersion:               "helm",
	} {
		content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), line) {
			t.Errorf("%s/go.mod does not require %s", folder, line)
		}
	}
}
