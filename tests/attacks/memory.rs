//! Whatever is sent, the memory that is kept, and the most that is used meanwhile, stays within half of the limits. It
//! is counted, and not timed.

use allocation_counter::measure;
use rayfit::admission::limits::AdmissionLimits;
use rayfit::controller::observe::Key;
use rayfit::controller::observe::kept::{KeptObject, StoredKind};
use rayfit::controller::observe::store::Store;
use rayfit_core::manifests::names::WEBHOOK_MEMORY;
use rayfit_core::ray::ReconcileMode;
use rayfit_core::snapshot::allowed::AllowedCluster;
use serde_json::{Value, json};

fn cluster(mode: Option<&str>) -> Value {
    let mut object = json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": { "namespace": "ray", "name": "demo", "uid": "u", "resourceVersion": "1", "annotations": {} },
        "spec": { "workerGroupSpecs": [] } });
    if let Some(mode) = mode {
        object["metadata"]["annotations"]["rayfit.dev/reconcile"] = mode.into();
    }
    object
}

/// How many bytes are kept of an object that a watch brings, and how many are in use at the most meanwhile.
fn taken(store: &mut Store, object: &Value) -> (u64, u64) {
    let text = object.to_string();
    let used = measure(|| {
        let AllowedCluster(read) = serde_json::from_str(&text).unwrap();
        let kept = KeptObject::of(StoredKind::RayClusters, &read);
        drop(read);
        store.put_cluster(&kept);
    });
    (
        u64::try_from(used.bytes_current).unwrap_or(0),
        used.bytes_max,
    )
}

fn demo() -> Key {
    Key::new("ray", "demo").unwrap()
}

fn groups(count: usize) -> Value {
    let group = |number: usize| {
        json!({ "groupName": format!("g{number}"), "replicas": 0, "minReplicas": 0,
        "maxReplicas": 1, "template": { "spec": { "containers": [{ "name": "r" }] } } })
    };
    (0..count).map(group).collect()
}

/// A RayCluster of so many groups, of which one has so many workers leave.
fn leaving(count: usize, workers: usize) -> Value {
    let names = (0..workers).map(|number| format!("demo-cpu-worker-{number:024}"));
    let mut object = cluster(Some("central"));
    object["spec"]["workerGroupSpecs"] = groups(count);
    object["spec"]["workerGroupSpecs"][0]["scaleStrategy"] =
        json!({ "workersToDelete": names.collect::<Vec<_>>() });
    object
}

/// 1.2 MiB of labels, of a mode that is none, and of a specification: four hundred of these ended the controller.
#[test]
fn of_what_nobody_asked_to_scale_only_identity_and_mode_are_kept() {
    let labels = || -> Value {
        let labels = (0..12_000).map(|number| (format!("ray.io/{number:094}"), json!("")));
        Value::Object(labels.collect())
    };
    let mut labelled = cluster(None);
    labelled["metadata"]["labels"] = labels();
    let mut nonsense = cluster(Some(&"x".repeat(1_200_000)));
    nonsense["metadata"]["annotations"]["rayfit.dev/scaled-by"] = "nobody".into();
    let mut large = cluster(Some("ray"));
    large["spec"]["workerGroupSpecs"] = groups(5_000);
    let mut asked = cluster(Some("central"));
    asked["metadata"]["labels"] = labels();
    for object in [labelled, nonsense, large, asked] {
        let mut store = Store::default();
        let (kept, _) = taken(&mut store, &object);
        assert!(kept < 2 << 10, "{kept} bytes");
        let cluster = store.clusters.get(&demo()).unwrap();
        assert!(cluster.mode != ReconcileMode::Central && store.texts(&demo()).is_none());
    }
}

#[test]
fn nothing_is_built_of_what_is_not_read() {
    let mut object = cluster(Some("central"));
    object["metadata"]["managedFields"] = vec![json!([[], {}]); 200_000].into();
    let (kept, most) = taken(&mut Store::default(), &object);
    assert!(kept < 4 << 10 && most < 64 << 10, "{kept} and {most} bytes");
}

/// The limit of the controller is 512 MiB, and two such clusters are worked on at a time.
#[test]
fn eleven_thousand_groups_are_not_scaled_and_the_most_that_are_leave_room() {
    let mut object = cluster(Some("central"));
    object["spec"]["workerGroupSpecs"] = groups(11_000);
    let mut store = Store::default();
    let (kept, most) = taken(&mut store, &object);
    assert!(kept < 4 << 10, "{kept} bytes");
    assert!(most < 64 << 20, "{} MiB", most >> 20);
    assert!(store.texts(&demo()).is_none());

    object["spec"]["workerGroupSpecs"] = groups(4_000);
    let mut store = Store::default();
    let (kept, _) = taken(&mut store, &object);
    assert!(kept < 1 << 20, "{kept} bytes");
    let texts = store.texts(&demo()).unwrap();
    let used = measure(|| drop(texts.read()));
    assert!(used.bytes_max < 64 << 20, "{} MiB", used.bytes_max >> 20);
}

/// A RayCluster of the most workers is still scaled while all of them leave: only who scales it takes their names out.
#[test]
fn ten_thousand_workers_that_leave_are_kept() {
    let mut store = Store::default();
    let (kept, _) = taken(&mut store, &leaving(100, 10_000));
    assert!(kept < 600 << 10, "{kept} bytes");
    assert!(store.texts(&demo()).is_some());
}

/// Two hundred RayClusters of nearly the most that is kept of one, in one namespace: it gets its share and no more, and
/// what goes makes room again.
#[test]
fn a_namespace_of_large_ray_clusters_takes_no_more_than_its_share() {
    let mut large = leaving(1, 11_000);
    let mut put = |store: &mut Store, namespace: &str, name: &str| {
        large["metadata"]["namespace"] = namespace.into();
        large["metadata"]["name"] = name.into();
        large["metadata"]["uid"] = name.into();
        store.put_cluster(&KeptObject::of(StoredKind::RayClusters, &large));
        store.texts(&Key::new(namespace, name).unwrap()).is_some()
    };
    let mut store = Store::default();
    let used = measure(|| {
        let kept = (0..200).filter(|number| put(&mut store, "team-a", &format!("c{number}")));
        assert!((100..200).contains(&kept.count()));
    });
    let kept = u64::try_from(used.bytes_current).unwrap();
    assert!(kept < 66 << 20, "{} MiB", kept >> 20);
    assert!(!put(&mut store, "team-a", "late") && put(&mut store, "team-b", "late"));
    for number in 0..2 {
        let key = Key::new("team-a", &format!("c{number}")).unwrap();
        store.remove_cluster(&key, None);
    }
    assert!(put(&mut store, "team-a", "later"));
}

/// Whoever has twenty namespaces full of large RayClusters takes their equal parts of what there is for all, and a
/// namespace that comes late with a usual RayCluster still has it scaled.
#[test]
fn many_namespaces_of_large_ray_clusters_leave_room_for_the_others() {
    let mut large = leaving(1, 11_000);
    let mut store = Store::default();
    let used = measure(|| {
        for number in 0..400 {
            let namespace = format!("team-{}", number % 20);
            large["metadata"]["namespace"] = namespace.into();
            large["metadata"]["name"] = format!("c{number}").into();
            large["metadata"]["uid"] = format!("c{number}").into();
            store.put_cluster(&KeptObject::of(StoredKind::RayClusters, &large));
        }
    });
    let kept = u64::try_from(used.bytes_current).unwrap();
    assert!(
        ((100 << 20)..(132 << 20)).contains(&kept),
        "{} MiB",
        kept >> 20
    );
    store.put_cluster(&KeptObject::of(
        StoredKind::RayClusters,
        &cluster(Some("central")),
    ));
    assert!(store.texts(&demo()).is_some());
}

#[test]
fn the_limits_of_webhooks_take_half_of_their_memory() {
    let limits = AdmissionLimits::default();
    let connections = 4_096 * (40 << 10);
    // A body is copied once when all of it has arrived; facts and the program take the rest.
    let all = connections + limits.bodies + 2 * limits.body + limits.trees + (64 << 20);
    assert!(all <= WEBHOOK_MEMORY / 2, "{} MiB", all >> 20);
}
