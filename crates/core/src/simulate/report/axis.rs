//! Axes with round numbers.

use crate::quantity::nearest_whole;

/// The steps of time that people read easily, in seconds.
const TIME_STEPS: [f64; 19] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
    10_800.0, 21_600.0, 43_200.0, 86_400.0, 172_800.0,
];

/// The most steps of an axis.
const MOST_STEPS: f64 = 6.0;

/// A linear axis whose ends are ticks.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    low: f64,
    step: f64,
    steps: u64,
    /// The value of one unit of the numbers at the ticks.
    scale: f64,
    /// The unit of the numbers at the ticks.
    pub unit: &'static str,
}

impl Axis {
    /// An axis from 0 to at least `most`.
    pub fn from_zero(most: f64, unit: &'static str) -> Self {
        Self::of(0.0, most, round_step(most / MOST_STEPS), 1.0, unit)
    }

    /// An axis from 0 to at least `most` whole things, with few ticks.
    pub fn of_count(most: f64, unit: &'static str) -> Self {
        let step = round_step(most / 3.0).max(1.0);
        Self::of(0.0, most, step, 1.0, unit)
    }

    /// An axis on which everything from `least` to `most` is well apart. It begins at 0 if that is
    /// not far.
    pub fn around(least: f64, most: f64, unit: &'static str) -> Self {
        if least <= 0.5 * most || most <= 0.0 {
            return Self::from_zero(most, unit);
        }
        let span = (most - least).max(0.05 * most);
        Self::of(least, most, round_step(span / MOST_STEPS), 1.0, unit)
    }

    /// An axis of time, from 0 to at least so many seconds.
    pub fn of_time(seconds: f64) -> Self {
        let least_step = seconds / MOST_STEPS;
        let step = TIME_STEPS.into_iter().find(|step| *step >= least_step);
        let step = step.unwrap_or_else(|| 86_400.0 * round_step(least_step / 86_400.0));
        let (scale, unit) = match step {
            _ if step < 60.0 => (1.0, "s"),
            _ if step < 3600.0 => (60.0, "min"),
            _ if step < 86_400.0 => (3600.0, "h"),
            _ => (86_400.0, "days"),
        };
        Self::of(0.0, seconds, step, scale, unit)
    }

    fn of(least: f64, most: f64, step: f64, scale: f64, unit: &'static str) -> Self {
        // Of no points at all the ends are infinite.
        let (least, most) = if least.is_finite() && most.is_finite() {
            (least, most)
        } else {
            (0.0, step)
        };
        let low = (least / step).floor() * step;
        let steps = nearest_whole(((most - low) / step).ceil().clamp(1.0, 100.0));
        Self {
            low,
            step,
            steps,
            scale,
            unit,
        }
    }

    /// The values at the ticks, with the numbers to write there.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let tick = |number: u64| {
            let value = self.low + number as f64 * self.step;
            (value, number_of(value / self.scale))
        };
        (0..=self.steps).map(tick).collect()
    }

    /// The value at its end.
    pub fn end(&self) -> f64 {
        self.low + self.steps as f64 * self.step
    }

    /// The place of a value on the axis, from 0 to 1.
    pub fn part(&self, value: f64) -> f64 {
        let length = self.steps as f64 * self.step;
        ((value - self.low) / length).clamp(0.0, 1.0)
    }
}

/// The smallest of 1, 2, 5, 10, 20, ... and their parts that is not below `wanted`.
fn round_step(least_step: f64) -> f64 {
    let least_step = if least_step.is_finite() {
        least_step.clamp(1e-6, 1e18)
    } else {
        1.0
    };
    let mut unit = 1.0;
    while unit * 10.0 <= least_step {
        unit *= 10.0;
    }
    while unit > least_step {
        unit /= 10.0;
    }
    let steps = [1.0, 2.0, 5.0].into_iter().map(|factor| factor * unit);
    let mut steps = steps.filter(|step| *step >= least_step);
    steps.next().unwrap_or(10.0 * unit)
}

/// A number with as few digits as say it, to three significant ones below 100.
pub fn number_of(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    if text == "-0" { "0" } else { text }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|(_, number)| number).collect()
    }

    #[test]
    fn ticks_are_round_numbers_that_enclose_the_values() {
        assert_eq!(
            numbers(&Axis::from_zero(43.0, "CPUs")),
            ["0", "10", "20", "30", "40", "50"]
        );
        assert_eq!(
            numbers(&Axis::around(2.13, 2.31, "x")),
            ["2.1", "2.15", "2.2", "2.25", "2.3", "2.35"]
        );
        assert_eq!(numbers(&Axis::of_count(2.0, "nodes")), ["0", "1", "2"]);
        let time = Axis::of_time(700.0);
        assert_eq!(
            (numbers(&time), time.unit),
            (
                ["0", "2", "4", "6", "8", "10", "12"]
                    .map(str::to_owned)
                    .to_vec(),
                "min"
            )
        );
        assert!((time.part(360.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn nothing_and_far_too_much_have_axes_too() {
        for most in [0.0, 1e-300, 1e300, f64::NAN, f64::INFINITY, -1.0] {
            for axis in [
                Axis::from_zero(most, ""),
                Axis::around(most, most, ""),
                Axis::of_time(most),
                Axis::of_count(most, ""),
            ] {
                assert!((2..=101).contains(&axis.ticks().len()), "{most}: {axis:?}");
            }
        }
    }
}
