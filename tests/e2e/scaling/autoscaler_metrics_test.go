package scaling_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// exposition is a page of metrics: the lines about each family, and the value of
// each series, as it is written and without the session.
type exposition struct {
	about  map[string]bool
	series rig.Metrics
	values map[string]string
}

// session is the label that differs from cluster to cluster.
var session = regexp.MustCompile(`SessionName="session_[^"]+"`)

// scrape reads the metrics of a head's autoscaler container, as Prometheus does.
func scrape(ctx context.Context, address string) (*exposition, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/openmetrics-text") {
		return nil, fmt.Errorf("%s, %s: %s", answer.Status, answer.Header.Get("Content-Type"), body)
	}
	page := &exposition{map[string]bool{}, rig.ParseMetrics(string(body)), map[string]string{}}
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			page.about[line] = true
			continue
		}
		name, value, _ := strings.Cut(line, "} ")
		family, labels, _ := strings.Cut(name, "{")
		// The times at which Ray's process made its counters.
		if strings.HasSuffix(family, "_created") {
			continue
		}
		if !session.MatchString(labels) {
			return nil, fmt.Errorf("%q names no session", line)
		}
		sorted := strings.Split(session.ReplaceAllString(labels, "SessionName"), ",")
		slices.Sort(sorted)
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		page.values[family+"{"+strings.Join(sorted, ",")] = strconv.FormatFloat(number, 'g', -1, 64)
	}
	return page, nil
}

// has is nil where the page has these values.
func (p *exposition) has(values map[string]string) error {
	for series, value := range values {
		if got := p.values[series]; got != value {
			return fmt.Errorf("%s is %q, not %s; all: %v", series, got, value, p.values)
		}
	}
	return nil
}

// TestAutoscalerMetricsAreThoseOfRay brings three clusters into the same situations: one
// that Ray's own autoscaler scales, and one in each of Rayfit's modes. Whoever scrapes their
// heads sees the same metrics, with the same texts, types, labels and values.
func TestAutoscalerMetricsAreThoseOfRay(t *testing.T) {
	w := startWorld(t, lab.Options{Nodes: 1, Cores: 16, Memory: "32Gi", Ray: true})
	controller, err := scaling.StartController(t.Context(), w.Lab, "")
	if err != nil {
		t.Fatal(err)
	}
	clusters := map[scaling.Mode]*metered{}
	for _, mode := range []scaling.Mode{scaling.Ray, scaling.Central, scaling.Sidecar} {
		clusters[mode] = meter(t, w, mode)
	}
	grown := gauges(map[string]string{"active": "2 0 1", "pending": "0 1 0"}, "4")
	shrunk := gauges(map[string]string{"active": "0 0 1", "pending": "0 1 0"}, "0")
	shrunk[`autoscaler_stopped_nodes_total{SessionName`] = "2"
	// Ray counts here the nodes that it has deleted until they are gone.
	shrunk[`autoscaler_recently_failed_nodes{NodeType="cpu",SessionName`] = "0"
	for _, c := range clusters {
		// They fit on no pod of the other group.
		do(t, c.driver, `hold("tasks", 2, num_cpus=2)`)
	}
	for mode, c := range clusters {
		c.shows(t, "two nodes work and one is pending", grown)
		err := lab.Eventually(t.Context(), scaling.Patience, "Ray's service discovery finds the port", func() error {
			found, err := c.driver.Eval(t.Context(), `from ray.experimental.internal_kv import _internal_kv_get; value = _internal_kv_get(b"AutoscalerMetricsAddress")`)
			want := c.address
			if mode == scaling.Ray {
				// Ray takes the address of the machine, which pods share here.
				want = want[strings.LastIndex(want, ":"):]
			}
			if err == nil && !strings.HasSuffix(found, want+"'") {
				err = fmt.Errorf("it finds %s, not %s", found, want)
			}
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
	}
	for _, c := range clusters {
		c.countFromHere()
	}
	compare(t, clusters)
	showsWhatIsInUse(t, w, clusters)
	drawsPanels(t, controller, clusters)
	for _, c := range clusters {
		w.TaskGate.Release(batch(c.Cluster, "tasks"))
	}
	for _, c := range clusters {
		c.shows(t, "two nodes have stopped", shrunk)
	}
	compare(t, clusters)
}

// gauges are the values that a situation fixes: nodes of cpu, gated and the head, and all
// CPUs.
func gauges(nodes map[string]string, cpus string) map[string]string {
	values := map[string]string{
		`autoscaler_cluster_resources{SessionName,resource="CPU"`: cpus,
		`autoscaler_pending_resources{SessionName,resource="CPU"`: "1",
	}
	for what, each := range nodes {
		for i, count := range strings.Fields(each) {
			group := []string{"cpu", "gated", "headgroup"}[i]
			values[fmt.Sprintf(`autoscaler_%s_nodes{NodeType=%q,SessionName`, what, group)] = count
		}
	}
	return values
}

// compare holds Rayfit's pages to that of Ray's autoscaler.
func compare(t *testing.T, clusters map[scaling.Mode]*metered) {
	t.Helper()
	ray := clusters[scaling.Ray].page
	t.Logf("%d lines about metrics and %d series are compared", len(ray.about), len(ray.values))
	for _, mode := range []scaling.Mode{scaling.Central, scaling.Sidecar} {
		page := clusters[mode].page
		for _, line := range difference(ray.about, page.about) {
			t.Errorf("only Ray writes %q, not %s", line, mode)
		}
		for _, line := range difference(page.about, ray.about) {
			t.Errorf("only %s writes %q", mode, line)
		}
		for _, series := range slices.Sorted(maps.Keys(ray.values)) {
			if value := page.values[series]; value != ray.values[series] {
				t.Errorf("%s is %s with Ray and %q in mode %s", series, ray.values[series], value, mode)
			}
		}
		for _, series := range difference(page.values, ray.values) {
			t.Errorf("only %s has %s", mode, series)
		}
	}
}

// showsWhatIsInUse holds `rayfit rollout` over all clusters to what Ray's GCSs say
// through forwarded ports: two pods of two CPUs each, and tasks that ask for all of them.
func showsWhatIsInUse(t *testing.T, w *scaling.World, clusters map[scaling.Mode]*metered) {
	t.Helper()
	type amounts struct {
		Pods int
		CPUs float64
	}
	var said struct {
		WorkerPods []struct {
			Cluster, NotKnown       string
			Have, Idle, NotAskedFor amounts
		}
	}
	binary, err := rig.Binary()
	if err != nil {
		t.Fatal(err)
	}
	// The exit code says whether a cluster would be denied.
	text, err := exec.Command(binary, "rollout", "--savings", "--output=json", "--kubeconfig="+w.Lab.Kubeconfig()).Output()
	if json.Unmarshal(text, &said) != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if len(said.WorkerPods) != len(clusters) {
		t.Errorf("not %d clusters: %s", len(clusters), text)
	}
	for _, c := range said.WorkerPods {
		if (c.Have != amounts{2, 4}) || c.Idle.Pods != 0 || (c.NotAskedFor != amounts{2, 0}) || c.NotKnown != "" {
			t.Errorf("of %s it says %+v", c.Cluster, c)
		}
	}
}

// difference are the keys of one map that another lacks.
func difference[V, W any](one map[string]V, other map[string]W) []string {
	var missing []string
	for _, key := range slices.Sorted(maps.Keys(one)) {
		if _, ok := other[key]; !ok {
			missing = append(missing, key)
		}
	}
	return missing
}

// metered is a cluster whose head is scraped.
type metered struct {
	scaling.Cluster
	driver  *scaling.Driver
	address string
	page    *exposition
	// earlier are the values of counters before the first comparison.
	earlier map[string]float64
}

// meter makes a cluster with a group whose pod waits for ever, and another one that works.
func meter(t *testing.T, w *scaling.World, mode scaling.Mode) *metered {
	t.Helper()
	// The pods of this lab share the machine, and so its ports.
	port, err := lab.HoldPort()
	if err != nil {
		t.Fatal(err)
	}
	c := &metered{Cluster: scaling.Cluster{
		Name: "metered-" + string(mode), Mode: mode, Idle: 20, MetricsPort: port,
		Groups: []scaling.Group{{Name: "cpu", CPU: 2, Max: 2}, {Name: "gated", CPU: 1, Min: 1, Max: 1, Gate: "example.com/quota"}},
	}}
	c.driver = drive(t, w, &c.Cluster)
	head, err := w.Head(c.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	c.address = net.JoinHostPort(fmt.Sprint(head.Get("status.podIP")), strconv.Itoa(port))
	return c
}

// shows waits until the page has these values.
func (c *metered) shows(t *testing.T, what string, values map[string]string) {
	t.Helper()
	err := lab.Eventually(t.Context(), scaling.Patience, fmt.Sprintf("%s: %s", c.Name, what), func() error {
		page, err := scrape(t.Context(), c.address)
		if err != nil {
			return err
		}
		c.page = page
		c.count()
		return page.has(values)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// countFromHere lets the counters begin with the first situation: on a machine that is slow
// to start a raylet, Ray gives one up and has another one made, and counts both.
func (c *metered) countFromHere() {
	c.earlier = map[string]float64{}
	for series, value := range c.page.values {
		if family, _, _ := strings.Cut(series, "{"); strings.HasSuffix(family, "_total") {
			c.earlier[series], _ = strconv.ParseFloat(value, 64)
		}
	}
	c.count()
}

// count takes from the counters what they had before the first comparison.
func (c *metered) count() {
	for series, earlier := range c.earlier {
		if value, err := strconv.ParseFloat(c.page.values[series], 64); err == nil {
			c.page.values[series] = strconv.FormatFloat(value-earlier, 'g', -1, 64)
		}
	}
}
