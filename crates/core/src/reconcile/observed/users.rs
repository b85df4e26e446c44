//! The pace of asking the GCS for the users of a cluster that ends when it has none.

use crate::snapshot::gcs::RayUsers;

/// Seconds for which an answer serves by which the cluster is used.
// Ray's autoscaler asks as often.
const SERVES_S: f64 = 5.0;

/// The last answer to the question who uses a cluster.
///
/// The question is two more calls, and their answers grow with the cluster. While it is used it is
/// looked at several times a second, and it does not end. Once nobody uses it, each look asks anew, so
/// that it never ends by an old answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct LastUsers(Option<(RayUsers, f64)>);

impl LastUsers {
    /// The answer that still serves, by a clock in seconds that does not jump.
    pub fn serving(&self, now: f64) -> Option<RayUsers> {
        let (users, asked_at) = self.0?;
        let is_used = users.drivers > 0 || users.detached_actors > 0;
        // An answer that nobody uses the cluster may end it, and is always asked for anew.
        (is_used && now - asked_at < SERVES_S).then_some(users)
    }

    /// Takes in what the GCS answered; `None` if it did not.
    pub fn note(&mut self, users: Option<RayUsers>, now: f64) {
        self.0 = users.map(|users| (users, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_by_which_the_cluster_is_used_serves_again_and_not_for_long() {
        let mut last = LastUsers::default();
        assert_eq!(last.serving(0.0), None);
        let driven = RayUsers {
            drivers: 1,
            ..RayUsers::default()
        };
        let served = RayUsers {
            detached_actors: 1,
            ..RayUsers::default()
        };
        for users in [driven, served] {
            last.note(Some(users), 10.0);
            assert_eq!(last.serving(14.9), Some(users));
            assert_eq!(last.serving(15.0), None);
        }
        last.note(Some(driven), 10.0);
        last.note(None, 11.0);
        assert_eq!(last.serving(11.0), None, "the GCS did not answer");
        last.note(Some(RayUsers::default()), 11.0);
        assert_eq!(last.serving(11.0), None, "nobody uses it");
    }
}
