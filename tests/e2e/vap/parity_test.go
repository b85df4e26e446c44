package vap_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"sort"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"rayfit.dev/rayfit/tests/lab"
	"rayfit.dev/rayfit/tests/rig"
)

func unmarshal(document string, into *rig.Object) error {
	return yaml.Unmarshal([]byte(document), into)
}

// warned finds the policies that a warning of the API server names.
var warned = regexp.MustCompile(`Validation failed for ValidatingAdmissionPolicy '([^']+)'`)

// asWarnings is the same policies, each of which warns and none of which denies,
// so that the verdict of each is seen and not only that of the first to deny.
func asWarnings(manifests string) string {
	return regexp.MustCompile(`(?m)^(\s*)- (Deny|Audit)$`).ReplaceAllString(manifests, "$1- Warn")
}

// send asks the API server to store a fixture, without doing it.
func send(t *testing.T, f fixture) (warnings []string, err error) {
	t.Helper()
	if f.old == nil {
		object := f.object.Clone()
		for _, key := range []string{"uid", "creationTimestamp", "generation", "managedFields"} {
			delete(object["metadata"].(map[string]any), key)
		}
		_, warnings, err = l.RequestWarned(t.Context(), http.MethodPost, collection(object)+"?dryRun=All", object.JSON())
		return warnings, err
	}
	_, warnings, err = l.RequestWarned(t.Context(), http.MethodPut, collection(f.object)+"/"+f.object.Name()+"?dryRun=All", f.object.JSON())
	return warnings, err
}

func TestPoliciesAndWebhookComeToTheSameVerdict(t *testing.T) {
	laterFields(t)
	all, refused := corpus(t)
	t.Logf("%d fixtures; the API server refuses %d more by itself", len(all), refused)
	if len(all) < 350 {
		t.Fatalf("only %d fixtures get past the API server", len(all))
	}
	manifests := rayfit(t, "vap")
	named, covered := policies(t, manifests), coverage(t)
	there := map[string]bool{}
	for _, key := range named {
		there[key] = true
	}

	client := webhookClient(t)
	wanted := make([]verdict, len(all))
	for i, f := range all {
		wanted[i] = judge(t, client, f.object, f.old)
	}

	t.Run("each policy", func(t *testing.T) {
		install(t, asWarnings(manifests))
		noTypeWarnings(t)
		seen := map[string]bool{}
		for i, f := range all {
			warnings, err := send(t, f)
			if err != nil {
				t.Errorf("%s: %v", f.name, err)
				continue
			}
			got := map[string]bool{}
			for _, warning := range warnings {
				if match := warned.FindStringSubmatch(warning); match != nil {
					got[named[match[1]]] = true
				}
			}
			for _, difference := range compare(wanted[i], got, there, covered) {
				t.Errorf("%s: %s\n%s", f.name, difference, strings.Join(warnings, "\n"))
			}
			if f.bad {
				for key := range got {
					seen[key[:5]] = seen[key[:5]] || key[:5] == f.rule
				}
			}
		}
		for rule, how := range covered {
			if strings.HasPrefix(rule, "RF") && how != "no" && !seen[rule] {
				t.Errorf("%s, covered %s, finds none of its bad fixtures", rule, how)
			}
		}
		noErrors(t)
	})

	// Where RAYFIT_LONG is set, with all fixtures.
	t.Run("all together", func(t *testing.T) {
		install(t, manifests)
		for i, f := range all {
			if i%4 != 0 && os.Getenv("RAYFIT_LONG") == "" {
				continue // each policy by itself has judged it
			}
			_, err := send(t, f)
			status := new(lab.StatusError)
			denied := errors.As(err, &status) && status.Code == http.StatusUnprocessableEntity
			if err != nil && !denied {
				t.Errorf("%s: %v", f.name, err)
				continue
			}
			must, may := false, false
			for key := range wanted[i] {
				rule, mode, _ := strings.Cut(key, " ")
				must = must || mode == "enforce" && covered[rule] == "yes"
				may = may || mode == "enforce" && covered[rule] != "no"
			}
			if denied && !may || !denied && must {
				t.Errorf("%s: denied by the policies: %t; the webhook: %v", f.name, denied, wanted[i])
			}
		}
	})
}

// compare says where the policies differ from the webhook. Of a rule that is
// covered in part, they may miss something, but find nothing else.
func compare(wanted verdict, got, there map[string]bool, covered map[string]string) (differences []string) {
	for key := range got {
		if _, ok := wanted[key]; !ok {
			differences = append(differences, fmt.Sprintf("the policies find %s, the webhook does not: %v", key, wanted))
		}
	}
	for key := range wanted {
		if covered[key[:5]] == "yes" && there[key] && !got[key] {
			differences = append(differences, fmt.Sprintf("the policies do not find %s", key))
		}
	}
	sort.Strings(differences)
	return differences
}

// noTypeWarnings checks that the API server's own type checker finds nothing.
func noTypeWarnings(t *testing.T) {
	t.Helper()
	said := kubectl(t, "", "get", "validatingadmissionpolicies", "-o", `jsonpath={range .items[*]}{.metadata.name}: {.status.typeChecking.expressionWarnings}{"\n"}{end}`)
	for line := range strings.Lines(said) {
		if name, warnings, _ := strings.Cut(strings.TrimSpace(line), ": "); warnings != "" {
			t.Errorf("the type checker says about %s: %s", name, warnings)
		}
	}
}

// noErrors checks that no expression has failed: a policy that fails open would
// do so without a word.
func noErrors(t *testing.T) {
	t.Helper()
	metrics, err := l.Request(t.Context(), http.MethodGet, "/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(metrics)) {
		// What fails open is allowed with an error; what is denied counts as one too.
		if strings.HasPrefix(line, "apiserver_validating_admission_policy_check_total{") &&
			strings.Contains(line, `enforcement_action="allow"`) && !strings.Contains(line, `error_type="no_error"`) {
			t.Errorf("an expression failed: %s", line)
		}
	}
}
