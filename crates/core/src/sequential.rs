//! Answers from a noisy oracle: how many runs it takes to believe a yes or a no.
//!
//! Wald's sequential probability ratio test. A question has two possible rates of hits, a low one if
//! the answer is no and a high one if it is yes, and runs are made until one of them is believed.

use crate::outcome::Outcome;

/// The probability that an answer of either kind is wrong, if the two rates are right.
pub const ERROR: f64 = 0.01;

/// The lowest rate that is assumed: nothing happens never, or always.
const LEAST: f64 = 0.01;
const MOST: f64 = 0.99;

/// The number of times that something was seen, and not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Runs that showed it.
    pub hits: u32,
    /// Runs that did not.
    pub misses: u32,
}

impl Tally {
    /// Failures as hits and passes as misses; what is neither does not count.
    pub fn of_failures<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Self {
        let mut tally = Self::default();
        for passed in outcomes.filter_map(Outcome::passed) {
            let count = if passed {
                &mut tally.misses
            } else {
                &mut tally.hits
            };
            *count += 1;
        }
        tally
    }

    /// All runs.
    pub fn runs(self) -> u32 {
        self.hits + self.misses
    }

    /// The share of hits; 0 without runs.
    pub fn rate(self) -> f64 {
        if self.runs() == 0 {
            return 0.0;
        }
        f64::from(self.hits) / f64::from(self.runs())
    }

    /// The runs of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
        }
    }

    /// Whether all runs agree.
    pub fn is_steady(self) -> bool {
        self.hits == 0 || self.misses == 0
    }
}

/// The test of one question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sequential {
    low: f64,
    high: f64,
    error: f64,
}

impl Sequential {
    /// A test between the rate of hits that means no and the one that means yes.
    ///
    /// # Panics
    /// If the rate that means no is not the lower one.
    pub fn between(low: f64, high: f64) -> Self {
        let (low, high) = (low.max(LEAST), high.min(MOST));
        assert!(low < high, "a no has fewer hits than a yes");
        let error = ERROR;
        Self { low, high, error }
    }

    /// A test that is wrong a hundred times more rarely, for the final answer.
    #[must_use]
    pub fn strict(self) -> Self {
        let error = self.error / 100.0;
        Self { error, ..self }
    }

    /// The answer, if the runs so far suffice for one.
    pub fn answer(self, tally: Tally) -> Option<bool> {
        let bound = ((1.0 - self.error) / self.error).ln();
        let weight = f64::from(tally.hits) * (self.high / self.low).ln()
            + f64::from(tally.misses) * ((1.0 - self.high) / (1.0 - self.low)).ln();
        // Both bounds are met exactly by one run of something that always or never happens.
        let slack = 1e-9;
        if weight >= bound - slack {
            Some(true)
        } else if weight <= slack - bound {
            Some(false)
        } else {
            None
        }
    }
}

/// The probability of at least the second tally's hits, if both have the same rate (Fisher's exact test, one-sided).
pub fn chance_of(first: Tally, second: Tally) -> f64 {
    let hits = first.hits + second.hits;
    let runs = first.runs() + second.runs();
    let most = hits.min(second.runs());
    let ways = |of: u32, taken: u32| -> f64 {
        (0..taken)
            .map(|at| (f64::from(of - at) / f64::from(taken - at)).ln())
            .sum()
    };
    (second.hits..=most)
        .filter(|in_second| hits - in_second <= first.runs())
        .map(|in_second| {
            let one = ways(second.runs(), in_second) + ways(first.runs(), hits - in_second);
            (one - ways(runs, hits)).exp()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(hits: u32, misses: u32) -> Tally {
        Tally { hits, misses }
    }

    #[test]
    fn one_run_answers_where_nothing_is_left_to_chance() {
        let sure = Sequential::between(0.0, 1.0);
        assert_eq!(sure.answer(tally(0, 0)), None);
        assert_eq!(sure.answer(tally(1, 0)), Some(true));
        assert_eq!(sure.answer(tally(0, 1)), Some(false));
    }

    #[test]
    fn a_polluter_at_forty_per_cent_takes_two_hits_or_ten_misses() {
        // By hand: ln 99 = 4.60; a hit weighs ln 40 = 3.69, a miss ln (0.6/0.99) = -0.501.
        let noisy = Sequential::between(0.0, 0.4);
        assert_eq!(noisy.answer(tally(1, 0)), None);
        assert_eq!(noisy.answer(tally(2, 0)), Some(true));
        assert_eq!(noisy.answer(tally(0, 9)), None);
        assert_eq!(noisy.answer(tally(0, 10)), Some(false));
    }

    #[test]
    fn fishers_test_has_the_values_worked_by_hand() {
        // The lady tasting tea: all four of eight right, 1/70; three right, 17/70.
        assert!((chance_of(tally(0, 4), tally(4, 0)) - 1.0 / 70.0).abs() < 1e-12);
        assert!((chance_of(tally(1, 3), tally(3, 1)) - 17.0 / 70.0).abs() < 1e-12);
        assert!((chance_of(tally(0, 3), tally(0, 3)) - 1.0).abs() < 1e-12);
    }
}
