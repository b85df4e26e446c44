package policy_test

import (
	"fmt"
	"maps"
	"net/http"
	"testing"

	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

// stock is one object for each mode that rules have by themselves, and a good one.
func stock(namespace, prefix string) []rig.Object {
	return []rig.Object{
		faulty(namespace, prefix+"bad"),
		rig.RayCluster(namespace, prefix+"risky").Remove("spec.workerGroupSpecs[0].maxReplicas"),
		rig.RayCluster(namespace, prefix+"noted").Remove("spec.headGroupSpec.rayStartParams.num-cpus"),
		rig.RayCluster(namespace, prefix+"good"),
	}
}

// made is what the webhook counts if a stock is made anew. What is stored of it
// is taken away again.
func made(t *testing.T, namespace string) counts {
	t.Helper()
	before := inMetrics(t)
	for _, object := range stock(namespace, "new-") {
		_, denied, err := create(object, "")
		if err != nil {
			t.Fatal(err)
		}
		if !denied {
			if _, err := shared.Lab.Request(t.Context(), http.MethodDelete, collection(object)+"/"+object.Name(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	return inMetrics(t).since(before)
}

func TestTheLadderGoesUpAndDownAndAllCountTheSame(t *testing.T) {
	ns := namespace(t, "ladder")
	policy(t, "ladder", "{mode: Audit}")
	labtest.Eventually(t, patience, "wait until the policy is in force", func() error { return is(comesTo(faulty(ns, "probe")), "silent") })
	for _, object := range stock(ns, "") {
		store(t, object)
	}

	audit := counts{"RF201 audited": 1, "RF213 audited": 1, "RF214 audited": 1}
	warn := counts{"RF201 warned": 1, "RF213 warned": 1, "RF214 audited": 1}
	enforce := counts{"RF201 denied": 1, "RF213 warned": 1, "RF214 audited": 1}
	for _, step := range []struct {
		mode, answer      string
		wanted            counts
		denied, wouldDeny int
	}{
		{"Audit", "silent", audit, 0, 1},
		{"Warn", "warned", warn, 0, 1},
		{"Enforce", "denied", enforce, 1, 0},
		{"Warn", "warned", warn, 0, 1},
		{"Audit", "silent", audit, 0, 1},
	} {
		ahead := inRollout(t, "--policy", write(t, manifest("ladder", "{mode: "+step.mode+"}")))
		change(t, "ladder", fmt.Sprintf(`{"mode":%q}`, step.mode))
		labtest.Eventually(t, patience, "wait until "+step.mode+" is in force", func() error { return is(comesTo(faulty(ns, "probe")), step.answer) })

		made(t, ns).are(t, "the webhook", step.wanted)
		labtest.Eventually(t, patience, "wait until the audit counts so in mode "+step.mode, func() error {
			status := inStatus(t, "ladder")
			if !maps.Equal(added(status.Rules), step.wanted) || status.Denied != step.denied || status.WouldDeny != step.wouldDeny || status.Objects != 4 {
				return fmt.Errorf("it counts %+v", status)
			}
			return nil
		})
		exported(t).are(t, "the audit's metrics", step.wanted)
		checked, denied := inCheck(t, ns, "ladder")
		checked.are(t, "check", step.wanted)
		for who, found := range map[string]auditCounts{"rollout": inRollout(t), "rollout ahead": ahead} {
			added(found.Rules).are(t, who, step.wanted)
			if found.Denied != step.denied || found.WouldDeny != step.wouldDeny || denied != step.denied {
				t.Errorf("%s in mode %s: %d denied, %d more; check: %d denied", who, step.mode, found.Denied, found.WouldDeny, denied)
			}
		}
	}
}

// exported is what the audit tells Prometheus.
func exported(t *testing.T) counts {
	t.Helper()
	found := counts{}
	for name, value := range metrics(t) {
		if match := gauge.FindStringSubmatch(name); match != nil && value > 0 && match[2] != "would_deny" && match[2] != "exempt" {
			found[match[1]+" "+match[2]] = int(value)
		}
	}
	return found
}
