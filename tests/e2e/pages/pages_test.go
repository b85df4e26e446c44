package pages

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"rayfit.dev/rayfit/tests/rig"
)

//go:embed look.js
var look string

//go:embed rollout.js
var rollout string

const (
	root  = "../../../"
	trace = root + "examples/trace.jsonl"
	good  = root + "examples/good.yaml"
)

// hostile is what a tenant may call a trace to run a script in the reader's browser.
const hostile = `<img src=https://tenant.example/x onerror=document.title='taken'>`

// window is a size and a colour scheme in which people read pages.
type window struct {
	name          string
	width, height int64
	scheme        string
}

var windows = []window{
	{"a desk", 1280, 900, "light"},
	{"a desk at night", 1280, 900, "dark"},
	{"a phone", 390, 844, "light"},
	{"a small phone", 360, 640, "light"},
	{"a wide desk", 1920, 1080, "light"},
}

// TestPages opens each kind of page in each window: it loads nothing, runs
// nothing, all that is drawn has its place and words, and every text can be read.
func TestPages(t *testing.T) {
	browser := start(t)
	pages := map[string][]string{
		"simulate":           {"simulate", trace, "--cluster=" + good, "--vary=idleTimeoutSeconds=10,60,300", "-o=html"},
		"simulate one":       {"simulate", trace, "--cluster=" + good, "--strategy=rayfit", "-o=html"},
		"simulate parts":     partsArguments(t),
		"simulate a hostile": {"simulate", hostileTrace(t), "--cluster=" + good, "-o=html"},
		"rollout":            rolloutArguments(t),
	}
	for name, args := range pages {
		path := page(t, args)
		for _, in := range windows {
			t.Run(name+"/"+in.name, func(t *testing.T) {
				seen := open(t, browser, path, in)
				for _, complaint := range seen.complaints {
					t.Error(complaint)
				}
				for _, url := range seen.requests {
					if url != "file://"+path {
						t.Errorf("the page asks for %s", url)
					}
				}
				for _, image := range seen.images {
					if image == "" {
						t.Error("a drawing has no name for who cannot see it")
					}
				}
				if strings.HasPrefix(name, "simulate") && len(seen.images) == 0 {
					t.Error("the page draws nothing")
				}
				if strings.HasPrefix(name, "rollout") && strings.Contains(seen.title, "taken") {
					t.Error("a name has run as a script")
				}
				if name == "simulate a hostile" && !strings.Contains(seen.title, hostile) {
					t.Errorf("the title is %q, without the trace's name", seen.title)
				}
			})
		}
	}
}

// TestRollout uses the page of a rollout as a person does: it searches, follows
// links, and prints.
func TestRollout(t *testing.T) {
	browser := start(t)
	ctx, end := chromedp.NewContext(browser)
	defer end()
	err := chromedp.Do(ctx, chromedp.Navigate("file://"+page(t, rolloutArguments(t))))
	complaints, err1 := chromedp.Run(ctx, chromedp.Evaluate[[]string](rollout, chromedp.EvalAwaitPromise))
	if err := errors.Join(err, err1); err != nil {
		t.Fatal(err)
	}
	for _, complaint := range complaints {
		t.Error(complaint)
	}
}

// TestComplaints opens a page with all that is complained about.
func TestComplaints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.html")
	bad := `<html><body style="width:3000px"><p style="color:#999;background:#aaa">faint</p><table><tr><td>1</table>
<svg width=200 height=50><text x=10 y=20>one</text><text x=12 y=22>two</text><circle cx=500 cy=10 r=5 /></svg>
<img src=https://tenant.example/x><script>throw new Error("broken")</script>`
	if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := open(t, start(t), path, windows[0])
	all := strings.Join(seen.complaints, "\n") + strings.Join(seen.requests, "\n")
	for _, want := range []string{
		"no language", "no title", "not one main heading", "wide in a window of 1280", "without words", "stands out", "lie on one another",
		"without headings", "contrast of 1.2", "broken", "https://tenant.example/x",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("nobody complains of %q:\n%s", want, all)
		}
	}
}

// sight is what was seen of a page.
type sight struct {
	title      string
	complaints []string
	requests   []string
	// images are the names of what is drawn, as a screen reader says them.
	images []string
}

// start starts the browser, which ends with the test.
func start(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.Command(root + "scripts/chromium.sh").Output()
	if err != nil {
		t.Fatalf("scripts/chromium.sh finds no browser: %v", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(strings.TrimSpace(string(path))))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which Chromium demands of root
	}
	allocator, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	return ctx
}

// page is a file with what the binary prints.
func page(t *testing.T, args []string) string {
	t.Helper()
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command(binary, args...).Output()
	if len(text) == 0 { // rollout ends with an exit code of its own where somebody would be denied
		t.Fatalf("rayfit %s prints nothing: %v", strings.Join(args, " "), err)
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// partsArguments are of a simulation with two worker groups, of which one has
// GPUs, on two node pools, with jobs that ask for GPUs and memory.
func partsArguments(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	_, worker, is := strings.Cut(string(text), "  workerGroupSpecs:\n")
	if !is {
		t.Fatalf("%s has no worker groups", good)
	}
	gpu := strings.NewReplacer("groupName: cpu", "groupName: gpu", "minReplicas: 1", "minReplicas: 0",
		"limits: {", "limits: {nvidia.com/gpu: 1, ").Replace(worker)
	const jobs = `{"apiVersion":"rayfit.dev/v1alpha1","kind":"Trace","name":"two groups"}
{"task":"load","at":10,"seconds":60,"resources":{"CPU":1,"memory":1073741824},"count":40}
{"task":"train","at":60,"seconds":180,"resources":{"CPU":1,"GPU":1},"count":5}
{"task":"evaluate","at":400,"seconds":30,"resources":{"CPU":2},"count":30}
`
	const pools = `- {name: cpu-nodes, cpu: 16, memory: 64Gi, max: 6, min: 1}
- {name: gpu-nodes, cpu: 8, memory: 64Gi, gpus: 1, max: 4, idleSeconds: 120}
`
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return []string{
		"simulate", file("trace.jsonl", jobs), "--cluster=" + file("cluster.yaml", string(text)+gpu),
		"--nodes=" + file("pools.yaml", pools), "-o=html",
	}
}

// rolloutArguments are of a rollout over the bad example, a copy of it whose
// names are hostile, and a cluster of which only an earlier report knows.
func rolloutArguments(t *testing.T) []string {
	t.Helper()
	bad, err := os.ReadFile(root + "examples/bad.yaml")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	names := strings.NewReplacer("name: notebook", fmt.Sprintf("name: %q", hostile), "namespace: research", fmt.Sprintf("namespace: %q", hostile))
	hostileObject := names.Replace(string(bad))
	if strings.Count(hostileObject, "onerror") != 2 {
		t.Fatal("examples/bad.yaml has no name and namespace to be replaced")
	}
	const earlier = `{"at": "2026-01-02T00:00:00Z", "findings": [{"kind": "RayCluster", "namespace": "gone", "name": "old", "findings": [{"rule": "RF105"}]}]}`
	return []string{
		"rollout", root + "examples/bad.yaml", good, file("hostile.yaml", hostileObject), "--earlier=" + file("earlier.json", earlier), "-o=html",
	}
}

func hostileTrace(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	const name = `"two bursts and a gang"`
	if !strings.Contains(string(text), name) {
		t.Fatalf("%s has no name %s to be replaced", trace, name)
	}
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), name, fmt.Sprintf("%q", hostile), 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// open opens a page in a window of its own, and looks at it.
func open(t *testing.T, browser context.Context, path string, in window) sight {
	t.Helper()
	ctx, end := chromedp.NewContext(browser)
	defer end()
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a window: %v", err)
	}
	var mu sync.Mutex
	var seen sight
	err := errors.Join(
		chromedp.Listen(ctx, func(event any) {
			mu.Lock()
			defer mu.Unlock()
			seen.note(event)
		}),
		called(ctx, network.Enable, network.EnableParams{}),
		called(ctx, cdplog.Enable, cdp.Empty{}),
		called(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: in.scheme}},
		}),
		chromedp.Do(ctx, chromedp.EmulateViewport(in.width, in.height), chromedp.Navigate("file://"+path)),
	)
	title, err1 := chromedp.Run(ctx, chromedp.Title())
	complaints, err2 := chromedp.Run(ctx, chromedp.Evaluate[[]string](look))
	tree, err3 := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	picture, err4 := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err := errors.Join(err, err1, err2, err3, err4); err != nil {
		t.Fatalf("look at the page: %v", err)
	}
	keep(t, picture)
	mu.Lock()
	defer mu.Unlock()
	seen.title, seen.complaints = title, append(seen.complaints, complaints...)
	for _, node := range tree.Nodes {
		if node.Role != nil && string(node.Role.Value) == `"image"` && !node.Ignored {
			name := ""
			if node.Name != nil {
				name = strings.Trim(string(node.Name.Value), `"`)
			}
			seen.images = append(seen.images, name)
		}
	}
	return seen
}

func called[P, R any](ctx context.Context, command cdp.Command[P, R], params P) error {
	_, err := chromedp.Call(ctx, command, params)
	return err
}

func (s *sight) note(event any) {
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		s.requests = append(s.requests, event.Request.URL)
	case *runtime.EventExceptionThrown:
		details := event.ExceptionDetails
		s.complaints = append(s.complaints, "a script fails: "+details.Text)
		if details.Exception != nil {
			s.complaints = append(s.complaints, details.Exception.Description)
		}
	case *cdplog.EventEntryAdded:
		s.complaints = append(s.complaints, "the browser says: "+event.Entry.Text)
	}
}

// keep keeps a picture of the page, if $RAYFIT_KEEP_LOGS names a folder.
func keep(t *testing.T, picture []byte) {
	t.Helper()
	folder := os.Getenv("RAYFIT_KEEP_LOGS")
	if folder == "" {
		return
	}
	path := filepath.Join(folder, strings.ReplaceAll(t.Name(), "/", "-")+".png")
	if err := os.WriteFile(path, picture, 0o600); err != nil {
		t.Log(err)
	}
}
