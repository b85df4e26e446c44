package agrees_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"rayfit.dev/rayfit/tests/faulty"
	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

type step = func(context.Context) error

// fault is what a script's fault does in the lab when it begins, and when it ends.
func (p *play) fault(f fault) (begin, end step) {
	switch f.Kind {
	case "maxReplicas":
		usual := p.script.groups[f.Group].Max
		return p.edit(f.Group, "maxReplicas", f.Max), p.edit(f.Group, "maxReplicas", usual)
	case "minReplicas":
		usual := p.script.groups[f.Group].Min
		return p.edit(f.Group, "minReplicas", f.Min), p.edit(f.Group, "minReplicas", usual)
	case "replicasReset":
		return p.edit(f.Group, "replicas", f.Replicas), nil
	case "podDeleted":
		return p.onPod(f.Pick, "delete", "pod", "%s", "--wait=false"), nil
	case "podFails":
		return p.onPod(f.Pick, "exec", "%s", "-c", "ray-worker", "--", "pkill", "-KILL", "raylet"), nil
	case "resourcesRequested":
		ask := fmt.Sprintf(`request_resources(bundles=[{"CPU": %v}] * %d)`, f.CPU, f.Bundles)
		return func(ctx context.Context) error { return p.drive(ctx, ask) },
			func(ctx context.Context) error { return p.drive(ctx, "request_resources(bundles=[])") }
	case "headLost":
		return p.loseHead, nil
	case "nodeDrained":
		return p.drainNode, p.uncordonNodes
	case "nodesFilled":
		return p.fill, p.empty
	case "callsRefused":
		return p.refuse(f)
	}
	unknown := func(context.Context) error { return fmt.Errorf("the lab has no fault %q", f.Kind) }
	return unknown, nil
}

// edit sets a field of a group.
func (p *play) edit(group int, field string, value int) step {
	patch := fmt.Sprintf(`[{"op":"add","path":"/spec/workerGroupSpecs/%d/%s","value":%d}]`, group, field, value)
	return func(context.Context) error {
		return p.kubectl("patch", "raycluster", p.c.Name, "--type=json", "--patch="+patch)
	}
}

// onPod runs kubectl with the name of a worker for %s.
func (p *play) onPod(pick int, args ...string) step {
	return func(context.Context) error {
		workers := p.Workers(p.c, "")
		if len(workers) == 0 {
			return fmt.Errorf("no worker to %s", args[0])
		}
		filled := append([]string{}, args...)
		for i := range filled {
			filled[i] = strings.Replace(filled[i], "%s", workers[pick%len(workers)].Name(), 1)
		}
		return p.kubectl(filled...)
	}
}

func (p *play) kubectl(args ...string) error {
	_, _, err := p.Lab.Kubectl(append([]string{args[0], "-n", p.Namespace}, args[1:]...)...)
	return err
}

// answers are the statuses of the API server that scripts know.
var answers = map[string]struct {
	status int
	reason string
}{
	"conflict":        {http.StatusConflict, "Conflict"},
	"invalid":         {http.StatusUnprocessableEntity, "Invalid"},
	"quotaExceeded":   {http.StatusForbidden, "Forbidden"},
	"tooManyRequests": {http.StatusTooManyRequests, "TooManyRequests"},
	"internalError":   {http.StatusInternalServerError, "InternalError"},
	"unavailable":     {http.StatusServiceUnavailable, "ServiceUnavailable"},
}

// refuse has the API server answer all calls of a kind about this cluster so.
func (p *play) refuse(f fault) (begin, end step) {
	namespace := "/namespaces/" + p.Namespace
	paths := map[string]string{
		"patchCluster": namespace + "/rayclusters/" + p.c.Name + "$",
		"notePod":      namespace + "/pods/" + p.c.Name + "-[^/]*$",
		"resizePod":    namespace + "/pods/" + p.c.Name + "-[^/]*/resize$",
	}
	answer, path := answers[f.Answer], paths[f.Of]
	if path == "" || answer.status == 0 {
		return func(context.Context) error { return fmt.Errorf("the lab cannot answer %s to %s", f.Answer, f.Of) }, nil
	}
	stop := func() {}
	begin = func(context.Context) error {
		refused := faulty.Fault{Method: http.MethodPatch, Path: regexp.MustCompile(path), Status: answer.status, Reason: answer.reason}
		if f.Answer == "tooManyRequests" {
			refused.RetryAfter = 2
		}
		stop = p.proxy.Inject(refused)
		p.undo = append(p.undo, stop)
		return nil
	}
	end = func(context.Context) error {
		stop()
		return nil
	}
	return begin, end
}

// loseHead deletes the head pod, and goes on with a driver in the next one.
func (p *play) loseHead(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, err := p.Head(p.c)
	if err != nil {
		return err
	}
	if err := p.kubectl("delete", "pod", before.Name(), "--wait=false"); err != nil {
		return err
	}
	p.d.Close()
	err = p.Until(ctx, "the next head", func() error {
		head, err := p.Head(p.c)
		if err == nil && head.Get("metadata.uid") == before.Get("metadata.uid") {
			err = fmt.Errorf("it is still %s", head.Name())
		}
		return err
	})
	if err != nil {
		return err
	}
	next, err := p.Drive(ctx, p.c)
	if err == nil {
		p.d = next
	}
	return err
}

// drainNode drains the node on which the head is not. Pods of the operator's and
// of others stay.
func (p *play) drainNode(context.Context) error {
	head, err := p.Head(p.c)
	if err != nil {
		return err
	}
	p.undo = append(p.undo, func() { _ = p.uncordonNodes(context.Background()) })
	for n := 1; n <= nodes; n++ {
		if node := lab.NodeName(n); node != head.Get("spec.nodeName") {
			if _, _, err := p.Lab.Kubectl("drain", node, "--force", "--delete-emptydir-data", "--disable-eviction", "--pod-selector=ray.io/cluster="+p.c.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *play) uncordonNodes(context.Context) error {
	for n := 1; n <= nodes; n++ {
		if _, _, err := p.Lab.Kubectl("uncordon", lab.NodeName(n)); err != nil {
			return err
		}
	}
	return nil
}

const ballast = "ballast"

// fill leaves no CPU on any node.
func (p *play) fill(ctx context.Context) error {
	p.undo = append(p.undo, func() { _ = p.empty(context.Background()) })
	for n := 1; n <= nodes; n++ {
		node := lab.NodeName(n)
		rest, err := p.free(node)
		if err != nil {
			return err
		}
		name := ballast + "-" + node
		pod := rig.Object{}.Set("apiVersion", "v1").Set("kind", "Pod").
			Set("metadata.name", name).Set("metadata.namespace", p.Namespace).Set("metadata.labels", map[string]any{ballast: "yes"}).
			Set("spec.nodeName", node).Set("spec.terminationGracePeriodSeconds", 0).
			Set("spec.containers", []any{map[string]any{
				"name": ballast, "image": "example/ballast",
				"resources": map[string]any{"requests": map[string]any{"cpu": fmt.Sprintf("%dm", rest)}},
			}})
		if _, _, err := p.Lab.Apply(pod.YAML()); err != nil {
			return err
		}
		err = p.Until(ctx, name+" runs", func() error {
			seen, err := p.Pod(name)
			if err == nil && seen.Get("status.phase") != "Running" {
				err = fmt.Errorf("it is %v: %v", seen.Get("status.phase"), seen.Get("status.message"))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *play) empty(context.Context) error {
	return p.kubectl("delete", "pods", "--selector="+ballast, "--force", "--grace-period=0", "--wait=false")
}

// free is how many thousandths of a core no pod on a node requests.
func (p *play) free(node string) (int, error) {
	raw, _, err := p.Lab.Kubectl("get", "node", node, "-o", "jsonpath={.status.allocatable.cpu}")
	if err != nil {
		return 0, err
	}
	left, err := millicores(raw)
	if err != nil {
		return 0, err
	}
	used, _, err := p.Lab.Kubectl("get", "pods", "-A", "--field-selector", "spec.nodeName="+node, "-o",
		"jsonpath={range .items[*].spec.containers[*]}{.resources.requests.cpu}{\"\\n\"}{end}")
	if err != nil {
		return 0, err
	}
	for _, quantity := range strings.Fields(used) {
		n, err := millicores(quantity)
		if err != nil {
			return 0, err
		}
		left -= n
	}
	return left, nil
}

func millicores(quantity string) (int, error) {
	digits, milli := strings.CutSuffix(quantity, "m")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0, fmt.Errorf("CPU quantity %q: %w", quantity, err)
	}
	if !milli {
		n *= 1000
	}
	return n, nil
}
