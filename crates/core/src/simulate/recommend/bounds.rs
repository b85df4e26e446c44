//! Bounds that users set to the search.

use std::str::FromStr;

use crate::simulate::vary::PolicyField;
use crate::text::nearest;

/// A field that the search sets, by the name by which users know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "camelCase")]
pub enum SearchField {
    /// `idleTimeoutSeconds` of the cluster, and of each worker group where several are scaled by
    /// version 2 of the autoscaler.
    IdleTimeoutSeconds,
    /// `minReplicas` of a worker group.
    MinReplicas,
    /// `maxReplicas` of a worker group.
    MaxReplicas,
    /// The cores of a worker pod; its memory goes with them.
    PodCpus,
    /// The cores up to which a pod may grow in place; its memory goes with them.
    ResizeCpus,
    /// A field of the RayPolicy that holds for the cluster.
    #[strum(transparent)]
    Policy(PolicyField),
}

/// The bounds of one field, for every group that has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The field.
    pub field: SearchField,
    /// The lowest and the highest value; `None` leaves the field as it is.
    pub range: Option<(f64, f64)>,
}

impl SearchField {
    /// All fields.
    pub const ALL: [Self; 8] = [
        Self::IdleTimeoutSeconds,
        Self::MinReplicas,
        Self::MaxReplicas,
        Self::PodCpus,
        Self::ResizeCpus,
        Self::Policy(PolicyField::KeepSmallSeconds),
        Self::Policy(PolicyField::ShrinkAfterSeconds),
        Self::Policy(PolicyField::HeadroomCpus),
    ];

    /// The lowest and the highest value that it can have, and how to say that.
    fn extent(self) -> (f64, f64, &'static str) {
        match self {
            Self::IdleTimeoutSeconds
            | Self::Policy(PolicyField::KeepSmallSeconds | PolicyField::ShrinkAfterSeconds) => {
                (0.0, 86_400.0, "whole seconds from 0 to 86400")
            }
            Self::MinReplicas | Self::MaxReplicas | Self::Policy(PolicyField::HeadroomCpus) => {
                (0.0, 100_000.0, "whole numbers from 0 to 100000")
            }
            Self::PodCpus | Self::ResizeCpus => (1.0, 10_000.0, "whole numbers from 1 to 10000"),
        }
    }
}

impl FromStr for Bounds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            format!(
                "{text:?} is not FIELD=LOW..HIGH or FIELD=today: write for example idleTimeoutSeconds=30..600"
            )
        };
        let (name, range) = text.split_once('=').ok_or_else(form)?;
        let mut fields = SearchField::ALL.into_iter();
        let field = fields.find(|field| <&str>::from(field) == name);
        let field = field.ok_or_else(|| {
            let names = SearchField::ALL.map(<&str>::from);
            let near = nearest(name, names).map(|near| format!(" (did you mean {near}?)"));
            let (near, names) = (near.unwrap_or_default(), names.join(", "));
            format!("there is no field {name:?} to search{near}; there are: {names}")
        })?;
        if range == "today" {
            return Ok(Self { field, range: None });
        }
        let (low, high) = range.split_once("..").ok_or_else(form)?;
        let (least, most, form) = field.extent();
        let number = |text: &str| {
            let value: Option<f64> = text.trim().parse().ok();
            value.filter(|value| (least..=most).contains(value) && value.fract() == 0.0)
        };
        let range = number(low).zip(number(high));
        let range = range.filter(|(low, high)| low <= high).ok_or_else(|| {
            let range = format!("{low}..{high}");
            format!("{name} cannot be within {range:?}: write {form}, the lower one first")
        })?;
        Ok(Self {
            field,
            range: Some(range),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_a_field_and_two_numbers_or_today() {
        let read: Bounds = "maxReplicas=2..40".parse().unwrap();
        assert_eq!(
            (read.field, read.range),
            (SearchField::MaxReplicas, Some((2.0, 40.0)))
        );
        let today: Bounds = "podCpus=today".parse().unwrap();
        assert_eq!(today.range, None);
        for (wrong, says) in [
            ("idleTimeoutSeconds", "is not FIELD=LOW..HIGH"),
            ("idleTimeoutSeconds=60", "is not FIELD=LOW..HIGH"),
            ("idleTimeoutSecond=1..2", "did you mean idleTimeoutSeconds?"),
            ("minReplicas=3..2", "the lower one first"),
            ("minReplicas=0.5..2", "whole numbers from 0"),
            ("podCpus=0..2", "whole numbers from 1"),
            ("idleTimeoutSeconds=NaN..9", "whole seconds from 0"),
            ("idleTimeoutSeconds=1..1e9", "whole seconds from 0"),
        ] {
            let error = wrong.parse::<Bounds>().unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
