//! A place at which passing and failing runs differ, as reports show it.

use crate::why::category::Category;
use crate::why::ledger::{Evidence, Side, Sides};
use crate::why::predicate::{Claim, Held};
use crate::why::trace::Site;

/// The most values of a side that are shown.
const SHOWN_VALUES: usize = 3;

/// A place at which passing and failing runs differ, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The call.
    pub spot: Spot,
    /// The claim about it.
    pub claim: Claim,
    /// For an order: the call of the other thread.
    pub other: Option<Spot>,
    /// Whether it holds in failing runs; if not, it is its absence that goes with failing.
    pub holds: bool,
    /// The number of passing runs in which it holds, and in which it does not.
    pub passing: Held,
    /// The number of failing runs in which it holds, and in which it does not.
    pub failing: Held,
    /// The strength: the share of failing runs that differ in this way minus the share of passing ones, from 0 to 1.
    pub strength: f64,
    /// The kind of cause that it looks like; `None` if like none.
    pub category: Option<Category>,
    /// The most frequent values that it returned, in passing and in failing runs.
    pub values: Sides<Vec<String>>,
    /// The median of its times in microseconds, in passing and in failing runs.
    pub times: Sides<Option<f64>>,
    /// A summary of all its values, in passing and in failing runs.
    pub spread: Sides<Spread>,
    /// The claim that must hold too, if this one alone does not explain the failure. The counts are those of both
    /// together.
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
    /// The number of other claims about the same place that are folded into it.
    pub folded: usize,
}

/// The second of two claims that explain a failure only together.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The call.
    pub spot: Spot,
    /// The claim about it.
    pub claim: Claim,
    /// For an order: the call of the other thread.
    pub other: Option<Spot>,
    /// Whether it holds in failing runs; if not, it is its absence that goes with failing.
    pub holds: bool,
}

/// A summary of a call's values over the runs of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The number of different values, as far as they were told apart.
    pub distinct: usize,
    /// The least and the greatest, if all of them are numbers.
    pub range: Option<(f64, f64)>,
}

/// A call, for reports: its place, its thread, and its number there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Where, and what is called.
    pub site: Site,
    /// The thread's name.
    pub thread: String,
    /// The number of the call there in this thread, from 1.
    pub sequence: u32,
}

/// A summary of the values of one side.
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
