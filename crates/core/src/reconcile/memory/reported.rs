//! The last report to Ray, so that only changes are reported.

use crate::seconds::is_recent;

/// Seconds for which an unchanged report is not sent again.
// After that it is, because a GCS that was restarted has forgotten it.
const AGAIN_S: f64 = 30.0;

/// A report to Ray as it was last sent, and when.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reported<T>(Option<(T, f64)>);

impl<T: Default + PartialEq> Reported<T> {
    /// Returns whether this has to be reported: it is new, or was reported too long ago.
    pub(crate) fn wants(&self, report: &T, now: f64) -> bool {
        let Some((reported, at)) = &self.0 else {
            return true;
        };
        // A GCS that was restarted has an empty report by itself, so that one is not sent again.
        reported != report || (*report != T::default() && !is_recent(*at, AGAIN_S, now))
    }

    pub(crate) fn note(&mut self, report: T, now: f64) {
        self.0 = Some((report, now));
    }
}

#[cfg(test)]
mod tests {
    use crate::reconcile::memory::reported::*;

    #[test]
    fn an_equal_report_is_sent_once_and_then_seldom() {
        let mut reported = Reported::default();
        let wants = |reported: &Reported<_>, text: &str, now| reported.wants(&text.to_owned(), now);
        assert!(wants(&reported, "", 0.0), "a predecessor's report goes");
        reported.note(String::new(), 0.0);
        assert!(!wants(&reported, "", 1000.0), "nothing, again");
        assert!(wants(&reported, "no", 1.0));
        reported.note("no".to_owned(), 1.0);
        assert!(!wants(&reported, "no", 30.9));
        assert!(wants(&reported, "no", 31.0));
    }
}
