//! A token bucket: a burst, and then one token after the other. Pure.

/// The rate that a bucket allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EventRate {
    /// The tokens that can be taken at once after a quiet time.
    pub burst: f64,
    /// The seconds until the next token after that.
    pub every_s: f64,
}

/// How much of a rate is used up. A new bucket is unused.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bucket {
    used: f64,
    at: f64,
}

impl Bucket {
    /// Takes a token, if there is one. `now` is in seconds of any clock that only goes forward.
    pub fn take(&mut self, rate: EventRate, now: f64) -> bool {
        self.refill(rate, now);
        let has = self.wait_s(rate, now) <= 0.0;
        if has {
            self.used += 1.0;
        }
        has
    }

    /// The seconds until there is a token.
    pub fn wait_s(&self, rate: EventRate, now: f64) -> f64 {
        let mut then = *self;
        then.refill(rate, now);
        ((then.used + 1.0 - rate.burst) * rate.every_s).max(0.0)
    }

    /// Whether the bucket is full again.
    pub fn is_unused(&self, rate: EventRate, now: f64) -> bool {
        let mut then = *self;
        then.refill(rate, now);
        then.used <= 0.0
    }

    fn refill(&mut self, rate: EventRate, now: f64) {
        let passed = (now - self.at).max(0.0);
        self.used = (self.used - passed / rate.every_s).max(0.0);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::controller::events::bucket::*;

    const RATE: EventRate = EventRate {
        burst: 3.0,
        every_s: 10.0,
    };

    #[test]
    fn a_burst_and_then_one_after_the_other() {
        let mut bucket = Bucket::default();
        let taken = |bucket: &mut Bucket, now| (0..9).filter(|_| bucket.take(RATE, now)).count();
        assert_eq!(taken(&mut bucket, 100.0), 3);
        assert_eq!(taken(&mut bucket, 109.9), 0);
        assert_eq!(taken(&mut bucket, 110.0), 1);
        assert!((bucket.wait_s(RATE, 112.0) - 8.0).abs() < 1e-9);
        assert!(!bucket.is_unused(RATE, 130.0) && bucket.is_unused(RATE, 140.0));
        assert_eq!(
            taken(&mut bucket, 1000.0),
            3,
            "no more than the burst is saved up"
        );
    }

    proptest! {
        #[test]
        fn never_more_than_the_rate(steps in prop::collection::vec(0.0..20.0_f64, 1..200)) {
            let (mut bucket, mut now, mut taken) = (Bucket::default(), 0.0, 0.0);
            for step in steps {
                now += step;
                taken += f64::from(u8::from(bucket.take(RATE, now)));
                prop_assert!(taken <= RATE.burst + now / RATE.every_s + 1e-6);
            }
        }
    }
}
