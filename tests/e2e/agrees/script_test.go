package agrees_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"rayfit.dev/rayfit/tests/scaling"
)

const folder = "../../fixtures/simulate/agrees"

// memoryPerCore is how many GiB every pod and node of a script has for each core.
const memoryPerCore = 4

// settings hold for all scripts.
type settings struct {
	// NodeCores is the size of the Kubernetes nodes.
	NodeCores int `json:"nodeCores"`
	// KeepSmallSeconds and ShrinkAfterSeconds are the policy's.
	KeepSmallSeconds   int `json:"keepSmallSeconds"`
	ShrinkAfterSeconds int `json:"shrinkAfterSeconds"`
	// ReconnectSeconds is for how long workers look for a head that is gone.
	ReconnectSeconds int `json:"reconnectSeconds"`
	// ToleranceSeconds is by how much the time of an event may differ, and
	// StartToleranceSeconds that at which a job begins.
	ToleranceSeconds      float64 `json:"toleranceSeconds"`
	StartToleranceSeconds float64 `json:"startToleranceSeconds"`
	// HeadToleranceSeconds is by how much that of an event may differ at which a job is
	// lost with its head. Its driver ends with the head: where the GCS lives long enough to
	// tell of that, the job ends at once, and otherwise when the next head asks its workers.
	HeadToleranceSeconds float64 `json:"headToleranceSeconds"`
	// TogetherSeconds is how far apart events are at most that may change their order.
	TogetherSeconds float64 `json:"togetherSeconds"`
}

// script is what happens to a cluster, and what the simulator does about it.
type script struct {
	name   string
	scene  scene
	groups []group
	jobs   []job
	faults []fault
	events []event
}

type scene struct {
	IdleTimeoutSeconds int `json:"idleTimeoutSeconds"`
}

type group struct {
	Name     string `json:"name"`
	Cores    int    `json:"cores"`
	MaxCores int    `json:"maxCores"`
	Min      int    `json:"min"`
	Max      int    `json:"max"`
	Hosts    int    `json:"hosts"`
}

// job is comparable: equal ones are a batch.
type job struct {
	At      float64 `json:"at"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"`
	Actor   bool    `json:"actor"`
	Bundles string  `json:"bundles"`
}

type fault struct {
	At       float64 `json:"at"`
	Kind     string  `json:"kind"`
	Seconds  float64 `json:"seconds"`
	Group    int     `json:"group"`
	Min      int     `json:"min"`
	Max      int     `json:"max"`
	Replicas int     `json:"replicas"`
	Pick     int     `json:"pick"`
	Of       string  `json:"of"`
	Answer   string  `json:"answer"`
	CPU      float64 `json:"cpu"`
	Bundles  int     `json:"bundles"`
}

// event is something that was done, so many seconds after the script began.
type event struct {
	at   float64
	what string
}

func readSettings() (settings, error) {
	var s settings
	raw, err := os.ReadFile(filepath.Join(folder, "settings.json"))
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read the settings: %w", err)
	}
	return s, nil
}

func readScripts() ([]script, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("list the scripts: %w", err)
	}
	var scripts []script
	for _, path := range paths {
		one, err := readScript(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		scripts = append(scripts, one)
	}
	return scripts, nil
}

func readScript(path string) (script, error) {
	s := script{name: strings.TrimSuffix(filepath.Base(path), ".jsonl")}
	raw, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	for _, line := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		var read struct {
			Scene *scene `json:"scene"`
			Group *group `json:"group"`
			Job   *job   `json:"job"`
			Fault *fault `json:"fault"`
		}
		if err := json.Unmarshal(line, &read); err != nil {
			return s, fmt.Errorf("%s: %w", line, err)
		}
		switch {
		case read.Scene != nil:
			s.scene = *read.Scene
		case read.Group != nil:
			s.groups = append(s.groups, *read.Group)
		case read.Job != nil:
			s.jobs = append(s.jobs, *read.Job)
		case read.Fault != nil:
			s.faults = append(s.faults, *read.Fault)
		}
	}
	raw, err = os.ReadFile(strings.TrimSuffix(path, ".jsonl") + ".events")
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(raw)) {
		at, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		seconds, err := strconv.ParseFloat(at, 64)
		if err != nil {
			return s, fmt.Errorf("the time of an event: %w", err)
		}
		s.events = append(s.events, event{seconds, what})
	}
	return s, nil
}

// tenant is the namespace of its own that a script is played in, if it is a tenant's.
func (s script) tenant() string {
	if strings.HasPrefix(s.name, "tenant-") {
		return s.name
	}
	return ""
}

// changesNodes says whether scripts that are played beside it would notice.
func (s script) changesNodes() bool { return s.has("nodesFilled", "nodeDrained") }

// losesHead says whether jobs are lost with their head.
func (s script) losesHead() bool { return s.has("headLost") }

// has says whether a fault of one of these kinds is in it.
func (s script) has(kinds ...string) bool {
	return slices.ContainsFunc(s.faults, func(f fault) bool { return slices.Contains(kinds, f.Kind) })
}

// cluster is the script's RayCluster.
func (s script) cluster(common settings) *scaling.Cluster {
	c := &scaling.Cluster{Name: s.name, Mode: scaling.Central, Idle: s.scene.IdleTimeoutSeconds, Patience: common.ReconnectSeconds}
	for _, g := range s.groups {
		made := scaling.Group{Name: g.Name, CPU: g.Cores, Min: g.Min, Max: g.Max, MaxCPU: g.MaxCores, Memory: gibibytes(g.Cores), ResizeTimeout: 30}
		if g.MaxCores > 0 {
			made.MaxMemory = gibibytes(g.MaxCores)
		}
		if g.Hosts > 1 {
			made.Hosts = g.Hosts
		}
		c.Groups = append(c.Groups, made)
	}
	return c
}

func gibibytes(cores int) string { return fmt.Sprintf("%dGi", memoryPerCore*cores) }

// batches are the names of the batches of equal jobs, in the order of the script;
// a batch is called by the number of its first job.
func (s script) batches() []batch {
	var found []batch
	for i, one := range s.jobs {
		at := slices.IndexFunc(found, func(b batch) bool { return b.job == one })
		if at < 0 {
			found = append(found, batch{fmt.Sprintf("job-%d", i+1), one, 1})
		} else {
			found[at].count++
		}
	}
	return found
}

// batch is so many equal jobs.
type batch struct {
	name string
	job
	count int
}

// ends are the times at which jobs of a batch end in the simulation.
func (s script) ends(b batch) []time.Duration {
	var ends []time.Duration
	for _, d := range s.events {
		if d.what == "ends "+b.name {
			ends = append(ends, seconds(d.at))
		}
	}
	return ends
}

// tasks is how many tasks stand for a job: one for each bundle of a placement group.
func (b batch) tasks() int {
	if b.Bundles != "" {
		return 2
	}
	return 1
}

// ask is what the driver does for the batch.
func (b batch) ask() string {
	switch {
	case b.Bundles != "":
		return fmt.Sprintf(`group(%q, [{"CPU": %v}] * 2, %q)`, b.name, b.CPU, b.Bundles)
	case b.Actor:
		return fmt.Sprintf(`hold_actors(%q, %d, num_cpus=%v)`, b.name, b.count, b.CPU)
	default:
		return fmt.Sprintf(`hold(%q, %d, num_cpus=%v, max_retries=-1)`, b.name, b.count, b.CPU)
	}
}
