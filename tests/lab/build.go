package lab

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// recipe says how one binary of the lab is built.
type recipe struct {
	name    string // of the binary, and if module is empty of the module's folder beside this file
	module  string
	title   string
	first   string // how long the first build takes, for the reader's patience
	target  string
	ldflags string
	tests   bool // a package of tests, not a program
}

var recipes = []recipe{
	{
		name: "kube", title: "Kubernetes " + KubernetesVersion, first: "about 6 min", target: ".",
		// Without these the server calls itself v0.0.0.
		ldflags: "-s -w -X k8s.io/component-base/version.gitVersion=v" + KubernetesVersion +
			" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37",
	},
	{
		name: "operator", module: operatorFolder(), title: "the KubeRay operator " + KubeRay(), first: "about 2 min",
		target: KubeRayModule, ldflags: "-s -w",
	},
	{
		name: "certmanager", title: "cert-manager " + CertManagerVersion, first: "about 2 min",
		target: ".", ldflags: "-s -w",
	},
	{
		name: "kueue", title: "Kueue " + KueueVersion, first: "about 4 min",
		target: KueueModule + "/cmd/kueue", ldflags: "-s -w",
	},
	{
		name: "vpa-admission-controller", module: "vpa", title: "the VerticalPodAutoscaler " + VPAVersion, first: "about 2 min",
		target: VPAModule + "/pkg/admission-controller", ldflags: "-s -w",
	},
	{
		name: "vpa-updater", module: "vpa", title: "the VerticalPodAutoscaler " + VPAVersion, first: "about 2 min",
		target: VPAModule + "/pkg/updater", ldflags: "-s -w",
	},
	{
		name: "karpenter", title: "Karpenter " + KarpenterVersion, first: "about 5 min",
		target: KarpenterModule + "/kwok", ldflags: "-s -w",
	},
	{
		name: "gateway", title: "the lab's Gateways", first: "seconds",
		target: ".", ldflags: "-s -w",
	},
	{
		name: "helm", title: "Helm " + HelmVersion, first: "about 2 min",
		target: HelmModule + "/cmd/helm", ldflags: "-s -w",
	},
}

// build makes everything that the options need, before any directory is touched.
func (l *Lab) build(ctx context.Context) error {
	var err error
	if l.options.AdmissionOnly {
		l.state.Assets = os.Getenv("KUBEBUILDER_ASSETS")
	}
	if l.state.Assets == "" {
		if l.state.Kube, err = Build(ctx, "kube", l.options.Progress); err != nil {
			return err
		}
	}
	if l.state.KubeRayCRDs, err = crdFolder(ctx, KubeRayModule, "config/crd/bases"); err != nil {
		return err
	}
	if l.options.has(WithOperator) {
		if l.state.Operator, err = Build(ctx, "operator", l.options.Progress); err != nil {
			return err
		}
	}
	if l.options.has(WithCertManager) {
		if l.state.CertManager, err = Build(ctx, "certmanager", l.options.Progress); err != nil {
			return err
		}
		if l.state.CertManagerCRDs, err = crdFolder(ctx, CertManagerModule, "deploy/crds"); err != nil {
			return err
		}
	}
	if l.options.has(WithKueue) {
		if l.state.Kueue, err = Build(ctx, "kueue", l.options.Progress); err != nil {
			return err
		}
		if l.state.KueueManifests, err = kueueManifests(ctx); err != nil {
			return err
		}
	}
	if l.options.has(WithVPA) {
		if l.state.VPAAdmission, err = Build(ctx, vpaAdmission, l.options.Progress); err != nil {
			return err
		}
		if l.state.VPAUpdater, err = Build(ctx, VPAUpdater, l.options.Progress); err != nil {
			return err
		}
		if l.state.VPAManifests, err = vpaManifests(ctx); err != nil {
			return err
		}
	}
	if l.options.has(WithKarpenter) {
		if l.state.Karpenter, err = Build(ctx, "karpenter", l.options.Progress); err != nil {
			return err
		}
		// Its rights are in a chart.
		if l.state.Helm, err = Build(ctx, "helm", l.options.Progress); err != nil {
			return err
		}
		if l.state.KarpenterModule, err = Module(ctx, KarpenterModule); err != nil {
			return err
		}
	}
	if l.options.has(WithGateway) {
		if l.state.Gateway, err = Build(ctx, "gateway", l.options.Progress); err != nil {
			return err
		}
		if l.state.GatewayCRDs, err = crdFolder(ctx, GatewayAPIModule, "config/crd/standard"); err != nil {
			return err
		}
	}
	if l.options.Ray {
		python := rayPython
		switch {
		case l.options.Libraries:
			python = rayLibraries
		case l.options.Serve:
			python = rayServe
		}
		if l.state.RayBin, err = python.make(ctx, l.say); err != nil {
			return err
		}
	}
	if l.options.Redis {
		l.state.RedisBin, err = redisPython.make(ctx, l.say)
	}
	return err
}

// Binaries are the names that Build knows.
func Binaries() []string {
	names := make([]string, 0, len(recipes)+len(built))
	for _, r := range recipes {
		names = append(names, r.name)
	}
	for _, e := range built {
		names = append(names, e.name)
	}
	return names
}

// UsualBinaries are those that all tests but the longest need.
func UsualBinaries() []string {
	return slices.DeleteFunc(Binaries(), func(name string) bool { return name == rayLibraries.name })
}

// Build returns the path of one of the lab's binaries, building it if the cache
// has none for these sources and this Go version; for "ray" and "ray-libraries",
// the bin folder of the virtual environment with Ray.
func Build(ctx context.Context, name string, progress io.Writer) (string, error) {
	if folder, given := builtOperator(); given && name == operator {
		return filepath.Join(folder, "bin", "manager"), nil
	}
	for _, e := range built {
		if e.name == name {
			return e.make(ctx, newProgress(progress))
		}
	}
	for _, r := range recipes {
		if r.name == name {
			return r.build(ctx, newProgress(progress))
		}
	}
	return "", unknown(name)
}

// Missing says what Build would have to make for a name, and about how long that
// takes; it is empty if the cache has it.
func Missing(ctx context.Context, name string) (string, error) {
	for _, e := range built {
		if e.name == name {
			_, key, err := e.place(ctx)
			if err != nil || isThere(key, e.complete()) {
				return "", err
			}
			return e.title + ", " + e.first, nil
		}
	}
	for _, r := range recipes {
		if r.name == name {
			_, key, err := r.place(ctx)
			if err != nil || isThere(key, r.name) {
				return "", err
			}
			return r.title + ", " + r.first, nil
		}
	}
	return "", unknown(name)
}

func unknown(name string) error {
	return fmt.Errorf("nothing called %q is built here: use one of %s", name, strings.Join(Binaries(), ", "))
}

// place is the folder of a recipe's module, and the key of what is built of it.
func (r recipe) place(ctx context.Context) (dir, key string, err error) {
	if dir, err = goModule(cmp.Or(r.module, r.name)); err != nil {
		return "", "", err
	}
	version, err := goVersion(ctx)
	if err != nil {
		return "", "", err
	}
	key, err = cacheKey(dir, version, r.target, r.ldflags)
	return dir, key, err
}

func (r recipe) build(ctx context.Context, say *progress) (string, error) {
	dir, key, err := r.place(ctx)
	if err != nil {
		return "", err
	}
	return cached(ctx, say, key, r.name, func(path string) error {
		what := fmt.Sprintf("building %s (%s, %s the first time)", r.name, r.title, r.first)
		return say.during(what, func() error { return r.compile(ctx, say, dir, path) })
	})
}

// compile builds into path, and says which part of it there is already.
func (r recipe) compile(ctx context.Context, say *progress, dir, path string) error {
	verb, list := []string{"build"}, []string{"list", "-deps"}
	if r.tests {
		verb, list = []string{"test", "-c"}, append(list, "-test")
	}
	modules := 0
	packages, err := runGoAloud(ctx, dir, func(line string) bool {
		module, downloads := strings.CutPrefix(line, "go: downloading ")
		if downloads {
			modules++
			say.at("downloading, module %d is %s", modules, module)
		}
		return downloads
	}, append(list, r.target)...)
	if err != nil {
		return err
	}
	// Without -trimpath: what is compiled for tests, the standard library above all, is
	// then not compiled once more.
	all, compiled := bytes.Count(packages, []byte("\n")), 0
	_, err = runGoAloud(ctx, dir, func(line string) bool {
		// With -v a package that the build cache does not have is a line.
		if strings.ContainsAny(line, " #:") || line == "" {
			return false
		}
		compiled++
		say.at("%d of %d packages", compiled, all)
		return true
	}, append(verb, "-v", "-ldflags", r.ldflags, "-o", path, r.target)...)
	return err
}

// Module returns the folder of a Go module that the lab depends on, KubeRayModule,
// CertManagerModule, KueueModule, VPAModule, KarpenterModule or GatewayAPIModule, in the module cache: its CRDs, samples and charts.
func Module(ctx context.Context, module string) (string, error) {
	if folder, given := builtOperator(); given && module == KubeRayModule {
		return folder, nil
	}
	name := map[string]string{KubeRayModule: operatorFolder(), CertManagerModule: "certmanager", KueueModule: "kueue", VPAModule: "vpa", KarpenterModule: "karpenter", GatewayAPIModule: "operator"}[module]
	if name == "" {
		return "", fmt.Errorf("module %s is not one of the lab's: use KubeRayModule, CertManagerModule, KueueModule, VPAModule, KarpenterModule or GatewayAPIModule", module)
	}
	dir, err := goModule(name)
	if err != nil {
		return "", err
	}
	if _, err := goVersion(ctx); err != nil {
		return "", err
	}
	raw, err := runGo(ctx, dir, "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(raw, &found); err != nil || found.Dir == "" {
		return "", fmt.Errorf("go mod download of %s gives no folder: %s", module, raw)
	}
	return found.Dir, nil
}

func crdFolder(ctx context.Context, module, folder string) (string, error) {
	dir, err := Module(ctx, module)
	return filepath.Join(dir, filepath.FromSlash(folder)), err
}

func goModule(name string) (string, error) {
	root, err := sourceRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, name), nil
}

// sourceRoot is this folder in the checkout: nested modules cannot be embedded
// into a binary, so they are built from where they lie.
func sourceRoot() (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok {
		if dir := filepath.Dir(file); isSourceRoot(dir) {
			return dir, nil
		}
	}
	// Built with -trimpath: look from the working directory upwards.
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		for _, candidate := range []string{dir, filepath.Join(dir, "lab"), filepath.Join(dir, "tests", "lab")} {
			if isSourceRoot(candidate) {
				return candidate, nil
			}
		}
	}
	return "", errors.New("the lab's sources (tests/lab) are not found: run this inside the checkout")
}

func isSourceRoot(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "kube", "go.mod"))
	return err == nil
}
