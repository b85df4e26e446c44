//! Reads from the API server, which may be out of date: those of a server whose cache stands still, while
//! watches go on with another one.

use std::rc::Rc;

use serde_json::Value;

use crate::simulate::world::World;
use crate::snapshot::{ClusterId, OwnPods};

impl World {
    /// From now on reads show what is so now, whatever changes, or again what is so.
    pub fn hold_reads(&mut self, are_held: bool) {
        self.trouble.reads = are_held.then(|| self.stored());
    }

    /// The RayCluster and its pods as they are read.
    pub fn read_objects(&self) -> (Value, OwnPods) {
        match &self.trouble.reads {
            Some(then) => {
                let cluster = then.cluster.object().clone();
                let (id, pods) = (ClusterId::of(&cluster), then.pods.iter().cloned());
                (cluster, OwnPods::divide(id, pods).0)
            }
            None => (self.stored_cluster().clone(), self.own_pods()),
        }
    }

    /// The watchers read the RayCluster. One of an older version is not believed.
    pub fn read_cluster(&mut self) {
        match &self.trouble.reads {
            Some(then) => {
                let then = Rc::clone(&then.cluster);
                self.hear_of_cluster(then);
            }
            None => self.learn_cluster(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::simulate::settings::WorldSettings;
    use crate::simulate::trace::Trace;
    use crate::simulate::world::World;

    fn world() -> World {
        let container =
            json!({"name": "ray", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}});
        let cluster = json!({"spec": {
            "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [container]}}},
            "workerGroupSpecs": [{"groupName": "cpu", "replicas": 1, "minReplicas": 0, "maxReplicas": 3,
                "rayStartParams": {}, "template": {"spec": {"containers": [container]}}}],
        }});
        let trace = Trace {
            name: String::new(),
            jobs: Vec::new(),
        };
        World::new(&cluster, &trace, WorldSettings::default()).unwrap()
    }

    fn set_replicas(world: &mut World, replicas: i64) {
        world.edit(|cluster| cluster["spec"]["workerGroupSpecs"][0]["replicas"] = json!(replicas));
    }

    fn known(world: &World) -> i64 {
        let replicas = &world.view.cluster.object()["spec"]["workerGroupSpecs"][0]["replicas"];
        replicas.as_i64().unwrap()
    }

    /// The generation, by which a scaler tells that what it has read is older than what it knows.
    fn read(world: &World) -> (i64, usize) {
        let (cluster, pods) = world.read_objects();
        let generation = cluster["metadata"]["generation"].as_i64().unwrap();
        (generation, pods.iter().count())
    }

    #[test]
    fn reads_show_what_was_so_and_are_not_believed_where_more_is_known() {
        let mut world = world();
        world.learn_cluster();
        world.hold_reads(true);
        let held = read(&world);
        assert_eq!(held, (1, 1), "the head's pod");
        set_replicas(&mut world, 2);
        world.operate();
        assert_eq!(read(&world), held);
        world.learn_cluster();
        world.read_cluster();
        assert_eq!(known(&world), 2, "watches had shown more");
        set_replicas(&mut world, 3);
        world.hold_reads(false);
        world.read_cluster();
        assert_eq!((known(&world), read(&world)), (3, (3, 3)));
    }
}
