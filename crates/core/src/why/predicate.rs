//! The predicates of `RootFinder` 2019 (3.2) at each epoch, and in how many runs they hold.

use crate::why::ledger::{Epoch, Evidence, Ledger, Side, Sides, Value};
use crate::why::split::{Beyond, best_split, median};

/// The least difference of times that is worth telling, in microseconds.
const LEAST_DELAY: f64 = 1000.0;
/// The least ratio of times that is worth telling.
const LEAST_RATIO: f64 = 1.5;

/// A claim about a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// It is made at all.
    Reached,
    /// It returns what an earlier call at the same place has returned (Relative).
    Repeats,
    /// It returns this value (Absolute).
    Returns(String),
    /// It returns one of these values (Absolute, for several that go with failing).
    OneOf {
        /// The values, the most frequent in failing runs first.
        values: Vec<String>,
        /// The number of different values that the call returned in all runs.
        among: u32,
    },
    /// It returns a collection that has this element (Absolute, for collections).
    Contains {
        /// The element, as the collection's text has it.
        element: String,
        /// The number of different elements that the collections had in all runs.
        among: u32,
    },
    /// It returns a number of at most this (Absolute, for numbers).
    AtMost(f64),
    /// It returns a number of at least this (Absolute, for numbers).
    AtLeast(f64),
    /// It ends with an exception (Exception); its text if that is the same in most runs.
    Raises(Option<String>),
    /// It takes at least this many microseconds (Slow).
    Slow(f64),
    /// It takes at most this many microseconds (Fast).
    Fast(f64),
    /// It begins after a call of another thread has ended (Order).
    After(Place),
}

/// A call of some thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where: by its number in the ledger.
    pub(crate) site: u32,
    pub(crate) thread: u32,
    /// The number of the call there in this thread, from 1.
    pub sequence: u32,
}

impl From<Epoch> for Place {
    fn from(epoch: Epoch) -> Self {
        Self {
            site: epoch.site,
            thread: epoch.thread,
            sequence: epoch.sequence,
        }
    }
}

/// The number of runs in which a claim holds, and in which it does not. A run that does not come to the call is in
/// neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Runs in which it holds.
    pub yes: u32,
    /// Runs in which it does not.
    pub no: u32,
}

/// A claim about the call of one epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    /// The call.
    pub place: Place,
    /// The claim about it.
    pub claim: Claim,
    /// The number of passing runs in which it holds, and in which it does not.
    pub passing: Held,
    /// The number of failing runs in which it holds, and in which it does not.
    pub failing: Held,
    /// Its first place in a log.
    pub(crate) line: usize,
    /// The average end of its calls in failing runs, in nanoseconds from the beginning.
    pub(crate) ended: f64,
}

impl Predicate {
    /// A claim about one epoch that holds in `yes` runs.
    pub(crate) fn new(evidence: &Evidence, claim: Claim, yes: Sides<u32>) -> Self {
        let held = |side: Side| Held {
            yes: yes[side as usize],
            no: evidence.seen[side as usize] - yes[side as usize],
        };
        Self {
            place: evidence.epoch.into(),
            claim,
            passing: held(Side::Passing),
            failing: held(Side::Failing),
            line: evidence.line,
            ended: evidence.mean_end(),
        }
    }

    /// The strength: how much more often it holds, or does not hold, in failing runs than in passing ones, from 0 to
    /// 1. Also whether it is holding that goes with failing.
    pub fn strength(&self, runs: Sides<u32>) -> (f64, bool) {
        let share =
            |count: u32, side: Side| f64::from(count) / f64::from(runs[side as usize].max(1));
        let holds = share(self.failing.yes, Side::Failing) - share(self.passing.yes, Side::Passing);
        let holds_not =
            share(self.failing.no, Side::Failing) - share(self.passing.no, Side::Passing);
        if holds_not > holds {
            (holds_not.max(0.0), false)
        } else {
            (holds.max(0.0), true)
        }
    }
}

impl Predicate {
    /// Whether it is about what the call returned or raised.
    pub(crate) fn is_about_result(&self) -> bool {
        match self.claim {
            Claim::Repeats
            | Claim::Returns(_)
            | Claim::OneOf { .. }
            | Claim::Contains { .. }
            | Claim::AtMost(_)
            | Claim::AtLeast(_)
            | Claim::Raises(_) => true,
            Claim::Reached | Claim::Slow(_) | Claim::Fast(_) | Claim::After(_) => false,
        }
    }

    /// Among how many claims of its kind about one call it was chosen because it tells most.
    pub(crate) fn choices(&self, runs: Sides<u32>) -> f64 {
        match &self.claim {
            Claim::AtMost(_)
            | Claim::AtLeast(_)
            | Claim::Slow(_)
            | Claim::Fast(_)
            | Claim::After(_) => f64::from(runs[0] + runs[1]),
            // Each value could have been among them or not.
            Claim::OneOf { among, .. } => 2.0_f64.powi(i32::try_from(*among).unwrap_or(i32::MAX)),
            Claim::Contains { among, .. } => f64::from(*among),
            Claim::Reached | Claim::Repeats | Claim::Returns(_) | Claim::Raises(_) => 1.0,
        }
    }

    /// Whether it is about the order of two threads.
    pub(crate) fn is_order(&self) -> bool {
        matches!(self.claim, Claim::After(_))
    }

    /// Whether it tells failing from passing runs among those that come to the call. If not, all that
    /// it says is whether they do.
    pub(crate) fn tells_among_reached(&self) -> bool {
        let share = |held: Held| f64::from(held.yes) / f64::from(held.yes + held.no);
        let is_reached = |held: Held| held.yes + held.no > 0;
        is_reached(self.passing)
            && is_reached(self.failing)
            && (share(self.failing) - share(self.passing)).abs() >= 0.5
    }
}

/// The way in which the thresholds of Slow and Fast, and of numbers, are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thresholds {
    /// Slower, or faster, than every passing run, as the paper has it. Numbers have none.
    OfPassing,
    /// At the value that separates passing and failing runs best.
    Best,
}

impl Ledger {
    /// All predicates about what was seen at one epoch.
    pub(crate) fn predicates(&self, evidence: &Evidence, thresholds: Thresholds) -> Vec<Predicate> {
        let seen = evidence.seen;
        let mut found = Vec::new();
        let mut claim =
            |claim: Claim, yes: Sides<u32>| found.push(Predicate::new(evidence, claim, yes));
        if thresholds == Thresholds::Best {
            claim(Claim::Reached, seen);
        }
        claim(Claim::Repeats, evidence.same);
        claim(Claim::Raises(exception(evidence)), evidence.raised);
        for value in evidence.values.iter().filter(|value| !value.is_exception) {
            claim(Claim::Returns(value.text.to_string()), value.counts);
        }
        match thresholds {
            Thresholds::OfPassing => paper_times(evidence, &mut claim),
            Thresholds::Best => {
                if let Some((one_of, yes)) = self.split_values(evidence) {
                    claim(one_of, yes);
                }
                if let Some((contains, yes)) = self.split_elements(evidence) {
                    claim(contains, yes);
                }
                self.split_times(evidence, &mut claim);
                self.split_numbers(evidence, &mut claim);
            }
        }
        for (thread, progress) in &evidence.progress {
            if let Some((place, yes)) = self.split_progress(evidence.epoch, *thread, progress) {
                claim(Claim::After(place), yes);
            }
        }
        found
    }

    fn split_times(&self, evidence: &Evidence, claim: &mut impl FnMut(Claim, Sides<u32>)) {
        let times = |side: Side| {
            evidence.times[side as usize]
                .iter()
                .map(|time| f64::from(*time))
        };
        let passing: Vec<f64> = times(Side::Passing).collect();
        let failing: Vec<f64> = times(Side::Failing).collect();
        if !is_worth_telling(median(&passing), median(&failing)) {
            return;
        }
        if let Some(split) = best_split(&passing, &failing, self.runs) {
            let yes = [split.passing, split.failing];
            match split.beyond {
                Beyond::Above => claim(Claim::Slow(split.threshold), yes),
                Beyond::Below => claim(Claim::Fast(split.threshold), yes),
            }
        }
    }

    /// The values that are more frequent in failing runs, if there are several of them and several others, and the
    /// number of runs with one of them. `None` also if there were more values than are told apart.
    fn split_values(&self, evidence: &Evidence) -> Option<(Claim, Sides<u32>)> {
        if !evidence.is_told_apart() || evidence.raised != [0; 2] {
            return None;
        }
        let share = |value: &Value, side: Side| {
            f64::from(value.counts[side as usize]) / f64::from(self.runs[side as usize].max(1))
        };
        let (mut odd, usual): (Vec<&Value>, Vec<&Value>) = evidence
            .values
            .iter()
            .partition(|value| share(value, Side::Failing) > share(value, Side::Passing));
        if odd.len() < 2 || usual.len() < 2 {
            return None;
        }
        odd.sort_by_key(|value| std::cmp::Reverse(value.counts[Side::Failing as usize]));
        let yes = [0, 1].map(|side| odd.iter().map(|value| value.counts[side]).sum());
        let claim = Claim::OneOf {
            values: odd.iter().map(|value| value.text.to_string()).collect(),
            among: u32::try_from(evidence.values.len()).expect("few values are told apart"),
        };
        Some((claim, yes))
    }

    fn split_numbers(&self, evidence: &Evidence, claim: &mut impl FnMut(Claim, Sides<u32>)) {
        let [passing, failing] = &evidence.numbers;
        if let Some(split) = best_split(passing, failing, self.runs) {
            let yes = [split.passing, split.failing];
            match split.beyond {
                Beyond::Above => claim(Claim::AtLeast(split.threshold), yes),
                Beyond::Below => claim(Claim::AtMost(split.threshold), yes),
            }
        }
    }

    /// The call of another thread that had mostly ended in runs of one side and not in those of the
    /// other, and in how many runs it had ended.
    fn split_progress(
        &self,
        own: Epoch,
        thread: u32,
        progress: &Sides<Vec<u32>>,
    ) -> Option<(Place, Sides<u32>)> {
        let numbers = |side: Side| {
            progress[side as usize]
                .iter()
                .map(|number| f64::from(*number))
        };
        let passing: Vec<f64> = numbers(Side::Passing).collect();
        let failing: Vec<f64> = numbers(Side::Failing).collect();
        let split = best_split(&passing, &failing, self.runs)?;
        // The least progress of those that are further on.
        let all = passing.iter().chain(&failing).copied();
        let least = match split.beyond {
            Beyond::Above => split.threshold,
            Beyond::Below => all.filter(|one| *one > split.threshold).reduce(f64::min)?,
        };
        let yes = [&passing, &failing].map(|numbers| {
            let further = numbers.iter().filter(|number| **number >= least).count();
            u32::try_from(further).expect("there are as many as runs")
        });
        let less = passing.iter().chain(&failing).copied();
        let most = less.filter(|one| *one < least).fold(0.0, f64::max);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "both were u32 before"
        )]
        let (from, to) = (most as usize, (least as usize).checked_sub(1)?);
        let ended = self.ended.get(&thread)?;
        // All that lies between is told apart alike: best is a call of the same thing.
        let callee = |epoch: &Epoch| &self.sites[epoch.site as usize].callee;
        let mut between = ended.get(from..=to)?.iter();
        let alike = between.find(|epoch| callee(epoch) == callee(&own));
        Some(((*alike.or(ended.get(to))?).into(), yes))
    }
}

impl Evidence {
    /// Whether all values are known, and not only the first different ones up to the limit.
    pub(crate) fn is_told_apart(&self) -> bool {
        let counted = |side: usize| -> u32 {
            let counts = self.values.iter().map(|value| value.counts[side]);
            counts.sum()
        };
        (0..2).all(|side| counted(side) == self.seen[side])
    }
}

/// Whether the median times of passing and of failing runs, in microseconds, differ enough to be worth telling.
pub(crate) fn is_worth_telling(passing: Option<f64>, failing: Option<f64>) -> bool {
    let (Some(usual), Some(odd)) = (passing, failing) else {
        return false;
    };
    let (less, more) = (f64::min(usual, odd), f64::max(usual, odd));
    more - less >= LEAST_DELAY && more >= less * LEAST_RATIO
}

/// Slow and Fast as the paper has them: beyond all that passing runs took.
fn paper_times(evidence: &Evidence, claim: &mut impl FnMut(Claim, Sides<u32>)) {
    let [passing, failing] = &evidence.times;
    let (Some(most), Some(least)) = (passing.iter().max(), passing.iter().min()) else {
        return;
    };
    let count = |is_beyond: &dyn Fn(&u32) -> bool| {
        let beyond = failing.iter().filter(|time| is_beyond(time)).count();
        u32::try_from(beyond).expect("there are as many as runs")
    };
    let slow = count(&|time| time > most);
    claim(Claim::Slow(f64::from(*most)), [0, slow]);
    let fast = count(&|time| time < least);
    claim(Claim::Fast(f64::from(*least)), [0, fast]);
}

/// The text of the exception, if more than half of them have the same.
fn exception(evidence: &Evidence) -> Option<String> {
    let of = |counts: Sides<u32>| counts[0] + counts[1];
    let exceptions = evidence.values.iter().filter(|value| value.is_exception);
    let most = exceptions.max_by_key(|value| of(value.counts))?;
    (of(most.counts) * 2 > of(evidence.raised)).then(|| most.text.to_string())
}
