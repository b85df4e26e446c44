//! Arithmetic of times that are numbers of seconds, and reading them.

use std::time::Duration;

/// For how many seconds what a watch shows may be older than what is stored, at the most: so long after the
/// last message it has been found dead, and another list could have been read. Where nothing has been heard for longer,
/// nothing is decided by it.
pub const WATCH_LAG_S: f64 = 155.0;

/// After how many doublings any longest wait of this program is exceeded. A shift by 32 bits would panic.
const DOUBLINGS: u32 = 16;

/// A first wait that is doubled so many times, and the longest one at the most.
pub fn doubled(first_s: f64, times: u32, longest_s: f64) -> f64 {
    (first_s * f64::from(1_u32 << times.min(DOUBLINGS))).min(longest_s)
}

/// Seconds as whole milliseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating, and never negative"
)]
pub fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0) as u64
}

/// The second in which a moment is.
#[expect(clippy::cast_possible_truncation, reason = "seconds since 1970")]
pub fn second_of(moment: f64) -> i64 {
    moment as i64
}

/// A duration as Go writes it (`1m30s`, `1.5s`, `500ms`), in units of so many seconds.
pub fn go_duration(text: &str, units: &[(&str, f64)]) -> Option<Duration> {
    let is_number = |char: char| char.is_ascii_digit() || char == '.';
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|char| !is_number(char))?);
        let (unit, next) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        let (_, seconds) = units.iter().find(|(name, _)| *name == unit)?;
        let seconds = number.parse::<f64>().ok()? * seconds;
        total = total.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
        rest = next;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let waits = [0, 1, 2, 3, u32::MAX].map(|times| doubled(60.0, times, 400.0).to_string());
        assert_eq!(waits, ["60", "120", "240", "400", "400"]);
    }

    #[test]
    fn what_is_too_small_or_too_large_saturates() {
        let seconds = [-1.0, 1.5, f64::INFINITY];
        assert_eq!(seconds.map(milliseconds), [0, 1500, u64::MAX]);
    }
}
