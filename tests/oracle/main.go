// Command oracle asks KubeRay's own validation which objects it refuses, and writes its answers as JSON lines:
//
//	oracle SEED COUNT MOST CASES
//
// The objects are those of the file CASES (from KubeRay's own tests: run.sh beside it), KubeRay's samples, and COUNT
// mutations of these, of which MOST for each kind of refusal are written. GATES says which feature gates are on. Objects that do
// not fit KubeRay's types, which the API server would not let through to it, are left out.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
)

const module = "github.com/ray-project/kuberay/ray-operator"

type object = map[string]any

// decoded reads an object as the API server hands it on: of the right types, and with a surge, which has a
// default.
func decoded(from object, into any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// defaults sets what the CRDs set where it is absent.
func defaults(cluster *rayv1.RayClusterSpec) {
	if cluster == nil {
		return
	}
	for i := range cluster.WorkerGroupSpecs {
		group, least, most := &cluster.WorkerGroupSpecs[i], int32(0), int32(math.MaxInt32)
		if group.MinReplicas == nil {
			group.MinReplicas = &least
		}
		if group.MaxReplicas == nil {
			group.MaxReplicas = &most
		}
	}
}

// made is what KubeRay says to the upgrade strategy of a cluster that it makes of another object.
func made(kind utils.CRDType, spec *rayv1.RayClusterSpec) error {
	if spec == nil {
		return nil
	}
	c := rayv1.RayCluster{Spec: *spec}
	c.Labels = map[string]string{utils.RayOriginatedFromCRDLabelKey: string(kind)}
	return utils.ValidateRayClusterUpgradeOptions(&c)
}

// refusal is what KubeRay says to an object: empty if it accepts it.
func refusal(of object) (string, error) {
	answer := func(errs ...error) (string, error) {
		for _, err := range errs {
			if err != nil {
				return err.Error(), nil
			}
		}
		return "", nil
	}
	switch of["kind"] {
	case "RayCluster":
		var c rayv1.RayCluster
		if err := decoded(of, &c); err != nil {
			return "", err
		}
		defaults(&c.Spec)
		return answer(utils.ValidateRayClusterMetadata(c.ObjectMeta), utils.ValidateRayClusterSpec(&c.Spec, c.Annotations),
			utils.ValidateRayClusterUpgradeOptions(&c))
	case "RayJob":
		var j rayv1.RayJob
		if err := decoded(of, &j); err != nil {
			return "", err
		}
		defaults(j.Spec.RayClusterSpec)
		return answer(utils.ValidateRayJobMetadata(j.ObjectMeta), utils.ValidateRayJobSpec(&j), made(utils.RayJobCRD, j.Spec.RayClusterSpec))
	case "RayService":
		var s rayv1.RayService
		if err := decoded(of, &s); err != nil {
			return "", err
		}
		if up := s.Spec.UpgradeStrategy; up != nil {
			if up.Type == nil {
				return "", fmt.Errorf("KubeRay reads through the type without looking")
			}
			if options := up.ClusterUpgradeOptions; options != nil && options.MaxSurgePercent == nil {
				all := int32(100)
				options.MaxSurgePercent = &all
			}
		}
		defaults(&s.Spec.RayClusterSpec)
		return answer(utils.ValidateRayServiceMetadata(s.ObjectMeta), utils.ValidateRayServiceSpec(&s), made(utils.RayServiceCRD, &s.Spec.RayClusterSpec))
	case "RayCronJob":
		var c rayv1.RayCronJob
		if err := decoded(of, &c); err != nil {
			return "", err
		}
		defaults(c.Spec.JobTemplate.RayClusterSpec)
		return answer(utils.ValidateRayCronJobSpec(&c), made(utils.RayJobCRD, c.Spec.JobTemplate.RayClusterSpec))
	}
	return "", fmt.Errorf("not a kind of Ray: %v", of["kind"])
}

// samples are KubeRay's examples of Ray objects, with a RayCronJob of each RayJob.
func samples() []object {
	raw, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		log.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(raw)), "config", "samples", "*.yaml"))
	var found []object
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			log.Fatal(err)
		}
		for _, document := range bytes.Split(text, []byte("\n---")) {
			var o object
			if yaml.Unmarshal(document, &o) != nil || o["apiVersion"] != "ray.io/v1" || len(document) > 12000 {
				continue
			}
			if _, err := refusal(o); err != nil {
				continue
			}
			found = append(found, o)
			if o["kind"] == "RayJob" {
				cron := object{"apiVersion": "ray.io/v1", "kind": "RayCronJob", "metadata": object{"name": "cron"},
					"spec": object{"schedule": "0 3 * * *", "jobTemplate": o["spec"]}}
				found = append(found, cron)
			}
		}
	}
	return found
}

// A change sets the value at a path below the part that it is about; nil removes it. `*` is any item of a list.
type change struct {
	path   string
	values []any
}

var env = []any{
	[]any{object{"name": "RAY_REDIS_ADDRESS", "value": "redis:6379"}}, []any{object{"name": "REDIS_PASSWORD", "value": "x"}},
	[]any{object{"name": "REDIS_USERNAME", "value": "x"}}, []any{object{"name": "RAY_enable_autoscaler_v2", "value": "1"}},
	[]any{object{"name": "RAY_enable_autoscaler_v2", "value": "false"}}, []any{object{"name": "OTHER", "value": "1"}},
}

var ofClusters = []change{
	{"enableInTreeAutoscaling", []any{true, true, false, nil}},
	{"autoscalerOptions", []any{nil, object{"version": "v1"}, object{"version": "v2"}, object{"idleTimeoutSeconds": -1}}},
	{"gcsFaultToleranceOptions", []any{nil, object{"redisAddress": "redis:6379"}, object{"redisAddress": "redis:6379"}}},
	{"headGroupSpec.rayStartParams.redis-password", []any{"x", "", nil}},
	{"headGroupSpec.rayStartParams.redis-username", []any{"x", "", nil}},
	{"headGroupSpec.template.spec.containers.0.env", env},
	{"headGroupSpec.template.spec.containers", []any{[]any{}}},
	{"headGroupSpec.template.spec.restartPolicy", []any{"Always", "Never", "OnFailure", ""}},
	{"headGroupSpec.resources", []any{object{"CPU": "4"}, object{}}},
	{"headGroupSpec.labels", []any{object{"a": "b"}, object{"a b": "c"}, object{"a": "b c"}}},
	{"headGroupSpec.rayStartParams.labels", []any{"a=b"}},
	{"headGroupSpec.headService", []any{object{"metadata": object{"name": "mine"}}, object{"metadata": object{}}}},
	{"workerGroupSpecs.*.template.spec.containers", []any{[]any{}}},
	{"workerGroupSpecs.*.template.spec.restartPolicy", []any{"Always", "Never", "OnFailure", ""}},
	{"workerGroupSpecs.*.minReplicas", []any{-1, 0, 3, 100}},
	{"workerGroupSpecs.*.maxReplicas", []any{-1, 0, 3, 100}},
	{"workerGroupSpecs.*.resources", []any{object{"CPU": "4"}, object{}}},
	{"workerGroupSpecs.*.rayStartParams.num-cpus", []any{"4", "", nil}},
	{"workerGroupSpecs.*.rayStartParams.labels", []any{"a=b"}},
	{"workerGroupSpecs.*.labels", []any{object{"a": "b"}, object{"a b": "c"}, object{"-": "c"}, object{"a": "b c"}}},
	{"workerGroupSpecs.*.idleTimeoutSeconds", []any{-1, 60}},
	{"workerGroupSpecs.*.suspend", []any{true, false}},
	{"authOptions", []any{object{"mode": "token"}, object{"mode": "disabled"}, object{"mode": "token", "enableK8sTokenAuth": true},
		object{"enableK8sTokenAuth": true}, object{"mode": "token", "enableK8sTokenAuth": true, "secretName": "x"}}},
	{"rayVersion", []any{nil, "2.50.0", "2.53.0", "2.60.0", "nightly"}},
	{"upgradeStrategy", []any{object{"type": "Recreate"}, object{"type": "None"}, object{"type": "Rolling"}}},
	{"workerGroupSpecs.*.priority", []any{0, 5}},
	{"autoscalerOptions.env", []any{[]any{object{"name": "KUBERAY_GEN_AUTOSCALER_START_CMD", "value": "ray"}}, []any{object{"name": "OTHER", "value": "1"}}}},
	{"gcsFaultToleranceOptions", []any{object{"backend": "rocksdb"}, object{"backend": "redis", "redisAddress": "redis:6379", "storage": object{"size": "1Gi"}}}},
	{"networkPolicy", []any{object{"mode": "DenyAll"}, object{"mode": "DenyAllEgress"}}},
	{"tlsOptions", []any{object{"enabled": true}, object{"enabled": false}}},
	{"historyServerOptions", []any{object{}, object{"collectorOptions": object{"image": "collector:1"}}}},
}

func deletion(policy, condition string, ttl int) object {
	return object{"policy": policy, "condition": object{condition: "FAILED", "ttlSeconds": ttl}}
}

var ofJobs = []change{
	{"suspend", []any{true, false}},
	{"shutdownAfterJobFinishes", []any{true, false, nil}},
	{"ttlSecondsAfterFinished", []any{-1, 0, 60}},
	{"clusterSelector", []any{object{"ray.io/cluster": "demo"}, object{"ray.io/cluster": ""}, object{"other": "x"}, nil}},
	{"rayClusterSpec", []any{nil}},
	{"submissionMode", []any{"K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"}},
	{"backoffLimit", []any{-1, 0, 2}},
	{"activeDeadlineSeconds", []any{-1, 0, 60}},
	{"preRunningDeadlineSeconds", []any{-1, 0, 60}},
	{"runtimeEnvYAML", []any{"pip: [a", "pip: [a]", "text", "", "- a", "a: b: c"}},
	{"submitterPodTemplate", []any{object{"spec": object{"containers": []any{object{"name": "submitter"}}}}}},
	{"submitterConfig", []any{object{"backoffLimit": 1}}},
	{"deletionStrategy", []any{
		object{}, object{"onSuccess": object{"policy": "DeleteCluster"}}, object{"onSuccess": object{}, "onFailure": object{"policy": "DeleteSelf"}},
		object{"onSuccess": object{"policy": "DeleteCluster"}, "onFailure": object{}},
		object{"onSuccess": object{"policy": "DeleteCluster"}, "onFailure": object{"policy": "DeleteWorkers"}},
		object{"onSuccess": object{"policy": "DeleteNone"}, "onFailure": object{"policy": "DeleteSelf"}},
		object{"onSuccess": object{"policy": "DeleteSelf"}, "onFailure": object{"policy": "DeleteSelf"}, "deletionRules": []any{deletion("DeleteSelf", "jobStatus", 0)}},
		object{"deletionRules": []any{deletion("DeleteWorkers", "jobStatus", 0), deletion("DeleteCluster", "jobStatus", 60)}},
		object{"deletionRules": []any{deletion("DeleteCluster", "jobStatus", 60), deletion("DeleteSelf", "jobStatus", 0)}},
		object{"deletionRules": []any{deletion("DeleteCluster", "jobDeploymentStatus", 60), deletion("DeleteSelf", "jobStatus", 0)}},
		object{"deletionRules": []any{deletion("DeleteSelf", "jobStatus", 60), deletion("DeleteSelf", "jobStatus", 90)}},
		object{"deletionRules": []any{deletion("DeleteSelf", "jobStatus", -1)}},
		object{"deletionRules": []any{object{"policy": "DeleteSelf", "condition": object{"ttlSeconds": 1}}}},
		object{"deletionRules": []any{object{"policy": "DeleteSelf", "condition": object{"jobStatus": "FAILED", "jobDeploymentStatus": "Failed"}}}},
	}},
}

func upgrade(surge, step, interval any, class string) object {
	options := object{"maxSurgePercent": surge, "stepSizePercent": step, "intervalSeconds": interval, "gatewayClassName": class}
	maps.DeleteFunc(options, func(_ string, value any) bool { return value == nil })
	return object{"type": "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions": options}
}

var ofServices = []change{
	{"upgradeStrategy", []any{object{"type": "BlueGreen"}, object{"type": "NewCluster"}, object{"type": "None"},
		object{"type": "NewClusterWithIncrementalUpgrade"}, upgrade(100, 50, 10, "istio"), upgrade(nil, 50, 10, "istio"), upgrade(101, 50, 10, "istio"),
		upgrade(100, nil, 10, "istio"), upgrade(100, 150, 10, "istio"), upgrade(100, 50, 0, "istio"), upgrade(100, 50, nil, "istio"), upgrade(100, 50, 10, "")}},
	{"rayClusterDeletionDelaySeconds", []any{-1, 0, 60}},
}

var ofSchedules = []change{{"schedule", []any{"every day", "0 3 * *", "*/5 * * * *", "0 3 * * 7", "0 25 * * *", "@daily", "@every 1h", "@often", "",
	"0 0 1 JAN *", "TZ=UTC 0 3 * * *", "1-70 * * * *", "*/0 * * * *", "0 3 * * mon-fri", "x * * * *", "3-1 * * * *"}},
	{"timeZone", []any{"", "Europe/Berlin", "Mars/Olympus", nil}}}

var ofMetadata = []change{
	{"name", []any{"UPPER", "1a", "a.b", strings.Repeat("a", 48), strings.Repeat("a", 54), "fine", "a-"}},
	{"annotations", []any{object{"ray.io/ft-enabled": "true"}, object{"ray.io/ft-enabled": "false"}, object{"ray.io/external-storage-namespace": "x"},
		object{"ray.io/initializing-timeout": "5m"}, object{"ray.io/initializing-timeout": "0"}, object{"ray.io/initializing-timeout": "-5m"},
		object{"ray.io/initializing-timeout": "soon"}, object{"ray.io/initializing-timeout": "600"}}},
	{"labels", []any{object{"ray.io/originated-from-crd": "RayJob"}}},
}

var parts = map[any][]struct {
	path    []string
	changes []change
}{
	"RayCluster": {{[]string{"spec"}, ofClusters}},
	"RayJob":     {{[]string{"spec", "rayClusterSpec"}, ofClusters}, {[]string{"spec"}, ofJobs}},
	"RayService": {{[]string{"spec", "rayClusterConfig"}, ofClusters}, {[]string{"spec"}, ofServices}},
	"RayCronJob": {{[]string{"spec", "jobTemplate", "rayClusterSpec"}, ofClusters}, {[]string{"spec", "jobTemplate"}, ofJobs}, {[]string{"spec"}, ofSchedules}},
}

// set follows a path through objects and lists, makes objects that are absent, and sets or removes the last field.
func set(random *rand.Rand, at any, path []string, value any) {
	switch at := at.(type) {
	case []any:
		if len(at) > 0 {
			index := 0
			if path[0] == "*" {
				index = random.IntN(len(at))
			}
			set(random, at[index], path[1:], value)
		}
	case object:
		if len(path) > 1 {
			if at[path[0]] == nil {
				at[path[0]] = object{}
			}
			set(random, at[path[0]], path[1:], value)
		} else if value == nil {
			delete(at, path[0])
		} else {
			at[path[0]] = value
		}
	}
}

func mutated(random *rand.Rand, from object) object {
	raw, _ := json.Marshal(from)
	var made object
	if err := json.Unmarshal(raw, &made); err != nil {
		log.Fatal(err)
	}
	for range 1 + random.IntN(3) {
		of := parts[made["kind"]]
		path, changes := []string{"metadata"}, ofMetadata
		if part := random.IntN(2*len(of) + 1); part < 2*len(of) {
			path, changes = of[part/2].path, of[part/2].changes
		}
		change := changes[random.IntN(len(changes))]
		path = append(slices.Clone(path), strings.Split(change.path, ".")...)
		set(random, made, path, change.values[random.IntN(len(change.values))])
	}
	return made
}

// What differs between refusals of one kind.
var details = regexp.MustCompile(`[0-9]+|'[^']*'|"[^"]*"|(worker )?group \S+|for \S+ group`)

// A writer writes at most so many objects for each kind of refusal, and ten times as many that are accepted.
type writer struct {
	most    int
	written map[string]int
}

func (w *writer) write(o object) {
	said, err := refusal(o)
	if err != nil {
		return
	}
	kind, most := details.ReplaceAllString(said, ""), w.most
	if said == "" {
		most *= 10
	}
	if w.written[kind]++; w.written[kind] > most {
		return
	}
	raw, err := json.Marshal(object{"object": o, "refusal": said})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(raw))
}

// cases are the objects of a file, one a line.
func cases(file string) []object {
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	var found []object
	for line := range bytes.Lines(text) {
		var o object
		if err := json.Unmarshal(line, &o); err != nil {
			log.Fatal(err)
		}
		found = append(found, o)
	}
	return found
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 5 {
		log.Fatal("usage: oracle SEED COUNT MOST CASES")
	}
	var numbers [3]int
	for i := range numbers {
		number, err := strconv.Atoi(os.Args[i+1])
		if err != nil {
			log.Fatal(err)
		}
		numbers[i] = number
	}
	if err := utilfeature.DefaultMutableFeatureGate.Set(os.Getenv("GATES")); err != nil {
		log.Fatal(err)
	}
	out := writer{numbers[2], map[string]int{}}
	bases := append(cases(os.Args[4]), samples()...)
	for _, base := range bases {
		out.write(base)
	}
	random := rand.New(rand.NewPCG(uint64(numbers[0]), 0))
	for range numbers[1] {
		out.write(mutated(random, bases[random.IntN(len(bases))]))
	}
}
