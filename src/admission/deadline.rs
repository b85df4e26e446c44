//! The time that a request may take.

use std::time::Duration;

use rayfit_core::seconds::go_duration;

/// The timeout that API servers use where a webhook sets none.
const DEFAULT: Duration = Duration::from_secs(10);

/// The longest timeout that API servers allow.
const LONGEST: Duration = Duration::from_secs(30);

/// The units in which API servers write it. They round what is left up to whole seconds, so smaller ones do not
/// occur.
const UNITS: [(&str, f64); 4] = [("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 0.001)];

/// The time to work on a request whose URL has this query: four fifths of the `timeout` that API
/// servers add (`timeout=3s`), so that there is time left to answer that it was not enough.
pub fn of_query(query: Option<&str>) -> Duration {
    let timeout = query
        .unwrap_or_default()
        .split('&')
        .find_map(|pair| pair.strip_prefix("timeout="))
        .and_then(|text| go_duration(text, &UNITS))
        .filter(|timeout| !timeout.is_zero())
        .unwrap_or(DEFAULT);
    timeout.min(LONGEST) * 4 / 5
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
