//! Reads from the API server, which may be out of date: those of a server whose cache stands still, while
//! watches go on with another one.

use std::rc::Rc;

use crate::simulate::world::World;

impl World {
    /// From now on reads of the RayCluster show what is so now, whatever changes, or again what is so.
    pub fn hold_reads(&mut self, are_held: bool) {
        self.trouble.reads = are_held.then(|| self.stored().cluster);
    }

    /// The watchers read the RayCluster. One of an older version is not believed.
    pub fn read_cluster(&mut self) {
        match &self.trouble.reads {
            Some(then) => {
                let then = Rc::clone(then);
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

    #[test]
    fn reads_show_what_was_so_and_are_not_believed_where_more_is_known() {
        let mut world = world();
        world.learn_cluster();
        world.hold_reads(true);
        set_replicas(&mut world, 2);
        world.read_cluster();
        assert_eq!(known(&world), 1, "as it was");
        world.learn_cluster();
        world.read_cluster();
        assert_eq!(known(&world), 2, "watches had shown more");
        set_replicas(&mut world, 3);
        world.hold_reads(false);
        world.read_cluster();
        assert_eq!(known(&world), 3);
    }
}
