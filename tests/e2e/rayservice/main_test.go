// Package rayservice_test shows that a RayService that serves all the time is scaled and
// upgraded by Rayfit, KubeRay's operator and a Gateway together: real KubeRay, Kubernetes
// and Ray Serve; the Gateway is the lab's.
package rayservice_test

import (
	"testing"
	"time"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
	"rayfit.dev/rayfit/tests/scaling/scalingtest"
)

// patience is how long anything may take on a busy machine.
const patience = 10 * time.Minute

// scene is a RayService with all that is observed around it.
type scene struct {
	*scaling.World
	name string
}

// start starts a lab in which RayServices are upgraded through Gateways, and what scales
// clusters of the mode.
func start(t *testing.T, mode scaling.Mode) scene {
	t.Helper()
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	w := scalingtest.Observe(t, labtest.Start(t, lab.Options{
		Nodes: 1, Cores: 16, Memory: "64Gi", PodNetwork: true, Ray: true, Serve: true, RayfitBinary: binary,
		With:  []string{lab.WithOperator, lab.WithGateway},
		Audit: lab.AuditMetadata,
		// The operator's probes start a process each time and give up after two seconds;
		// the workers below have another one.
		OperatorEnv:  []string{"ENABLE_PROBES_INJECTION=false"},
		OperatorArgs: []string{"--feature-gates=RayServiceIncrementalUpgrade=true"},
	}))
	if mode == scaling.Central {
		scalingtest.Control(t, w.Lab, "")
	}
	return scene{w, "answers"}
}

// gateway is where the RayService's Gateway answers, once it knows the way.
func (s scene) gateway(t *testing.T) string {
	t.Helper()
	for _, wait := range [][]string{
		{"--for=condition=Programmed", "gateway/" + s.name + "-gateway"},
		{`--for=jsonpath={.status.parents[0].conditions[?(@.type=="ResolvedRefs")].status}=True`, "httproute/" + s.name + "-httproute"},
	} {
		s.kubectl(t, append([]string{"wait", "--timeout=" + patience.String()}, wait...)...)
	}
	return "http://" + s.kubectl(t, "get", "gateway", s.name+"-gateway", "-o", "jsonpath={.status.addresses[0].value}") + "/"
}

func (s scene) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return labtest.Kubectl(t, s.Lab, append(args, "-n", s.Namespace)...)
}

func (s scene) until(t *testing.T, what string, condition func() error) {
	t.Helper()
	if err := s.UntilWithin(t.Context(), patience, what, condition); err != nil {
		t.Fatal(err)
	}
}
