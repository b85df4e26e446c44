//! Amounts of logical resources, as Ray counts them.

use std::borrow::Borrow;
use std::collections::BTreeMap;

/// Ray counts in ten-thousandths (`FixedPoint`, `fixed_point.h`).
const UNIT: f64 = 10_000.0;

/// The names of all resources of a simulation, each with a number.
#[derive(Debug, Clone, Default)]
pub struct ResourceNames(Vec<String>);

/// Amounts by the number of the resource, in ten-thousandths. What is missing at the end is 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bundle(Vec<i64>);

impl ResourceNames {
    /// The number of a name, which it gets if it is new.
    pub fn number(&mut self, name: &str) -> usize {
        self.find(name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        })
    }

    /// The number of a name that is in use.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|one| one == name)
    }

    /// Reads amounts by name.
    pub fn bundle(
        &mut self,
        amounts: impl IntoIterator<Item = (impl AsRef<str>, impl Borrow<f64>)>,
    ) -> Bundle {
        let mut bundle = Bundle::default();
        for (name, amount) in amounts {
            let number = self.number(name.as_ref());
            bundle.set(number, fixed(*amount.borrow()));
        }
        bundle
    }

    /// The amounts by name, without those that are 0.
    pub fn amounts(&self, bundle: &Bundle) -> BTreeMap<String, f64> {
        let named = self.0.iter().zip(&bundle.0);
        named
            // The GCS leaves out what is used up.
            .filter(|(_, amount)| **amount != 0)
            .map(|(name, amount)| (name.clone(), float(*amount)))
            .collect()
    }
}

impl Bundle {
    /// The amount of a resource.
    pub fn get(&self, number: usize) -> i64 {
        self.0.get(number).copied().unwrap_or(0)
    }

    /// Sets the amount of a resource.
    pub fn set(&mut self, number: usize, amount: i64) {
        if self.0.len() <= number {
            self.0.resize(number + 1, 0);
        }
        self.0[number] = amount;
    }

    /// Checks that this bundle is nowhere above the other one.
    pub fn fits(&self, free: &Self) -> bool {
        let mut amounts = self.0.iter().enumerate();
        amounts.all(|(number, amount)| *amount <= 0 || *amount <= free.get(number))
    }

    /// Checks that this bundle is nowhere above what is left of `total` beside `used`.
    pub fn fits_beside(&self, used: &Self, total: &Self) -> bool {
        let mut amounts = self.0.iter().enumerate();
        amounts.all(|(number, amount)| {
            *amount <= 0 || *amount <= total.get(number).saturating_sub(used.get(number))
        })
    }

    /// Adds a bundle.
    pub fn add(&mut self, other: &Self) {
        for (number, amount) in other.0.iter().enumerate() {
            self.set(number, self.get(number).saturating_add(*amount));
        }
    }

    /// Subtracts a bundle.
    pub fn subtract(&mut self, other: &Self) {
        for (number, amount) in other.0.iter().enumerate() {
            self.set(number, self.get(number).saturating_sub(*amount));
        }
    }

    /// The largest part that is used of any resource of a node, from 0 to 1, where `self` is what is
    /// used and `total` what there is.
    pub fn utilisation(&self, total: &Self) -> f64 {
        let parts = total.0.iter().enumerate().filter(|(_, total)| **total > 0);
        let part = |(number, total): (usize, &i64)| self.get(number) as f64 / *total as f64;
        parts.map(part).fold(0.0, f64::max)
    }

    /// The sum of all amounts, by which bundles are compared in size.
    pub fn weight(&self) -> i64 {
        self.0
            .iter()
            .fold(0, |sum, amount| sum.saturating_add(*amount))
    }
}

/// An amount in ten-thousandths, to the nearest one.
pub fn fixed(amount: f64) -> i64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float is cast to the nearest number that there is"
    )]
    let fixed = (amount * UNIT).round() as i64;
    fixed
}

/// An amount of ten-thousandths.
pub fn float(amount: i64) -> f64 {
    amount as f64 / UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_and_given_back_leaves_nothing() {
        let mut names = ResourceNames::default();
        let total = names.bundle([("CPU", 1.0), ("memory", 8e9)]);
        let task = names.bundle([("CPU", 0.1)]);
        let mut free = total.clone();
        for _ in 0..10 {
            assert!(task.fits(&free));
            free.subtract(&task);
        }
        assert!(!task.fits(&free));
        assert_eq!(
            names.amounts(&free),
            BTreeMap::from([("memory".into(), 8e9)])
        );
        for _ in 0..10 {
            free.add(&task);
        }
        assert_eq!(free, total);
        assert!(!names.bundle([("GPU", 1.0)]).fits(&free));
    }
}
