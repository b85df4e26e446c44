package scaling_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/rig"
	"rayfit.dev/rayfit/tests/scaling"
)

// rayDashboard is the dashboard that Ray makes for Grafana. KubeRay's
// config/grafana/default_grafana_dashboard.json has the same queries.
const rayDashboard = `from ray.dashboard.modules.metrics.grafana_dashboard_factory import generate_default_grafana_dashboard as made; import base64; value = base64.b64encode(made()[0].encode()).decode()`

// drawsPanels holds the dashboards of Ray and of Rayfit to what the heads and the
// controller serve: each query that should find something does.
func drawsPanels(t *testing.T, controller *scaling.Controller, clusters map[scaling.Mode]*metered) {
	t.Helper()
	said, err := clusters[scaling.Ray].driver.Eval(t.Context(), rayDashboard)
	if err != nil {
		t.Fatal(err)
	}
	dashboard, err := base64.StdEncoding.DecodeString(strings.Trim(said, "'"))
	if err != nil {
		t.Fatalf("%v: %.100s", err, said)
	}
	asked := queries(t, dashboard, func(query string) bool { return strings.Contains(query, "autoscaler_") })
	if len(asked) < 6 {
		t.Errorf("Ray's dashboard has only the queries %q", asked)
	}
	for mode, c := range clusters {
		for _, query := range nothingFound(t, asked, c.page.series) {
			// Its clusters have no GPUs.
			if !strings.Contains(query, `resource="GPU"`) {
				t.Errorf("mode %s: nothing is found by %s", mode, query)
			}
		}
	}
	if dashboard, err = os.ReadFile("../../../manifests/monitoring/dashboard.json"); err != nil {
		t.Fatal(err)
	}
	series, err := controller.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`rayfit_\w+`)
	asked = queries(t, dashboard, func(query string) bool {
		for _, metric := range name.FindAllString(query, -1) {
			if !series.Has(metric) {
				return false // the webhooks serve it
			}
		}
		// What is wrong nowhere is not drawn, nor a certificate that a controller alone does not have.
		return name.MatchString(query) && !strings.Contains(query, "> 0")
	})
	if len(asked) < 20 {
		t.Errorf("of Rayfit's dashboard the controller has only the metrics of %q", asked)
	}
	for _, query := range nothingFound(t, asked, series) {
		t.Errorf("Rayfit's dashboard: nothing is found by %s", query)
	}
}

// queries are those of a dashboard's panels that are wanted.
func queries(t *testing.T, dashboard []byte, wanted func(string) bool) []string {
	t.Helper()
	var found []string
	for _, match := range regexp.MustCompile(`"expr": ?("(?:[^"\\]|\\.)*")`).FindAllSubmatch(dashboard, -1) {
		var query string
		if err := json.Unmarshal(match[1], &query); err != nil {
			t.Fatal(err)
		}
		if wanted(query) {
			found = append(found, query)
		}
	}
	return found
}

// variable is what Grafana replaces in a query.
var variable = regexp.MustCompile(`\$\w+`)

// nothingFound are the queries that find nothing where these series have had their
// values for half an hour, as Prometheus' own engine evaluates them.
func nothingFound(t *testing.T, queries []string, series rig.Metrics) []string {
	t.Helper()
	promtool, err := exec.Command("../../../scripts/promtool.sh").Output()
	if err != nil {
		t.Fatalf("scripts/promtool.sh finds no promtool: %v", err)
	}
	type object = map[string]any
	var input, tests []object
	for name, value := range series {
		input = append(input, object{"series": name, "values": strconv.FormatFloat(value, 'f', -1, 64) + "x30"})
	}
	asked := map[string]string{}
	for _, query := range queries {
		counted := "count(" + variable.ReplaceAllStringFunc(query, func(name string) string {
			if name == "$__rate_interval" {
				return "5m"
			}
			return ".*"
		}) + ") > bool 0"
		asked[counted] = query
		tests = append(tests, object{"expr": counted, "eval_time": "20m", "exp_samples": []object{{"labels": "{}", "value": 1}}})
	}
	text, err := json.Marshal(object{"evaluation_interval": "1m", "tests": []object{{"interval": "1m", "input_series": input, "promql_expr_test": tests}}})
	file := filepath.Join(t.TempDir(), "panels.yaml")
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(strings.TrimSpace(string(promtool)), "test", "rules", file).CombinedOutput()
	var found []string
	for _, match := range regexp.MustCompile(`(?m)^ *expr: (".*"), time: `).FindAllStringSubmatch(string(said), -1) {
		counted, _ := strconv.Unquote(match[1])
		found = append(found, asked[counted])
	}
	if err != nil && len(found) == 0 {
		t.Fatalf("%v: %s", err, said)
	}
	return found
}
