//! A trace that can be given to others: names replaced by what only the holder of a key can make.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac::{HMAC_SHA256, Key, sign};

use super::job::{Job, Trace};

/// Bytes that are kept of a hash: too many for two names of a trace to share them.
const KEPT: usize = 12;

/// The trace with its name, and the ids and names of all jobs, hashed with a key. Equal names stay
/// equal under one key. The names of resources stay: clusters are known by them.
#[must_use]
pub fn hash_names(trace: &Trace, key: &[u8]) -> Trace {
    // With a key, since names are few and easily guessed: a plain hash could be found by trying
    // names.
    let key = Key::new(HMAC_SHA256, key);
    let hashed = |name: &str| -> String {
        let tag = sign(&key, name.as_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(tag.as_ref().get(..KEPT).unwrap_or_default())
    };
    let jobs = trace.jobs.iter().map(|job| Job {
        id: hashed(&job.id),
        name: hashed(&job.name),
        ..job.clone()
    });
    Trace {
        name: hashed(&trace.name),
        jobs: jobs.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::trace::job::{JobDemand, JobShape};

    #[test]
    fn names_are_hashed_with_the_key_and_all_else_stays() {
        let job = Job {
            id: "t".to_owned(),
            name: "secret".to_owned(),
            at: 1.0,
            after: Vec::new(),
            seconds: 2.0,
            demand: JobDemand::Task(JobShape::new()),
            memory: Vec::new(),
            output: 0,
            retries: 3,
        };
        let trace = Trace {
            name: "secret".to_owned(),
            jobs: vec![job.clone()],
        };
        let hashed = hash_names(&trace, b"key");
        assert_eq!(hashed.name.len(), 16);
        assert_eq!(hashed.name, hashed.jobs[0].name, "equal names stay equal");
        assert_ne!(hashed.name, hash_names(&trace, b"other").name);
        assert_eq!(hashed, hash_names(&trace, b"key"));
        let named = Job {
            id: job.id.clone(),
            name: job.name.clone(),
            ..hashed.jobs[0].clone()
        };
        assert_eq!(named, job);
    }
}
