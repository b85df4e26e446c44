//! How long a request may take.

use std::time::Duration;

/// The timeout that API servers use where a webhook sets none.
const DEFAULT: Duration = Duration::from_secs(10);

/// The longest timeout that API servers allow.
const LONGEST: Duration = Duration::from_secs(30);

/// The time to work on a request whose URL has this query: four fifths of the `timeout` that API
/// servers add (`timeout=3s`), so that there is time left to answer that it was not enough.
pub fn of_query(query: Option<&str>) -> Duration {
    let timeout = query
        .unwrap_or_default()
        .split('&')
        .find_map(|pair| pair.strip_prefix("timeout="))
        .and_then(go_duration)
        .filter(|timeout| !timeout.is_zero())
        .unwrap_or(DEFAULT);
    timeout.min(LONGEST) * 4 / 5
}

/// A duration as Go writes it: `1m30s`, `1.5s`, `500ms`.
fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let number_end = rest.find(|char: char| !char.is_ascii_digit() && char != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after
            .find(|char: char| char.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let seconds = number.parse::<f64>().ok()? * unit_seconds(unit)?;
        total = total.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
        rest = next;
    }
    Some(total)
}

fn unit_seconds(unit: &str) -> Option<f64> {
    match unit {
        "h" => Some(3600.0),
        "m" => Some(60.0),
        "s" => Some(1.0),
        // API servers round what is left of the timeout up to whole seconds, so smaller units do
        // not occur.
        "ms" => Some(0.001),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn four_fifths_of_what_the_api_server_waits() {
        for (query, millis) in [
            (Some("timeout=3s"), 2400),
            (Some("a=b&timeout=500ms"), 400),
            (Some("timeout=1m0s"), 24_000),
            (Some("timeout=1.5s"), 1200),
            (Some("timeout=0s"), 8000),
            (Some("timeout=soon"), 8000),
            (Some("timeout="), 8000),
            (Some("x"), 8000),
            (None, 8000),
        ] {
            assert_eq!(of_query(query), Duration::from_millis(millis), "{query:?}");
        }
    }

    proptest! {
        #[test]
        fn any_query_gives_a_deadline(query: String) {
            let deadline = of_query(Some(&query));
            prop_assert!(deadline > Duration::ZERO && deadline <= LONGEST);
        }

        #[test]
        fn any_timeout_gives_a_deadline(timeout in "[0-9.]{0,30}(s|ms|m|h)?[0-9.]{0,5}s?") {
            of_query(Some(&format!("timeout={timeout}")));
        }
    }
}
