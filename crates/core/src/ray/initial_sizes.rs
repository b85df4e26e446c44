//! The annotation of a RayCluster that says how large new pods of its groups are made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::resource::CpuAndMemory;
use crate::quantity::Quantity;

/// The annotation of the RayCluster.
pub const ANNOTATION: &str = "rayfit.dev/initial-sizes";

/// The seconds for which a size holds once it is written. KubeRay makes pods within seconds; one
/// that it makes later, in place of another or because a quota refused it until then, is made as
/// its template says.
pub const HELD_S: f64 = 60.0;

/// The most groups that the annotation has sizes for.
pub const MOST_GROUPS: usize = 64;

/// The longest annotation that is read, in bytes: a name of a group has 63 at the most.
const LONGEST: usize = MOST_GROUPS * 256;

/// The sizes of new pods, by group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InitialSizes(BTreeMap<String, HeldSize>);

/// A size, as limits or, without limits, as requests, and until when it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HeldSize {
    cpu: String,
    memory: String,
    /// The end, in whole seconds since 1970.
    until: i64,
}

impl InitialSizes {
    /// Reads the annotation. What cannot be read says nothing: it is written by what scales the
    /// cluster, and anybody else who may change the object can write into it.
    pub fn parse(text: &str) -> Self {
        if text.is_empty() || text.len() > LONGEST {
            return Self::default();
        }
        let mut sizes: BTreeMap<String, HeldSize> = serde_json::from_str(text).unwrap_or_default();
        sizes.retain(|_, size| size.read().is_some());
        Self(sizes)
    }

    /// The annotation's text, `None` if it would say nothing.
    pub fn text(&self) -> Option<String> {
        let text = (!self.0.is_empty()).then(|| serde_json::to_string(&self.0));
        text?.ok()
    }

    /// The size that new pods of the group are made with at `now`, in seconds since 1970.
    pub fn of_group(&self, group: &str, now: f64) -> Option<CpuAndMemory> {
        let size = self.0.get(group)?;
        size.holds(now).then(|| size.read()).flatten()
    }

    /// Sets the size of a group from `now` on, or takes it away. Sizes that do not hold any more go
    /// too. Above [`MOST_GROUPS`] groups, another one gets none.
    pub fn set(&mut self, group: &str, size: Option<CpuAndMemory>, now: f64) {
        self.0.retain(|name, size| name != group && size.holds(now));
        if let Some(size) = size.filter(|_| self.0.len() < MOST_GROUPS) {
            #[expect(clippy::cast_possible_truncation, reason = "whole seconds since 1970")]
            let until = (now + HELD_S).ceil() as i64;
            let size = HeldSize {
                cpu: Quantity::from_milli(size.cpu_milli).to_string(),
                memory: Quantity::from_units(size.memory_bytes).to_string(),
                until,
            };
            self.0.insert(group.to_owned(), size);
        }
    }
}

impl HeldSize {
    fn read(&self) -> Option<CpuAndMemory> {
        let cpu = Quantity::parse(&self.cpu).ok()?.ceil_milli();
        let memory = Quantity::parse(&self.memory).ok()?.ceil_units();
        Some(CpuAndMemory {
            cpu_milli: i64::try_from(cpu).ok().filter(|cpu| *cpu > 0)?,
            memory_bytes: i64::try_from(memory).ok().filter(|memory| *memory > 0)?,
        })
    }

    /// True while the size holds. One that is said to hold for longer than any is written for does not:
    /// somebody else has written it, or a clock was set back.
    fn holds(&self, now: f64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
        let rest = self.until as f64 - now;
        (0.0..=2.0 * HELD_S).contains(&rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: f64 = 1_764_243_000.0;

    fn size(cores: i64) -> CpuAndMemory {
        CpuAndMemory {
            cpu_milli: cores * 1000,
            memory_bytes: cores << 30,
        }
    }

    #[test]
    fn a_size_holds_for_a_while_and_is_read_as_it_was_written() {
        let mut sizes = InitialSizes::default();
        sizes.set("a", Some(size(6)), NOW);
        let read = InitialSizes::parse(&sizes.text().unwrap());
        assert_eq!(read, sizes);
        assert_eq!(read.of_group("a", NOW + HELD_S - 1.0), Some(size(6)));
        assert_eq!(read.of_group("a", NOW + HELD_S + 1.0), None, "too late");
        assert_eq!(read.of_group("a", NOW - 9e6), None, "a clock set back");
        assert_eq!(read.of_group("b", NOW), None);
    }

    #[test]
    fn old_sizes_go_with_the_next_change_and_the_last_one_takes_the_annotation_away() {
        let mut sizes = InitialSizes::default();
        sizes.set("a", Some(size(6)), NOW);
        sizes.set("b", Some(size(4)), NOW + 50.0);
        assert_eq!(sizes.of_group("a", NOW + 50.0), Some(size(6)));
        sizes.set("b", Some(size(2)), NOW + 100.0);
        assert_eq!(sizes.0.len(), 1);
        sizes.set("b", None, NOW + 100.0);
        assert_eq!(sizes.text(), None);
    }

    #[test]
    fn hostile_text_says_nothing() {
        let long = format!(
            r#"{{"a":{{"cpu":"6","memory":"1Gi","until":{}}}}}"#,
            " ".repeat(LONGEST)
        );
        let texts = [
            "",
            "{",
            "[]",
            "null",
            r#"{"a":1}"#,
            long.as_str(),
            r#"{"a":{"cpu":"-6","memory":"1Gi","until":1764243000}}"#,
            r#"{"a":{"cpu":"6","memory":"0","until":1764243000}}"#,
            r#"{"a":{"cpu":"6","memory":"x","until":1764243000}}"#,
            r#"{"a":{"cpu":"9e99","memory":"1Gi","until":1764243000}}"#,
        ];
        for text in texts {
            assert_eq!(InitialSizes::parse(text), InitialSizes::default(), "{text}");
        }
    }

    #[test]
    fn the_annotation_is_bounded() {
        let mut sizes = InitialSizes::default();
        for group in 0..2 * MOST_GROUPS {
            sizes.set(&format!("{group:0>63}"), Some(size(i64::MAX >> 40)), NOW);
        }
        let text = sizes.text().unwrap();
        assert_eq!(sizes.0.len(), MOST_GROUPS);
        assert_eq!(InitialSizes::parse(&text), sizes, "{} bytes", text.len());
    }
}
