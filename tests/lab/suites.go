package lab

import (
	"context"
	"io"
	"path/filepath"
)

// suites is where the KubeRay operator's module has its end-to-end tests.
const suites = "test"

// Suite returns one of the KubeRay operator's own end-to-end suites (e2eautoscaler
// and so on) as a program of Go's testing package, built of the sources of
// KubeRayModule as they are, and the folder that it has to run in.
func Suite(ctx context.Context, name string, progress io.Writer) (binary, folder string, err error) {
	module, err := Module(ctx, KubeRayModule)
	if err != nil {
		return "", "", err
	}
	r := recipe{
		name: name, module: operator, title: "KubeRay's tests " + KubeRayVersion, first: "about 1 min",
		target: KubeRayModule + "/" + suites + "/" + name, tests: true,
	}
	binary, err = r.build(ctx, newProgress(progress))
	return binary, filepath.Join(module, suites, name), err
}
