//! Whether the reruns here agree with the rate at which the history knows a failure: valid at any moment.
//!
//! The reruns must exclude that the test fails much more often now. "Much more often" is three times the highest rate
//! that the history's own numbers allow (Clopper and Pearson's limit at 5 %): 1 failure of 1000 runs allows 0.47 %, so
//! that 1.4 % must be excluded, and 3 of 60 allow 12 %. A short history allows nearly everything: there the limit is
//! three times the rate that was seen, and at least [`TOLD`], the rate that ten passes exclude. So what the history
//! knows at 5 % needs ten reruns without a failure, and what it knows at 0.1 % two hundred and thirty.
//!
//! It is excluded by a stake, as in `two_sample`: against a rate of at least the limit, each rerun multiplies it by how
//! much better a lower rate explains the rerun. If the test does fail so often, the stake exceeds 1/α with a
//! probability of at most α, however often somebody looks (Ville's inequality).

use super::runs::Runs;
use super::{Known, Open};
use crate::quantify::binomial::{at_least, highest_rate};
use crate::quantify::sample::Sample;
use crate::sequential::{Tally, chance_of};

/// How many runs the history must know, and how many must be made here, before they are held against each other.
const LEAST_KNOWN: u32 = 5;
const LEAST_HERE: u32 = 10;
/// The most reruns that are made for it.
const MOST_HERE: u32 = 1000;
/// After how many runs that did not come about no more are tried.
const GIVEN_UP: u32 = 3;
/// How many are made at least, before it is given up that they agree.
const WANTED: u32 = 100;
/// How many times as often as the history allows it may fail here before the history excuses nothing.
const TIMES: f64 = 3.0;
/// The rate that ten passes exclude: where the history is short, no lower one is asked for than three times its own.
const TOLD: f64 = 0.3;
/// The error of the history's highest rate, and the one below which the reruns are seen to fail more often.
const ERROR: f64 = 0.05;
/// The stake at which the limit is excluded: wrong in at most 5 %.
const ENOUGH: f64 = 20.0;
/// The rates that are bet on, as parts of the limit, with their shares of the stake. The last is the history's own.
const BETS: [(f64, f64); 3] = [(0.6, 0.0), (0.2, 1.0 / 6.0), (0.2, 1.0 / 3.0)];
/// Below this chance, more reruns are not expected to agree any more.
const HOPELESS: f64 = 0.01;

/// What the history was asked, and what it knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Recalled {
    NotYet,
    Nothing,
    Failure(Record),
}

impl Recalled {
    /// What it has said.
    pub(super) fn of(known: Option<Known>) -> Self {
        let record = known.and_then(Record::of);
        record.map_or(Self::Nothing, Self::Failure)
    }

    fn record(&self) -> Option<&Record> {
        match self {
            Self::Failure(record) => Some(record),
            Self::NotYet | Self::Nothing => None,
        }
    }

    /// The failure that it knows, if the runs here agree with its rate.
    pub(super) fn agreed(&self, here: &Runs) -> Option<Known> {
        let record = self.record()?;
        record.agrees(failures(here)).then_some(record.known)
    }

    /// Whether more runs here can make them agree.
    pub(super) fn may_agree(&self, here: &Runs) -> bool {
        let is_worth_it = |record: &Record| {
            here.total() < record.most_wanted() && !record.disagrees(failures(here))
        };
        here.not_run <= GIVEN_UP && self.record().is_some_and(is_worth_it)
    }

    /// Why it is not settled, where the runs on both sides tell nothing.
    pub(super) fn unsettled(&self, here: &Runs) -> Open {
        let record = self
            .record()
            .filter(|record| !record.disagrees(failures(here)));
        record.map_or(Open::NotSettled, |record| Open::TooRare {
            known: record.known,
            needs: record.passes_needed,
        })
    }
}

/// Runs as failures and passes: whatever failure it was speaks against innocence.
fn failures(here: &Runs) -> Tally {
    Tally {
        hits: here.alike + here.otherwise,
        misses: here.passed,
    }
}

/// What the history knows of a failure, made ready to be held against reruns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Record {
    known: Known,
    /// The rate that the reruns must exclude.
    limit: f64,
    /// How many reruns without a failure agree with the history; `None` if that is more than are ever made.
    passes_needed: Option<u32>,
}

impl Record {
    /// `None` if the history does not know the failure, or knows too few runs.
    fn of(known: Known) -> Option<Self> {
        if known.failures == 0 || known.runs < LEAST_KNOWN {
            return None;
        }
        let sample = Sample::new(u64::from(known.failures), u64::from(known.runs));
        let seen = (TIMES * tally(known).rate()).max(TOLD);
        let mut record = Self {
            known,
            limit: (TIMES * highest_rate(sample, ERROR)).min(seen),
            passes_needed: None,
        };
        record.passes_needed = record.count_passes();
        Some(record)
    }

    /// Whether reruns here, with all their failures as hits, show that it does not fail much more often than the
    /// history knows.
    fn agrees(&self, here: Tally) -> bool {
        here.runs() >= LEAST_HERE
            && stake(self.limit, here) >= ENOUGH
            && chance_of(tally(self.known), here) > ERROR
    }

    /// Whether the reruns show that it fails more often than the history knows, so that more of them are in vain.
    fn disagrees(&self, here: Tally) -> bool {
        let sample = Sample::new(u64::from(here.hits), u64::from(here.runs()));
        at_least(sample, self.limit) < HOPELESS || chance_of(tally(self.known), here) < HOPELESS
    }

    /// How many reruns are made for it: a failure among them costs many passes.
    fn most_wanted(&self) -> u32 {
        let most = |passes: u32| (4 * passes).clamp(WANTED, MOST_HERE);
        self.passes_needed.map_or(0, most)
    }

    fn count_passes(&self) -> Option<u32> {
        let is_enough = |misses: &u32| {
            self.agrees(Tally {
                hits: 0,
                misses: *misses,
            })
        };
        (LEAST_HERE..=MOST_HERE).find(is_enough)
    }
}

/// What the bets are worth after these reruns.
fn stake(limit: f64, here: Tally) -> f64 {
    if limit >= 1.0 {
        // No rate is as high.
        return f64::INFINITY;
    }
    let one = |(share, part): &(f64, f64)| {
        let rate = part * limit;
        let hit = (rate / limit).powf(f64::from(here.hits));
        let miss = ((1.0 - rate) / (1.0 - limit)).powf(f64::from(here.misses));
        // Where both leave what a float can say, the product is no number: then it is not believed.
        share * if hit > 0.0 { hit * miss } else { 0.0 }
    };
    BETS.iter().map(one).sum()
}

fn tally(known: Known) -> Tally {
    Tally {
        hits: known.failures,
        misses: known.runs.saturating_sub(known.failures),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(failures: u32, runs: u32) -> Record {
        let last = 0;
        let known = Known {
            runs,
            failures,
            last,
        };
        Record::of(known).expect("it is known")
    }

    fn here(hits: u32, runs: u32) -> Tally {
        Tally {
            hits,
            misses: runs - hits,
        }
    }

    #[test]
    fn ten_reruns_without_a_failure_agree_with_three_failures_of_sixty() {
        assert!(record(3, 60).agrees(here(0, 10)));
        assert!(!record(3, 60).agrees(here(0, 9)));
        assert!(!record(3, 60).agrees(here(3, 20)));
    }

    #[test]
    fn one_failure_of_a_thousand_does_not_excuse_one_of_eleven() {
        assert!(!record(1, 1000).agrees(here(0, 30)));
        for runs in [11, 33, 110, 330] {
            assert!(!record(1, 1000).agrees(here(runs / 11, runs)), "{runs}");
        }
        assert!(record(1, 1000).disagrees(here(3, 33)));
    }

    #[test]
    fn the_rarer_the_history_knows_it_the_more_passes_it_takes() {
        let needed: Vec<Option<u32>> = [(3, 60), (10, 200), (10, 500), (1, 1000), (1, 100_000)]
            .map(|(failures, runs)| record(failures, runs).passes_needed)
            .into();
        assert_eq!(needed, [Some(10), Some(12), Some(31), Some(227), None]);
    }

    #[test]
    fn a_history_of_four_runs_and_one_without_the_failure_know_nothing() {
        for (failures, runs) in [(2, 4), (0, 100)] {
            let last = 0;
            let known = Known {
                runs,
                failures,
                last,
            };
            assert_eq!(Record::of(known), None);
        }
    }

    #[test]
    fn what_always_failed_may_always_fail() {
        assert!(record(6, 6).agrees(here(10, 10)));
        assert!(!record(2, 6).agrees(here(10, 10)));
    }

    /// By all sequences of reruns, each with its probability: the share of those that agree at any time.
    fn share_that_ever_agrees(record: Record, rate: f64, runs: u32) -> f64 {
        let mut open = vec![1.0];
        let mut agreed = 0.0;
        for run in 1..=runs {
            let mut next = vec![0.0; open.len() + 1];
            for (hits, share) in open.iter().enumerate() {
                next[hits] += share * (1.0 - rate);
                next[hits + 1] += share * rate;
            }
            for (hits, share) in (0..).zip(&mut next) {
                if record.agrees(here(hits, run)) {
                    agreed += *share;
                    *share = 0.0;
                }
            }
            open = next;
        }
        agreed
    }

    #[test]
    fn who_fails_three_times_as_often_as_the_history_allows_is_excused_in_five_per_cent_at_most() {
        for record in [
            record(1, 5),
            record(3, 60),
            record(10, 200),
            record(10, 500),
            record(1, 1000),
        ] {
            let share = share_that_ever_agrees(record, record.limit, 300);
            assert!(share <= 0.05, "{record:?}: {share}");
        }
    }

    #[test]
    fn who_fails_as_rarely_as_the_history_knows_is_excused_by_most_series_of_reruns() {
        for (failures, runs) in [(3, 60), (10, 200), (10, 500), (10, 100), (20, 100)] {
            let record = record(failures, runs);
            let most = record.most_wanted();
            let share = share_that_ever_agrees(record, tally(record.known).rate(), most);
            assert!(share > 0.9, "{record:?}: {share} in {most}");
        }
    }
}
