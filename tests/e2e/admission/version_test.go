package admission_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rayfit.dev/rayfit/tests/lab/labtest"
	"rayfit.dev/rayfit/tests/rig"
)

func TestAKubernetesThatResizesInPlaceIsRecognised(t *testing.T) {
	serveWith(t, "--kubeconfig", shared.Lab.Kubeconfig())
	learned(t, "minor: 37")
	if said := accepted(t, rig.WithGrowth(rig.RayCluster(namespace(t), "a"))); said != "" {
		t.Errorf("kubectl says: %s", said)
	}
}

// An API server of another version than the lab's is played.
func TestAKubernetesThatCannotResizeInPlaceIsRecognised(t *testing.T) {
	cluster := rig.WithGrowth(rig.RayCluster(namespace(t), "a"))
	serveWith(t, "--kubeconfig", playedAPIServer(t, "32"))
	learned(t, "minor: 32")
	hasOnce(t, denied(t, cluster), "rayfit explain RF114")

	restart(t, "--kubeconfig", playedAPIServer(t, "34+"))
	learned(t, "minor: 34")
	hasOnce(t, accepted(t, cluster), "Warning: RF114 metadata")
}

// playedAPIServer answers the question for its version, and returns a
// kubeconfig for it.
func playedAPIServer(t *testing.T, minor string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch {
		case request.URL.Path == "/api/v1/namespaces" && request.URL.Query().Get("watch") != "":
			<-request.Context().Done()
			return
		case request.URL.Path == "/api/v1/namespaces":
			_, _ = fmt.Fprint(w, `{"kind":"NamespaceList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
			return
		case request.URL.Path != "/version":
			http.NotFound(w, request)
			return
		}
		_, _ = fmt.Fprintf(w, `{"major":"1","minor":%q,"gitVersion":"v1.x","gitCommit":"","gitTreeState":"",
			"buildDate":"","goVersion":"","compiler":"","platform":""}`, minor)
	}))
	t.Cleanup(func() {
		// Rayfit still follows it, and would go on until it hears nothing for 30 s.
		server.CloseClientConnections()
		server.Close()
	})
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: played, cluster: {server: %q}}]
users: [{name: nobody, user: {}}]
contexts: [{name: played, context: {cluster: played, user: nobody}}]
current-context: played
`, server.URL)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// learned waits until Rayfit says in its log which version it has learned.
func learned(t *testing.T, version string) {
	t.Helper()
	labtest.Eventually(t, timeout, "wait until Rayfit knows the API server's version", func() error {
		log, err := shared.Lab.Logs(shared.Server.Name)
		if err != nil {
			return err
		}
		lines := strings.Split(strings.TrimSpace(log), "\n")
		for _, line := range lines {
			if strings.Contains(line, "the API server's version") && strings.Contains(line, version) {
				return nil
			}
		}
		return errors.New("not in its log: " + lines[len(lines)-1])
	})
}
