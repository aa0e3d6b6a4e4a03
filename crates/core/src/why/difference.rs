//! A place at which passing and failing runs differ, as it is told.

use crate::why::category::Category;
use crate::why::ledger::{Evidence, Side, Sides};
use crate::why::predicate::{Claim, Held};
use crate::why::trace::Site;

/// So many values of a side are shown.
const SHOWN_VALUES: usize = 3;

/// A place at which passing and failing runs differ, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The call.
    pub spot: Spot,
    /// What is said of it.
    pub claim: Claim,
    /// For an order: the call of the other thread.
    pub other: Option<Spot>,
    /// Whether failing runs are those in which it holds; else those in which it does not.
    pub holds: bool,
    /// In how many passing runs it holds.
    pub passing: Held,
    /// In how many failing runs it holds.
    pub failing: Held,
    /// How much more often it is so in failing runs, from 0 to 1.
    pub strength: f64,
    /// What kind of cause it looks like, if like any.
    pub category: Option<Category>,
    /// The most frequent values that it returned, in passing and in failing runs.
    pub values: Sides<Vec<String>>,
    /// How long it took in the middle, in microseconds, in passing and in failing runs.
    pub times: Sides<Option<f64>>,
    /// What all of its values are like, in passing and in failing runs.
    pub spread: Sides<Spread>,
    /// What must be so too, if this alone does not explain the failure. The counts are of both together.
    pub also: Option<Part>,
    /// If it is a rounding: the collection without an order that was added up in another one.
    pub origin: Option<Spot>,
    /// If it came too early: the wait before it, which was too short.
    pub wait: Option<Spot>,
    /// Other calls of the same two threads that came in another order in the very same runs.
    pub alike: Vec<Spot>,
    /// The place in the list of a source of non-determinism that differs in the very same runs, from 1: this
    /// may only follow from it.
    pub follows: Option<usize>,
    /// How many other claims about the same place are folded into it.
    pub folded: usize,
}

/// The second of two claims that explain a failure only together.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The call.
    pub spot: Spot,
    /// What is said of it.
    pub claim: Claim,
    /// For an order: the call of the other thread.
    pub other: Option<Spot>,
    /// Whether failing runs are those in which it holds; else those in which it does not.
    pub holds: bool,
}

/// What the values of a call are like over the runs of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// How many different ones there are, as far as they were told apart.
    pub distinct: usize,
    /// The least and the greatest, if all of them are numbers.
    pub range: Option<(f64, f64)>,
}

/// A call in words: where, in which thread, the how-manieth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Where, and what is called.
    pub site: Site,
    /// The thread's name.
    pub thread: String,
    /// The how-manieth call there in this thread, from 1.
    pub sequence: u32,
}

/// What the values of one side are like.
pub(crate) fn spread(evidence: &Evidence, side: Side) -> Spread {
    let of_side = evidence.values.iter();
    let distinct = of_side
        .filter(|value| value.counts[side as usize] > 0)
        .count();
    let numbers = &evidence.numbers[side as usize];
    let is_all = numbers.len() == evidence.seen[side as usize] as usize;
    let least = numbers.iter().copied().reduce(f64::min);
    let range = least.zip(numbers.iter().copied().reduce(f64::max));
    Spread {
        distinct,
        range: range.filter(|_| is_all),
    }
}

/// The most frequent values of one side.
pub(crate) fn common_values(evidence: &Evidence, side: Side) -> Vec<String> {
    let of_side = |counts: Sides<u32>| counts[side as usize];
    let mut values: Vec<_> = evidence
        .values
        .iter()
        .filter(|value| of_side(value.counts) > 0)
        .collect();
    values.sort_by_key(|value| std::cmp::Reverse(of_side(value.counts)));
    let shown = values.into_iter().take(SHOWN_VALUES);
    shown.map(|value| value.text.to_string()).collect()
}
