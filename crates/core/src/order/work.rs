//! The cost of runs, counted and not timed, so that a search takes the same way on a busy machine.

use std::iter::Sum;
use std::ops::{Add, Mul};
use std::time::Duration;

/// An amount of work. A run of a quick test is one, which is about a millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work(pub u64);

impl Work {
    /// To copy a VM and to end the copy, beside its tests.
    pub const COPY: Self = Self(10);
    /// To start an interpreter or a JVM that lists its tests.
    pub const START: Self = Self(1000);

    /// A run of a test, by the fastest that is known.
    ///
    /// A machine that does other things makes tests slower, but hardly ever all runs of one test. And a
    /// step is four times as wide as the one before, so that few tests are near the edge of one.
    pub fn of_test(fastest: Duration) -> Self {
        let mut edge = FIRST_STEP;
        let mut work = Self(1);
        while fastest >= edge && edge < LAST_STEP {
            // The middle of the step from here to four times as much, in milliseconds.
            work = Self(u64::try_from(2 * edge.as_millis()).unwrap_or(u64::MAX));
            edge *= 4;
        }
        work
    }

    /// The number of times that `each` goes into this.
    pub fn holds(self, each: Self) -> usize {
        usize::try_from(self.0 / each.0.max(1)).unwrap_or(usize::MAX)
    }
}

/// The time from which on a test counts for more than a quick one.
const FIRST_STEP: Duration = Duration::from_millis(4);
/// The time above which a test counts for no more.
const LAST_STEP: Duration = Duration::from_secs(3600);

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Mul<usize> for Work {
    type Output = Self;

    fn mul(self, times: usize) -> Self {
        Self(self.0.saturating_mul(times as u64))
    }
}

impl Sum for Work {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self(0), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_counts_by_wide_steps_of_its_fastest_run() {
        let of = |micros| Work::of_test(Duration::from_micros(micros)).0;
        assert_eq!([of(0), of(300), of(3_999)], [1, 1, 1]);
        assert_eq!([of(4_000), of(15_999)], [8, 8]);
        assert_eq!([of(16_000), of(1_023_999), of(1_024_000)], [32, 512, 2048]);
        assert!(Work::of_test(Duration::MAX) > Work::of_test(Duration::from_secs(600)));
    }

    #[test]
    fn work_adds_up_and_never_runs_over() {
        let all: Work = [Work::COPY, Work(3)].into_iter().sum();
        assert_eq!((all, all * 2, all.holds(Work(4))), (Work(13), Work(26), 3));
        assert_eq!(Work(u64::MAX) * 2 + Work(1), Work(u64::MAX));
        assert_eq!(Work(7).holds(Work(0)), 7);
    }
}
