//! A job as a file describes it, and what every description has to satisfy.

use super::error::{Place, TraceError};
use super::job::{Job, JobDemand, JobShape};
use crate::quantity::nearest_whole;
use crate::text::{is_obeyed, shown_text};

/// Most bytes of an id, a name, and the name of a resource.
pub(super) const NAME_BYTES: usize = 256;

/// The unit of Ray's amounts: it keeps four decimals. `FixedPoint` in
/// `src/ray/common/scheduling/fixed_point.h`.
pub(super) const RESOLUTION: f64 = 1e-4;

/// The most of a resource that Ray can hold: it counts four decimals in 64 bits.
pub(super) const MOST: f64 = 9e14;

/// The longest time, in seconds: thirty years.
pub(super) const LONGEST: f64 = 1e9;

/// Most resources of a shape.
const RESOURCES: usize = 64;

/// Most bundles of a placement group.
const BUNDLES: usize = 1_000;

/// Most moments at which the memory of a job is known.
const MOMENTS: usize = 10_000;

const AMOUNT: &str = "an amount is 0, or from 0.0001 to 9e14; of a GPU, above 1, a whole number";
const TIME: &str = "a time is from 0 to 1e9 seconds";
const NAME: &str = "it has 1 to 256 bytes, and no control characters";

/// A job as a file describes it: parents by id, and perhaps many alike.
#[derive(Debug, Clone)]
pub(super) struct JobDraft {
    /// Its place in the file.
    pub place: Place,
    /// The ids of those it waits for.
    pub after: Vec<String>,
    /// The number of equal jobs that it stands for; those of several alike get `#1`, `#2`, and so on behind the id.
    pub count: usize,
    /// The job, whose parents are not found yet.
    pub job: Job,
}

impl JobDraft {
    /// A job that begins with the trace and waits for nobody, with Ray's usual retries.
    pub(super) fn new(place: Place, id: String, demand: JobDemand) -> Self {
        let job = Job {
            name: id.clone(),
            id,
            at: 0.0,
            after: Vec::new(),
            seconds: 0.0,
            retries: demand.usual_retries(),
            demand,
            memory: Vec::new(),
            output: 0,
        };
        Self {
            place,
            after: Vec::new(),
            count: 1,
            job,
        }
    }

    /// Looks over every value, and leaves out amounts of 0, as Ray does.
    pub(super) fn check(&mut self) -> Result<(), TraceError> {
        let (place, job) = (&self.place, &mut self.job);
        name(place, "the id", &job.id)?;
        name(place, "name", &job.name)?;
        job.at = time(place, "at", job.at)?;
        job.seconds = time(place, "seconds", job.seconds)?;
        if self.count == 0 {
            return Err(place.wrong("count", "0", "it is 1 or more"));
        }
        match &mut job.demand {
            JobDemand::Task(amounts) | JobDemand::Actor(amounts) => shape(place, amounts)?,
            JobDemand::PlacementGroup { bundles, .. } => {
                if bundles.is_empty() {
                    return Err(place.missing("bundles", "a placement group has at least one"));
                }
                few(place, "bundles", bundles.len(), BUNDLES)?;
                for bundle in bundles {
                    shape(place, bundle)?;
                    if bundle.is_empty() {
                        let expected = "Ray refuses such a group";
                        return Err(place.wrong("a bundle", "empty", expected));
                    }
                }
            }
        }
        few(place, "moments in memory", job.memory.len(), MOMENTS)?;
        let mut last = None;
        for used in &mut job.memory {
            used.at = time(place, "a moment in memory", used.at)?;
            // The simulation takes the last moment that is past, which needs them in order.
            if last.is_some_and(|last| last >= used.at) {
                let expected = "moments in memory are in the order of time";
                return Err(place.wrong("a moment", &used.at.to_string(), expected));
            }
            last = Some(used.at);
        }
        Ok(())
    }
}

/// The bytes of a field, of an amount that a file has.
pub(super) fn bytes(place: &Place, field: &str, amount: f64) -> Result<u64, TraceError> {
    if !(0.0..=MOST).contains(&amount) {
        let expected = "bytes are from 0 to 9e14";
        return Err(place.wrong(field, &amount.to_string(), expected));
    }
    Ok(nearest_whole(amount))
}

/// A text from another tool as a name, without what would be refused in a name.
pub(super) fn as_name(text: &str) -> String {
    let mut name: String = text.chars().filter(|char| !is_obeyed(*char)).collect();
    name.truncate(name.floor_char_boundary(NAME_BYTES));
    name
}

fn name(place: &Place, what: &str, text: &str) -> Result<(), TraceError> {
    let is_name = (1..=NAME_BYTES).contains(&text.len()) && !text.contains(is_obeyed);
    if is_name {
        return Ok(());
    }
    Err(place.wrong(what, &shown_text(text), NAME))
}

fn time(place: &Place, what: &str, seconds: f64) -> Result<f64, TraceError> {
    if (0.0..=LONGEST).contains(&seconds) {
        // No difference is made between 0 and -0.
        return Ok(seconds + 0.0);
    }
    Err(place.wrong(what, &seconds.to_string(), TIME))
}

fn shape(place: &Place, shape: &mut JobShape) -> Result<(), TraceError> {
    shape.retain(|_, amount| *amount != 0.0);
    few(place, "resources of one shape", shape.len(), RESOURCES)?;
    for (resource, amount) in shape {
        name(place, "a resource", resource)?;
        // Ray counts GPUs one by one as soon as there is more than a part of one.
        let is_whole = resource != "GPU" || *amount <= 1.0 || amount.fract() == 0.0;
        if !(RESOLUTION..=MOST).contains(amount) || !is_whole {
            return Err(place.wrong(resource, &amount.to_string(), AMOUNT));
        }
    }
    Ok(())
}

fn few(place: &Place, what: &str, count: usize, most: usize) -> Result<(), TraceError> {
    if count <= most {
        return Ok(());
    }
    Err(place.many(most, what, "describe it by several jobs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(resource: &str, amount: f64) -> Result<JobShape, TraceError> {
        let shape = [(resource.to_owned(), amount)].into();
        let mut draft = JobDraft::new(Place::Whole, "t".to_owned(), JobDemand::Task(shape));
        draft.check()?;
        Ok(draft.job.demand.shapes()[0].clone())
    }

    #[test]
    fn amounts_that_ray_holds_are_taken_and_no_others() {
        for amount in [1e-4, 0.5, 1.5, 9e14] {
            assert_eq!(
                asks("CPU", amount).unwrap()["CPU"].to_bits(),
                amount.to_bits()
            );
        }
        assert_eq!(
            asks("CPU", -0.0),
            Ok(JobShape::new()),
            "Ray leaves it out too"
        );
        for amount in [1e-5, -1.0, f64::NAN, f64::INFINITY, 1e15] {
            assert!(asks("CPU", amount).is_err(), "{amount}");
        }
        assert!(asks("GPU", 0.5).is_ok() && asks("GPU", 2.0).is_ok());
        let error = asks("GPU", 1.5).unwrap_err().to_string();
        assert!(error.starts_with("GPU is 1.5; an amount"), "{error}");
        assert!(asks(&"x".repeat(NAME_BYTES + 1), 1.0).is_err());
    }

    #[test]
    fn names_of_others_are_made_to_fit() {
        assert_eq!(as_name("a\nb"), "ab");
        let long = as_name(&"ä".repeat(NAME_BYTES));
        assert_eq!(long.len(), NAME_BYTES);
        assert_eq!(as_name(&("a".to_owned() + &long)).len(), NAME_BYTES - 1);
    }
}
