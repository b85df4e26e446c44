//! What a simulation has cost.

use crate::simulate::moment::Moment;

/// Amounts that are there at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Capacity {
    /// Cores of worker pods.
    pub cpus: f64,
    /// Bytes of worker pods.
    pub memory: f64,
    /// GPUs of worker pods.
    pub gpus: f64,
    /// Kubernetes nodes.
    pub nodes: f64,
}

/// Amounts over time: the unit is the amount times seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Integral {
    /// Core-seconds of worker pods, from when they are bound until they are gone.
    pub cpus: f64,
    /// Byte-seconds of worker pods.
    pub memory: f64,
    /// GPU-seconds of worker pods.
    pub gpus: f64,
    /// Seconds of Kubernetes nodes.
    pub nodes: f64,
}

/// One point of the curves of demand and capacity.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
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
}

/// The most points that are kept; then every second one is left out.
const MOST_POINTS: usize = 4096;

/// Adds up what a simulation costs.
#[derive(Debug, Clone, Default)]
pub struct CostLedger {
    /// What was paid for so far.
    pub integral: Integral,
    /// Worker pods that were made.
    pub pods_made: u64,
    /// Resizes that kubelets carried out.
    pub resizes: u64,
    /// Jobs that were running when their node was lost.
    pub harmed: u64,
    /// Processes of jobs that were killed because there was too little memory.
    pub out_of_memory: u64,
    /// Calls of the API server that the scaler made.
    pub api_calls: u64,
    /// Calls of the GCS that changed something.
    pub gcs_calls: u64,
    /// The curves.
    pub points: Vec<Point>,
    rate: Capacity,
    since: Moment,
    /// The shortest time between two points, in seconds.
    spacing: f64,
}

impl CostLedger {
    /// From now on it is this much.
    pub fn set(&mut self, rate: Capacity, now: Moment) {
        let seconds = now.since(self.since);
        self.integral.cpus += self.rate.cpus * seconds;
        self.integral.memory += self.rate.memory * seconds;
        self.integral.gpus += self.rate.gpus * seconds;
        self.integral.nodes += self.rate.nodes * seconds;
        self.rate = rate;
        self.since = now;
    }

    /// What is paid for now.
    pub fn rate(&self) -> Capacity {
        self.rate
    }

    /// Adds a point to the curves, if the last one is not too near. A point of the same moment takes
    /// the place of the one before.
    pub fn draw(&mut self, point: Point) {
        match self.points.last_mut() {
            Some(last) if point.at - last.at <= self.spacing => {
                *last = Point {
                    at: last.at,
                    ..point
                };
            }
            _ => self.points.push(point),
        }
        if self.points.len() > MOST_POINTS {
            let span = point.at - self.points.first().map_or(0.0, |first| first.at);
            #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
            let half = MOST_POINTS as f64 / 2.0;
            self.spacing = span / half;
            let mut last = f64::NEG_INFINITY;
            let spacing = self.spacing;
            self.points.retain(|point| {
                let keeps = point.at - last >= spacing;
                last = if keeps { point.at } else { last };
                keeps
            });
        }
    }
}
