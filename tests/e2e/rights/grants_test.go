package rights_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"rayfit.dev/rayfit/tests/lab"
)

// grant is one verb of one rule of a role that an account has.
type grant struct {
	user                  string
	role, namespace       string // no namespace: everywhere
	group, resource, name string // no name: all of them
	verb                  string
}

func (g grant) String() string {
	resource := strings.TrimSuffix(g.resource+"."+g.group, ".")
	if g.name != "" {
		resource += " " + g.name
	}
	return fmt.Sprintf("%s by %s: %s %s", g.role, g.user, g.verb, resource)
}

// grants are the rights that manifests give.
func grants(t *testing.T, manifests string) []grant {
	t.Helper()
	type object struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
		Rules    []struct{ APIGroups, Resources, ResourceNames, Verbs []string }
		Subjects []struct{ Name string }
	}
	var roles []object
	users := map[string]string{} // by kind, namespace and name of the role
	for _, document := range strings.Split(manifests, "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		switch role, bound := strings.CutSuffix(o.Kind, "Binding"); {
		case bound && len(o.Subjects) == 1: // each has its role's name
			users[role+"/"+o.Metadata.Namespace+"/"+o.Metadata.Name] = accounts + o.Subjects[0].Name
		case o.Kind == "Role" || o.Kind == "ClusterRole":
			roles = append(roles, o)
		}
	}
	var found []grant
	for _, role := range roles {
		user := users[role.Kind+"/"+role.Metadata.Namespace+"/"+role.Metadata.Name]
		if user == "" {
			t.Fatalf("nobody has %s %s", role.Kind, role.Metadata.Name)
		}
		for _, rule := range role.Rules {
			names := rule.ResourceNames
			if len(names) == 0 {
				names = []string{""}
			}
			for _, name := range names {
				for _, verb := range rule.Verbs {
					found = append(found, grant{user, role.Metadata.Name, role.Metadata.Namespace, rule.APIGroups[0], rule.Resources[0], name, verb})
				}
			}
		}
	}
	if len(found) == 0 {
		t.Fatal("the manifests have no roles")
	}
	return found
}

// request is one line of the API server's audit log.
type request struct {
	Stage, Verb, RequestURI string
	User                    struct{ Username string }
	ObjectRef               struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus          struct{ Code int }
}

// requests are those of our accounts. Of a watch it is the beginning that is
// told, of everything else the end.
func requests(l *lab.Lab) ([]request, error) {
	file, err := os.Open(l.AuditLog())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var found []request
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r request
		// The last line may still be being written.
		if json.Unmarshal(lines.Bytes(), &r) == nil && strings.HasPrefix(r.User.Username, accounts) {
			found = append(found, r)
		}
	}
	return found, lines.Err()
}

// needs says whether a request is answered only because of a right.
func (r request) needs(g grant) bool {
	resource := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	// Who applies what is not there yet needs the right to create as well.
	verb := r.Verb == g.verb || g.verb == "create" && r.Verb == "patch" && r.ResponseStatus.Code == 201
	return verb && r.User.Username == g.user && r.ObjectRef.APIGroup == g.group && resource == g.resource &&
		(g.namespace == "" || r.ObjectRef.Namespace == g.namespace) &&
		(g.name == "" || r.ObjectRef.Name == g.name)
}

// unused are the rights that no request has needed so far.
func unused(l *lab.Lab, granted []grant) ([]grant, error) {
	all, err := requests(l)
	if err != nil {
		return nil, err
	}
	var left []grant
	for _, g := range granted {
		used := false
		for _, r := range all {
			used = used || r.needs(g)
		}
		if !used {
			left = append(left, g)
		}
	}
	return left, nil
}

// noneForbidden fails for requests, but for the first ones, that were refused for
// want of a right, and for words of it in the logs. It returns how many there are.
func (s *site) noneForbidden(t *testing.T, first int) int {
	t.Helper()
	all, err := requests(s.Lab)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all[first:] {
		if code := r.ResponseStatus.Code; code == 401 || code == 403 {
			t.Errorf("%d for %s: %s %s", code, r.User.Username, r.Verb, r.RequestURI)
		}
	}
	s.rolledOut(t)
	logs := s.must(t, "logs", "-n", system, "-l", "app.kubernetes.io/name=rayfit", "--tail=-1")
	if logs == "" {
		t.Error("the replicas have no logs")
	}
	for line := range strings.Lines(logs) {
		if low := strings.ToLower(line); strings.Contains(low, "forbidden") || strings.Contains(low, "panic") {
			t.Errorf("a replica logs: %s", line)
		}
	}
	return len(all)
}
