//! Demand and capacity over time: of the whole cluster, of each worker group and of each node pool.

use serde::Serialize;

/// How much of one resource is waited for, used, there, and paid for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CurveLevel {
    /// What is waited for. Of a group: by jobs that fit a pod of it, though others may get them. Of a node
    /// pool: by pods that are to get a node of it.
    pub waiting: f64,
    /// What is used: by jobs; of a node pool what its pods request.
    pub used: f64,
    /// What Ray has; of a node pool what its ready nodes have.
    pub total: f64,
    /// What is paid for: worker pods; of a node pool all nodes that were asked for.
    pub paid: f64,
}

/// One point of the curves of the whole cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// Seconds since the beginning.
    pub at: f64,
    /// The CPUs that jobs wait for.
    pub waiting: f64,
    /// The CPUs that jobs use.
    pub used: f64,
    /// The CPUs that Ray has.
    pub total: f64,
    /// The cores of worker pods.
    pub cores: f64,
    /// The Kubernetes nodes.
    pub nodes: f64,
    /// The jobs that wait.
    pub waiting_jobs: f64,
    /// The bytes of memory.
    pub memory: CurveLevel,
    /// The bytes of memory that processes of jobs hold, whatever they asked for. 0 where the trace does
    /// not say it.
    pub memory_held: f64,
    /// The GPUs.
    pub gpus: CurveLevel,
}

/// One point of the curves of a worker group or a node pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartPoint {
    /// Seconds since the beginning.
    pub at: f64,
    /// The cores.
    pub cpus: CurveLevel,
    /// The bytes of memory.
    pub memory: CurveLevel,
    /// The GPUs.
    pub gpus: CurveLevel,
    /// The pods of the group that have a Kubernetes node; the nodes of the pool.
    pub count: f64,
}

/// The curves of a worker group or a node pool. Each point holds until the next one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PartCurve {
    /// Its name; what is beyond [`MOST_PARTS`] is drawn as one.
    pub name: String,
    /// The points.
    pub points: Vec<PartPoint>,
}

/// How many groups, and how many node pools, have curves of their own.
pub const MOST_PARTS: usize = 8;

/// The name of all that are beyond [`MOST_PARTS`]. No object has such a name.
pub const OTHERS: &str = "(others)";

/// The most points of the whole cluster that are kept; then every second one is left out.
const MOST_POINTS: usize = 2048;

/// The most points of a group or a node pool that are kept.
const MOST_PART_POINTS: usize = 256;

/// Something that holds from a moment on.
trait Timed: Copy + PartialEq {
    /// The moment, in seconds.
    fn at(&self) -> f64;
    /// The same levels at another moment.
    fn moved_to(self, at: f64) -> Self;
}

impl Timed for Point {
    fn at(&self) -> f64 {
        self.at
    }

    fn moved_to(self, at: f64) -> Self {
        Self { at, ..self }
    }
}

impl Timed for PartPoint {
    fn at(&self) -> f64 {
        self.at
    }

    fn moved_to(self, at: f64) -> Self {
        Self { at, ..self }
    }
}

/// Points in the order of time, of which not too many are kept.
#[derive(Debug, Clone, Default)]
struct Series<T> {
    points: Vec<T>,
    /// The shortest time between two points, in seconds.
    spacing: f64,
}

impl<T: Timed> Series<T> {
    /// Adds a point, if the last one is not too near: else it takes the values of the new one.
    fn add(&mut self, point: T, most: usize) {
        match self.points.last_mut() {
            Some(last) if point.at() - last.at() <= self.spacing => {
                *last = point.moved_to(last.at());
            }
            _ => self.points.push(point),
        }
        if self.points.len() > most {
            let span = point.at() - self.points.first().map_or(0.0, Timed::at);
            #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
            let half = most as f64 / 2.0;
            self.spacing = span / half;
            let mut last = f64::NEG_INFINITY;
            let spacing = self.spacing;
            self.points.retain(|point| {
                let keeps = point.at() - last >= spacing;
                last = if keeps { point.at() } else { last };
                keeps
            });
        }
    }
}

/// All curves of a simulation.
#[derive(Debug, Clone, Default)]
pub struct Curves {
    cluster: Series<Point>,
    groups: Vec<(String, Series<PartPoint>)>,
    pools: Vec<(String, Series<PartPoint>)>,
}

impl Curves {
    /// Adds a point of the whole cluster, and one of each part that has changed.
    pub(in crate::simulate::world) fn add(
        &mut self,
        point: Point,
        groups: Vec<Part>,
        pools: Vec<Part>,
    ) {
        self.cluster.add(point, MOST_POINTS);
        add_parts(&mut self.groups, groups);
        add_parts(&mut self.pools, pools);
    }

    /// The curve of the whole cluster, counted from a moment.
    pub fn cluster(&self, from: f64) -> Vec<Point> {
        let points = self.cluster.points.iter();
        let from = |point: &Point| point.moved_to(point.at - from);
        points.map(from).collect()
    }

    /// The curves of the worker groups, counted from a moment.
    pub fn groups(&self, from: f64) -> Vec<PartCurve> {
        parts(&self.groups, from)
    }

    /// The curves of the node pools, counted from a moment.
    pub fn pools(&self, from: f64) -> Vec<PartCurve> {
        parts(&self.pools, from)
    }
}

/// How a group or a node pool is at a moment.
#[derive(Debug, Clone)]
pub(in crate::simulate::world) struct Part {
    pub(in crate::simulate::world) name: String,
    pub(in crate::simulate::world) point: PartPoint,
}

fn add_parts(known: &mut Vec<(String, Series<PartPoint>)>, parts: Vec<Part>) {
    for Part { name, point } in parts {
        let at = known.iter().position(|(known, _)| *known == name);
        let at = at.unwrap_or_else(|| {
            known.push((name, Series::default()));
            known.len() - 1
        });
        let series = &mut known[at].1;
        let is_same = |last: &PartPoint| last.moved_to(point.at) == point;
        if !series.points.last().is_some_and(is_same) {
            series.add(point, MOST_PART_POINTS);
        }
    }
}

fn parts(known: &[(String, Series<PartPoint>)], from: f64) -> Vec<PartCurve> {
    let curve = |(name, series): &(String, Series<PartPoint>)| PartCurve {
        name: name.clone(),
        points: (series.points.iter())
            .map(|point| point.moved_to(point.at - from))
            .collect(),
    };
    known.iter().map(curve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at: f64, used: f64) -> PartPoint {
        let cpus = CurveLevel {
            used,
            ..CurveLevel::default()
        };
        PartPoint {
            at,
            cpus,
            ..PartPoint::default()
        }
    }

    #[test]
    fn points_are_bounded_and_what_stays_the_same_is_one() {
        let mut curves = Curves::default();
        for second in 0..100_000 {
            let at = f64::from(second);
            let part = |name: &str, used| Part {
                name: name.to_owned(),
                point: point(at, used),
            };
            let groups = vec![part("busy", at), part("calm", 1.0)];
            let cluster = Point {
                at,
                ..Point::default()
            };
            curves.add(cluster, groups, Vec::new());
        }
        let (cluster, groups) = (curves.cluster(10.0), curves.groups(10.0));
        assert!((MOST_POINTS / 3..=MOST_POINTS).contains(&cluster.len()));
        assert!((MOST_PART_POINTS / 3..=MOST_PART_POINTS).contains(&groups[0].points.len()));
        assert_eq!(groups[1].points, [point(-10.0, 1.0)]);
        assert!(
            groups[0]
                .points
                .is_sorted_by(|one, other| one.at < other.at)
        );
        let last = groups[0].points.last().unwrap();
        assert!(last.cpus.used > 99_998.0, "the last value stays: {last:?}");
    }
}
