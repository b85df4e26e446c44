package scaling

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"rayfit.dev/rayfit/tests/lab"
)

// Call is a finished request in the API server's audit log.
type Call struct {
	Verb   string
	User   string
	Object string // resource, or resource/subresource
	Name   string
	Ended  time.Time
	Status int
}

// Calls are the requests of whom `by` says yes to that ended after a moment. The
// lab needs an audit log.
func Calls(l *lab.Lab, after time.Time, by func(Call) bool) ([]Call, error) {
	file, err := os.Open(l.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	var calls []Call
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		call, complete := parseCall(lines.Bytes())
		if complete && call.Ended.After(after) && by(call) {
			calls = append(calls, call)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return calls, nil
}

// ByRayfit says whether a call is a controller's, on the rights of an install.
func ByRayfit(c Call) bool { return c.User == "system:serviceaccount:"+systemNamespace+":"+account }

// ByHead says whether a call comes out of a cluster's head pod.
func ByHead(cluster string) func(Call) bool {
	return func(c Call) bool {
		return strings.HasPrefix(c.User, "system:serviceaccount:"+Namespace+":"+cluster)
	}
}

func parseCall(line []byte) (Call, bool) {
	var event struct {
		Stage, Verb    string
		User           struct{ Username string }
		ObjectRef      struct{ Resource, Subresource, Name string }
		ResponseStatus struct{ Code int }
		StageTime      time.Time `json:"stageTimestamp"`
	}
	if json.Unmarshal(line, &event) != nil || event.Stage != "ResponseComplete" {
		return Call{}, false
	}
	call := Call{
		Verb: event.Verb, User: event.User.Username,
		Object: event.ObjectRef.Resource, Name: event.ObjectRef.Name,
		Ended: event.StageTime, Status: event.ResponseStatus.Code,
	}
	if event.ObjectRef.Subresource != "" {
		call.Object += "/" + event.ObjectRef.Subresource
	}
	return call, true
}
