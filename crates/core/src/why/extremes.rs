//! What all random values that one place draws have in common: the smallest and the largest of them.
//!
//! A test that draws ten times and wants one rare value among them fails when none is: no single draw
//! tells that, but the largest of all does. Both count as results of a call of their own, which ends with
//! the last draw. The paper has no such predicate, and its order leaves them out.

use std::collections::BTreeMap;

use crate::why::ledger::{Ledger, Side, Text};
use crate::why::trace::{Call, CallResult, Kind, Site, Trace};

/// The least number of draws of one place whose extremes are looked at.
const FEWEST: u32 = 2;

/// One end of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The smallest.
    Least,
    /// The largest.
    Most,
}

impl Extreme {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Least, Self::Most];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Least => "smallest",
            Self::Most => "largest",
        }
    }

    /// The text after the name of what is called.
    fn mark(self) -> String {
        format!(" (the {} of all calls)", self.word())
    }

    /// The name of what is called, and the end of its values; `None` if it is a call.
    pub fn read(callee: &str) -> Option<(&str, Self)> {
        let is_it = |extreme: Self| callee.strip_suffix(extreme.mark().as_str());
        Self::ALL
            .into_iter()
            .find_map(|extreme| Some((is_it(extreme)?, extreme)))
    }
}

/// The values that one thread has drawn at one place.
struct Draws {
    count: u32,
    /// The smallest and the largest, by their places in the trace's list of texts.
    ends: [(f64, u32); 2],
    last: Call,
    line: usize,
}

impl Ledger {
    /// Takes in the smallest and the largest of what each place draws in a trace.
    pub(super) fn take_extremes(&mut self, trace: &Trace, texts: &[Text<'_>], side: Side) {
        for ((site, thread), draws) in draws_of(trace, texts) {
            if draws.count < FEWEST {
                continue;
            }
            let thread = self.thread(&trace.threads[thread as usize].name);
            for (extreme, (_, text)) in Extreme::ALL.into_iter().zip(draws.ends) {
                let mut whole: Site = trace.sites[site as usize].clone();
                whole.callee.push_str(&extreme.mark());
                let place = (self.site(&whole), thread);
                let lane = self.lane(place);
                let row = self.row(place, lane, 1);
                let call = Call {
                    start: draws.last.start + draws.last.duration,
                    duration: 0,
                    ..draws.last
                };
                let evidence = &mut self.evidence[row as usize];
                evidence.take_call(&call, draws.line, side);
                evidence.take_value(&texts[text as usize], false, side);
            }
        }
    }

    /// Whether a place is not a call, but one end of the values of many draws.
    pub(crate) fn is_extreme(&self, site: u32) -> bool {
        let site = &self.sites[site as usize];
        site.kind == Kind::Randomness && Extreme::read(&site.callee).is_some()
    }
}

/// The numbers that are drawn, by place and thread.
fn draws_of(trace: &Trace, texts: &[Text<'_>]) -> BTreeMap<(u32, u32), Draws> {
    let mut draws: BTreeMap<(u32, u32), Draws> = BTreeMap::new();
    let sites = trace.sites.iter();
    let is_random: Vec<bool> = sites.map(|site| site.kind == Kind::Randomness).collect();
    if !is_random.contains(&true) {
        return draws;
    }
    let calls = trace.calls.iter().enumerate();
    for (at, call) in calls.filter(|(_, call)| is_random[call.site as usize]) {
        let CallResult::Returned(Some(text)) = call.result else {
            continue;
        };
        let Some(number) = texts[text as usize].number else {
            continue;
        };
        let one = draws.entry((call.site, call.thread)).or_insert(Draws {
            count: 0,
            ends: [(number, text); 2],
            last: *call,
            line: at + 1,
        });
        one.count += 1;
        (one.last, one.line) = (*call, at + 1);
        if number < one.ends[0].0 {
            one.ends[0] = (number, text);
        }
        if number > one.ends[1].0 {
            one.ends[1] = (number, text);
        }
    }
    draws
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::category::Category;
    use crate::why::predicate::{Claim, Predicate};
    use crate::why::tests::{Pen, ledger};

    #[test]
    fn draws_that_only_together_miss_a_value_are_told_by_the_largest() {
        // Each draw alone is as good as any other; only all of them below 50 are a failure.
        let run = |draws: &[u32]| {
            let mut pen = Pen::new();
            for draw in draws {
                pen.call(1, "randint", Kind::Randomness, &draw.to_string());
            }
            pen.done()
        };
        let passing = [[60, 10, 40], [20, 70, 5], [33, 12, 90], [80, 45, 49]];
        let passing = [
            passing,
            [[7, 55, 30], [49, 3, 66], [51, 44, 2], [1, 99, 48]],
        ]
        .concat();
        let failing = [[20, 45, 5], [33, 10, 49], [48, 3, 30], [7, 44, 40]];
        let ledger = ledger(
            passing.iter().map(|draws| run(draws)).collect(),
            failing.iter().map(|draws| run(draws)).collect(),
        );
        let first = &ledger.rank(&[])[0];
        let said = Extreme::read(&first.spot.site.callee);
        assert_eq!(said, Some(("randint", Extreme::Most)));
        assert_eq!((&first.claim, first.holds), (&Claim::AtMost(49.0), true));
        assert_eq!((first.passing.yes, first.failing.yes), (0, 4));
        assert_eq!(first.category, Some(Category::Randomness));
        assert!(!ledger.rank(&["randint".to_owned()]).is_empty());
        let is_call = |predicate: &Predicate| {
            let callee = ledger.spot(&predicate.place).site.callee;
            Extreme::read(&callee).is_none()
        };
        let paper = ledger.rank_as_paper(&[]);
        assert!(paper.iter().all(|(_, predicate)| is_call(predicate)));
        assert_eq!(ledger.varying_sources().len(), 1);
    }
}
