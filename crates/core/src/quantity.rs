//! Kubernetes quantities, exactly.
//!
//! A quantity is kept as a whole number of nanos (10⁻⁹), the finest step that the API server
//! stores, so `0.1 + 0.2` is `0.3` and `1.5Gi` loses nothing. Parsing is bounded: a text like
//! `1e999999999` is refused after looking at its exponent, never expanded.
//!
//! Grammar and suffixes are those of Kubernetes' `resource.ParseQuantity`
//! (apimachinery, `pkg/api/resource/quantity.go`).

use std::cmp::Ordering;
use std::fmt;

use serde_json::Number;

use crate::json::Json;

const NANOS: i128 = 1_000_000_000;

/// No quantity of a Ray cluster is longer than this; longer texts are refused unread.
const MAX_LEN: usize = 64;

/// Magnitudes from 10¹⁹ on are refused: the API server would silently lower them to 2⁶³-1.
const MAX_WHOLE: i128 = 10_i128.pow(19);

/// The whole number that is nearest to a float: 0 for one below 0, the largest for one that is too large.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded just before, and saturating"
)]
pub fn nearest_whole(value: f64) -> u64 {
    value.round() as u64
}

/// A number of JSON, without a needless `.0`.
pub fn json_number(value: f64) -> Number {
    // Below this every whole number is a number of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole and bounded")]
    let whole = value as i64;
    if value.fract() == 0.0 && value.abs() < EXACT {
        return whole.into();
    }
    Number::from_f64(value).unwrap_or_else(|| 0.into())
}

/// An exact amount of a resource, in nanos of its base unit (cores, bytes, pieces).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Quantity(i128);

/// The error of a text that is no usable quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum QuantityError {
    /// Nothing but blanks.
    #[error("it is empty")]
    Empty,
    /// Not `<number><suffix>`; the API server would refuse it too.
    #[error("it is not a number followed by one of n u m k M G T P E Ki Mi Gi Ti Pi Ei or nothing")]
    Syntax,
    /// Larger than 10¹⁹, or too long.
    #[error("it is more than any pod can have")]
    TooLarge,
}

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// A whole number of base units.
    pub const fn from_units(units: i64) -> Self {
        Self(units as i128 * NANOS)
    }

    /// A whole number of thousandths, as CPU is usually written.
    pub const fn from_milli(milli: i64) -> Self {
        Self(milli as i128 * (NANOS / 1000))
    }

    /// A whole number of nanos.
    pub const fn from_nanos(nanos: i128) -> Self {
        Self(nanos)
    }

    /// Nanos, exactly.
    pub const fn nanos(self) -> i128 {
        self.0
    }

    /// Reads a quantity as the API server does. Digits finer than a nano round away from zero,
    /// as there.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Empty);
        }
        if text.len() > MAX_LEN {
            return Err(QuantityError::TooLarge);
        }
        let (negative, unsigned) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (kibi, exponent) = scale(suffix)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(QuantityError::Syntax);
        }
        let fraction = fraction.trim_end_matches('0');
        let digits = whole.bytes().chain(fraction.bytes());
        let mut digits = digits.skip_while(|digit| *digit == b'0');
        // A number of so few digits fits into an i128.
        let first = digits.by_ref().take(36);
        let mantissa = first.fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0'));
        if mantissa == 0 {
            return Ok(Self::ZERO);
        }
        if digits.next().is_some() {
            return Err(QuantityError::TooLarge);
        }
        let scaled = mantissa.checked_mul(1024_i128.pow(kibi));
        let places = i32::try_from(fraction.len()).map_err(|_| QuantityError::TooLarge)?;
        let power = exponent.saturating_add(9).saturating_sub(places);
        let magnitude = shift(scaled.ok_or(QuantityError::TooLarge)?, power)?;
        if magnitude / NANOS >= MAX_WHOLE {
            return Err(QuantityError::TooLarge);
        }
        Ok(Self(if negative { -magnitude } else { magnitude }))
    }

    /// Reads a quantity from JSON, where a plain number is allowed too.
    pub fn from_json<'a>(value: impl Into<Json<'a>>) -> Result<Self, QuantityError> {
        match value.into() {
            Json::String(text) => Self::parse(text),
            // Manifests have `cpu: 2` without quotes, and the API server takes it.
            Json::Number(number) => Self::parse(&number.to_string()),
            _ => Err(QuantityError::Syntax),
        }
    }

    /// Base units, rounded up (away from zero), as Ray rounds CPU, GPU and memory.
    pub const fn ceil_units(self) -> i128 {
        div_away(self.0, NANOS)
    }

    /// Thousandths, rounded up (away from zero).
    pub const fn ceil_milli(self) -> i128 {
        div_away(self.0, NANOS / 1000)
    }

    /// Below zero.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Exactly zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum, or `None` beyond what can be represented.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The difference, or `None` beyond what can be represented.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// The product, or `None` beyond what can be represented.
    pub fn checked_mul(self, times: i64) -> Option<Self> {
        self.0.checked_mul(times.into()).map(Self)
    }

    /// Written as CPU: `1500m`, `2`.
    pub fn display_cpu(self) -> String {
        // Kubernetes allows no finer step of CPU than a thousandth of a core.
        let milli = self.ceil_milli();
        if milli % 1000 == 0 {
            (milli / 1000).to_string()
        } else {
            format!("{milli}m")
        }
    }

    /// Written as memory, with the largest binary suffix that divides it: `1536Mi`, `2Gi`.
    pub fn display_memory(self) -> String {
        let bytes = self.ceil_units();
        let (mut value, mut unit) = (bytes, "");
        for suffix in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
            if value == 0 || value % 1024 != 0 {
                break;
            }
            value /= 1024;
            unit = suffix;
        }
        format!("{value}{unit}")
    }
}

impl From<i64> for Quantity {
    fn from(units: i64) -> Self {
        Self::from_units(units)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0 / NANOS;
        let nanos = (self.0 % NANOS).unsigned_abs();
        // A whole part of 0 has lost the sign.
        let sign = if self.0 < 0 && whole == 0 { "-" } else { "" };
        if nanos == 0 {
            return write!(f, "{whole}");
        }
        let fraction = format!("{nanos:09}");
        write!(f, "{sign}{whole}.{}", fraction.trim_end_matches('0'))
    }
}

/// The factor of a suffix, as powers of 1024 and of ten.
fn scale(suffix: &str) -> Result<(u32, i32), QuantityError> {
    Ok(match suffix {
        "" => (0, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        // Alone it is a suffix; before digits it begins an exponent.
        "E" => (0, 18),
        "Ki" => (1, 0),
        "Mi" => (2, 0),
        "Gi" => (3, 0),
        "Ti" => (4, 0),
        "Pi" => (5, 0),
        "Ei" => (6, 0),
        _ => {
            let digits = suffix.strip_prefix(['e', 'E']);
            let digits = digits.ok_or(QuantityError::Syntax)?;
            let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
            if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
                return Err(QuantityError::Syntax);
            }
            (0, digits.parse().map_err(|_| QuantityError::TooLarge)?)
        }
    })
}

/// `value * 10^power`, rounded up.
fn shift(value: i128, power: i32) -> Result<i128, QuantityError> {
    match power.cmp(&0) {
        Ordering::Equal => Ok(value),
        Ordering::Greater => 10_i128
            .checked_pow(power.unsigned_abs())
            .and_then(|factor| value.checked_mul(factor))
            .ok_or(QuantityError::TooLarge),
        Ordering::Less => Ok(match 10_i128.checked_pow(power.unsigned_abs()) {
            Some(divisor) => div_away(value, divisor),
            // The value is not 0 here, and what is finer than a nano rounds up.
            None => 1,
        }),
    }
}

const fn div_away(value: i128, divisor: i128) -> i128 {
    let quotient = value / divisor;
    match value % divisor {
        0 => quotient,
        rest if rest > 0 => quotient + 1,
        _ => quotient - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nanos(text: &str) -> i128 {
        Quantity::parse(text).unwrap().0
    }

    #[test]
    fn reads_every_suffix_exactly() {
        assert_eq!(nanos("1"), NANOS);
        assert_eq!(nanos("500m"), NANOS / 2);
        assert_eq!(nanos("0.1") + nanos("0.2"), nanos("0.3"));
        assert_eq!(nanos("1.5Gi"), 3 * 512 * 1024 * 1024 * NANOS);
        assert_eq!(nanos("2e3"), nanos("2k"));
        assert_eq!(nanos("1E"), nanos("1e18"));
        assert_eq!(nanos("+4"), nanos("4"));
        assert_eq!(nanos(".5"), nanos("0.5"));
        assert_eq!(nanos("5."), nanos("5"));
        assert_eq!(nanos("1n"), 1);
        assert_eq!(
            nanos("0.0000000001"),
            1,
            "finer than a nano rounds up, as in the API server"
        );
        assert_eq!(nanos("-1m"), -NANOS / 1000);
    }

    #[test]
    fn refuses_what_the_api_server_refuses() {
        for text in [
            "eight", "32GB", "4gb", "1ki", "1.2.3", ".", "-", "1e", "1e+", " 1", "1 ",
        ] {
            assert_eq!(
                Quantity::parse(text),
                Err(QuantityError::Syntax),
                "{text:?}"
            );
        }
        assert_eq!(Quantity::parse(""), Err(QuantityError::Empty));
    }

    #[test]
    fn a_huge_exponent_is_refused_at_once() {
        for text in [
            "1e999999999",
            "9e99999999999999999999",
            "1e30",
            "99999999Ei",
        ] {
            assert_eq!(
                Quantity::parse(text),
                Err(QuantityError::TooLarge),
                "{text}"
            );
        }
        assert_eq!(nanos("1e-999999999"), 1);
        assert_eq!(nanos("0e999999999"), 0);
    }

    #[test]
    fn rounds_away_from_zero() {
        assert_eq!(Quantity::parse("1001m").unwrap().ceil_units(), 2);
        assert_eq!(Quantity::parse("-1001m").unwrap().ceil_units(), -2);
        assert_eq!(Quantity::parse("0").unwrap().ceil_units(), 0);
    }

    #[test]
    fn prints_for_people() {
        assert_eq!(Quantity::parse("1.5").unwrap().display_cpu(), "1500m");
        assert_eq!(Quantity::parse("2").unwrap().display_cpu(), "2");
        assert_eq!(Quantity::parse("1.5Gi").unwrap().display_memory(), "1536Mi");
        assert_eq!(Quantity::parse("1.25").unwrap().to_string(), "1.25");
        assert_eq!(Quantity::parse("-500m").unwrap().to_string(), "-0.5");
    }

    proptest! {
        #[test]
        fn never_panics(text in ".{0,80}") {
            let _ = Quantity::parse(&text);
        }

        #[test]
        fn display_round_trips(nanos in -10_i128.pow(25)..10_i128.pow(25)) {
            let quantity = Quantity(nanos);
            prop_assert_eq!(Quantity::parse(&quantity.to_string()), Ok(quantity));
        }
    }
}
