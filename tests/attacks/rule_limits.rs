//! Who may write one Ray object tries to get more CPU, memory or GPUs than a policy allows, by what Ray
//! does not see: each is denied as an honest object would be, and honest objects pass beside it.

use serde_json::{Value, json};

use crate::review_support::{cluster, create};
use crate::rules::{denied, server};

/// A worker group of 3 whose pods are of that spec.
fn with_pod(spec: &Value, params: &Value) -> Value {
    let mut object = cluster();
    object["spec"]["workerGroupSpecs"][0]["template"] = json!({"spec": spec});
    object["spec"]["workerGroupSpecs"][0]["rayStartParams"] = params.clone();
    object["spec"]["workerGroupSpecs"][0]["replicas"] = 3.into();
    object
}

/// A container of one CPU and 2Gi, and what else is given.
fn container(more: &Value) -> Value {
    let mut limits = json!({"cpu": "1", "memory": "2Gi"});
    for (name, amount) in more.as_object().unwrap() {
        limits[name] = amount.clone();
    }
    json!({"name": "ray", "image": "rayproject/ray:2.60.0",
        "resources": {"requests": limits, "limits": limits}})
}

fn plain() -> Value {
    container(&json!({}))
}

#[tokio::test]
async fn no_name_and_no_container_hides_gpus_from_their_limit() {
    let server = server(&[json!({"limits": {"maxGpusPerCluster": 4}})]);
    let zero = json!({"num-gpus": "0"});
    let gpu = |name: &str, count: i64| container(&json!({name: count}));
    let mut sidecar = gpu("nvidia.com/gpu", 2);
    sidecar["restartPolicy"] = "Always".into();
    let mut asked = plain();
    asked["resources"]["requests"]["nvidia.com/gpu"] = 2.into();
    let none = json!({});
    for (what, pod, params) in [
        (
            "Ray is told of none",
            json!({"containers": [gpu("nvidia.com/gpu", 2)]}),
            &zero,
        ),
        (
            "slices",
            json!({"containers": [gpu("nvidia.com/mig-1g.5gb", 7)]}),
            &none,
        ),
        (
            "shares",
            json!({"containers": [gpu("nvidia.com/gpu.shared", 2)]}),
            &none,
        ),
        ("AMD", json!({"containers": [gpu("amd.com/gpu", 2)]}), &zero),
        (
            "Intel",
            json!({"containers": [gpu("gpu.intel.com/i915", 2)]}),
            &none,
        ),
        (
            "Gaudi",
            json!({"containers": [gpu("habana.ai/gaudi", 8)]}),
            &none,
        ),
        (
            "TPU",
            json!({"containers": [gpu("google.com/tpu", 4)]}),
            &none,
        ),
        (
            "Neuron",
            json!({"containers": [gpu("aws.amazon.com/neuroncore", 2)]}),
            &none,
        ),
        (
            "Ascend",
            json!({"containers": [gpu("huawei.com/Ascend910", 2)]}),
            &none,
        ),
        (
            "the second container",
            json!({"containers": [plain(), gpu("nvidia.com/gpu", 2)]}),
            &none,
        ),
        (
            "an init container",
            json!({"initContainers": [gpu("nvidia.com/gpu", 8)],
            "containers": [plain()]}),
            &none,
        ),
        (
            "a sidecar",
            json!({"initContainers": [sidecar], "containers": [plain()]}),
            &none,
        ),
        (
            "a request alone",
            json!({"containers": [plain(), asked]}),
            &none,
        ),
        (
            "two kinds",
            json!({"containers": [container(
            &json!({"nvidia.com/gpu": 1, "amd.com/gpu": 1}))]}),
            &none,
        ),
        (
            "Ray alone",
            json!({"containers": [plain()]}),
            &json!({"num-gpus": "2"}),
        ),
    ] {
        let message = denied(&server, &create(&with_pod(&pod, params))).await;
        assert!(message.contains("RF504"), "{what}: {message}");
    }
    for honest in [
        json!({"containers": [gpu("nvidia.com/gpu", 1)]}),
        json!({"initContainers": [gpu("nvidia.com/gpu", 1)], "containers": [gpu("nvidia.com/gpu", 1)]}),
        json!({"containers": [container(&json!({"example.com/license": 9}))]}),
    ] {
        assert_eq!(
            denied(&server, &create(&with_pod(&honest, &none))).await,
            "",
            "{honest}"
        );
    }
}

#[tokio::test]
async fn no_container_and_no_missing_limit_makes_a_pod_larger_than_allowed() {
    let sizes = json!({"limits": {"maxCpuPerPod": 4, "maxMemoryPerPod": "8Gi"}});
    let server = server(&[sizes]);
    let big = container(&json!({"cpu": "64"}));
    let mut sidecar = big.clone();
    sidecar["restartPolicy"] = "Always".into();
    let without = |place: &str, key: &str| {
        let mut container = plain();
        let pointer = format!("/resources/{place}");
        let amounts = container.pointer_mut(&pointer).unwrap();
        amounts.as_object_mut().unwrap().remove(key);
        container
    };
    let mut nothing = plain();
    nothing["resources"] = json!({});
    for (what, pod) in [
        (
            "the second container",
            json!({"containers": [plain(), big]}),
        ),
        (
            "an init container",
            json!({"initContainers": [big], "containers": [plain()]}),
        ),
        (
            "a sidecar",
            json!({"initContainers": [sidecar], "containers": [plain()]}),
        ),
        (
            "the pod's own resources",
            json!({"resources": {"limits": {"cpu": "64"}},
            "containers": [plain()]}),
        ),
        (
            "the pod's own requests",
            json!({"resources": {"requests": {"memory": "1Ti"}},
            "containers": [plain()]}),
        ),
        (
            "the overhead",
            json!({"overhead": {"cpu": "64"}, "containers": [plain()]}),
        ),
        (
            "no CPU limit",
            json!({"containers": [without("limits", "cpu")]}),
        ),
        (
            "no memory limit",
            json!({"containers": [plain(), without("limits", "memory")]}),
        ),
        (
            "no resources at all",
            json!({"containers": [plain(), nothing]}),
        ),
        (
            "nothing in an init container",
            json!({"initContainers": [nothing],
            "containers": [plain()]}),
        ),
        (
            "a limit of nothing",
            json!({"containers": [container(&json!({"cpu": "0"}))]}),
        ),
    ] {
        let message = denied(&server, &create(&with_pod(&pod, &json!({"num-cpus": "1"})))).await;
        assert!(message.contains("RF503"), "{what}: {message}");
    }
    for honest in [
        json!({"containers": [plain()]}),
        json!({"containers": [container(&json!({"cpu": "2"})), container(&json!({"cpu": "2"}))]}),
        json!({"initContainers": [container(&json!({"cpu": "4"}))], "containers": [plain()]}),
        json!({"resources": {"limits": {"cpu": "2", "memory": "4Gi"}},
            "containers": [plain(), {"name": "x", "image": "x"}]}),
    ] {
        let object = with_pod(&honest, &json!({}));
        assert_eq!(denied(&server, &create(&object)).await, "", "{honest}");
    }
}

#[tokio::test]
async fn a_cluster_has_no_more_than_it_may_by_containers_without_limits() {
    let server =
        server(&[json!({"limits": {"maxCpuPerCluster": 10, "maxMemoryPerCluster": "64Gi"}})]);
    let mut unlimited = plain();
    unlimited["resources"]["limits"] = json!({"memory": "2Gi"});
    for pod in [
        json!({"containers": [plain(), container(&json!({"cpu": "3"}))]}),
        json!({"initContainers": [container(&json!({"cpu": "5"}))], "containers": [plain()]}),
        json!({"containers": [unlimited]}),
    ] {
        let message = denied(&server, &create(&with_pod(&pod, &json!({})))).await;
        assert!(message.contains("RF506"), "{pod}: {message}");
    }
    let honest = json!({"containers": [container(&json!({"cpu": "3"}))]});
    assert_eq!(
        denied(&server, &create(&with_pod(&honest, &json!({})))).await,
        ""
    );
}
