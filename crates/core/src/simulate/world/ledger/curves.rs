//! Demand and capacity over time.

use serde::Serialize;

/// Amounts of one resource that are waited for, used, there, and paid for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CurveLevel {
    /// The amount that jobs wait for.
    pub waiting: f64,
    /// The amount that jobs use.
    pub used: f64,
    /// The amount that Ray has.
    pub total: f64,
    /// The amount that is paid for: worker pods.
    pub paid: f64,
}

/// One point of the curves.
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

/// The most points that are kept; then every second one is left out.
const MOST_POINTS: usize = 2048;

/// Points in the order of time, of which not too many are kept. Each holds until the next one.
#[derive(Debug, Clone, Default)]
pub struct Curves {
    points: Vec<Point>,
    /// The shortest time between two points, in seconds.
    spacing: f64,
}

impl Curves {
    /// Adds a point, if the last one is not too near: else it takes the values of the new one.
    pub(in crate::simulate::world) fn add(&mut self, point: Point) {
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
            let half = MOST_POINTS as f64 / 2.0;
            // A long simulation gets coarser curves, and takes no more memory.
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

    /// The points, counted from a moment.
    pub fn points(&self, from: f64) -> Vec<Point> {
        let from = |point: &Point| Point {
            at: point.at - from,
            ..*point
        };
        self.points.iter().map(from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_bounded_and_the_last_value_stays() {
        let mut curves = Curves::default();
        for second in 0..100_000 {
            let at = f64::from(second);
            curves.add(Point {
                at,
                used: at,
                ..Point::default()
            });
        }
        let points = curves.points(10.0);
        assert!((MOST_POINTS / 3..=MOST_POINTS).contains(&points.len()));
        assert!(points.is_sorted_by(|one, other| one.at < other.at));
        let last = points.last().unwrap();
        assert!(last.used > 99_998.0, "{last:?}");
    }
}
