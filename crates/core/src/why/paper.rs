//! The ranking of `RootFinder` 2019 (3.2), as the paper has it: four categories, then lines of the log.

use crate::why::ledger::{Ledger, Sides};
use crate::why::predicate::{Held, Predicate, Thresholds};

/// What the paper says of a predicate. The first is shown first; about the others the paper does not say
/// in which order, and here they are as it lists them, from the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// It is in the runs of one side only, or true in all of one and false in all of the other.
    ConsistentButDifferent,
    /// It is in all runs, with the same value.
    ConsistentAndMatching,
    /// It is in some failing runs only, or with both values.
    InconsistentInFailing,
    /// It is in some passing runs only, or with both values.
    InconsistentInPassing,
}

impl Label {
    /// The label of a predicate among this number of passing and of failing runs.
    pub fn of(predicate: &Predicate, runs: Sides<u32>) -> Self {
        let [passing, failing] = runs;
        let is_consistent = |held: Held, runs: u32| {
            let seen = held.yes + held.no;
            seen == 0 || (seen == runs && (held.yes == 0 || held.no == 0))
        };
        if !is_consistent(predicate.passing, passing) {
            Self::InconsistentInPassing
        } else if !is_consistent(predicate.failing, failing) {
            Self::InconsistentInFailing
        } else if (predicate.passing.yes > 0) == (predicate.failing.yes > 0)
            && (predicate.passing.no > 0) == (predicate.failing.no > 0)
        {
            Self::ConsistentAndMatching
        } else {
            Self::ConsistentButDifferent
        }
    }

    /// The paper's own name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ConsistentButDifferent => "Consistent-but-different",
            Self::ConsistentAndMatching => "Consistent-and-matching",
            Self::InconsistentInFailing => "Inconsistent-in-failing",
            Self::InconsistentInPassing => "Inconsistent-in-passing",
        }
    }
}

impl Ledger {
    /// All predicates about calls of these methods in the paper's order; of all methods, if there are
    /// none.
    pub fn rank_as_paper(&self, methods: &[String]) -> Vec<(Label, Predicate)> {
        let wanted = self.wanted(methods);
        let rows = self
            .evidence
            .iter()
            .filter(|row| wanted[row.epoch.site as usize] && !self.is_extreme(row.epoch.site));
        let predicates = rows.flat_map(|row| self.predicates(row, Thresholds::OfPassing));
        let mut ranked: Vec<(Label, Predicate)> = predicates
            .map(|predicate| (Label::of(&predicate, self.runs), predicate))
            .collect();
        ranked.sort_by_key(|(label, predicate)| (*label, predicate.line));
        ranked
    }

    /// The places that call one of these methods, given by full name or by its last parts.
    pub(crate) fn wanted(&self, methods: &[String]) -> Vec<bool> {
        let is_named = |callee: &str, method: &String| {
            // Behind a space stands where a package calls it.
            let callee = callee.split_once(" (").map_or(callee, |(callee, _)| callee);
            callee == method
                || callee
                    .strip_suffix(method.as_str())
                    .is_some_and(|before| before.ends_with('.'))
        };
        let sites = self.sites.iter();
        sites
            .map(|site| methods.is_empty() || methods.iter().any(|one| is_named(&site.callee, one)))
            .collect()
    }
}
