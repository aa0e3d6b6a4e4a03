//! Folds findings that have one cause into one: a rounding with the order that it comes from, and all orders of
//! the same two threads.

use std::collections::HashMap;

use crate::why::category::Category;
use crate::why::ledger::Ledger;
use crate::why::predicate::{Claim, Place, Predicate};
use crate::why::ranking::Finding;
use crate::why::trace::Kind;

impl Ledger {
    /// Two threads that meet in another order do so at many calls. Of those that tell the very same runs apart
    /// only the first is kept, with the places of the others, and the wait that was too short.
    pub(crate) fn fold_orders(&self, ranked: &mut Vec<Finding>) {
        let mut first: HashMap<(u32, u32), usize> = HashMap::new();
        let mut kept: Vec<Finding> = Vec::new();
        for found in std::mem::take(ranked) {
            let pair = self.threads_that_meet(&found);
            let known = pair.and_then(|pair| first.get(&pair).copied());
            if let Some(known) = known {
                let lead = &mut kept[known];
                lead.folded += found.folded + 1;
                if self.is_wait_before(&found, lead) {
                    lead.wait = self.later(lead.wait.take(), &found.predicate);
                }
                lead.alike.push(found.predicate.place);
                continue;
            }
            if let Some(pair) = pair {
                first.insert(pair, kept.len());
            }
            kept.push(found);
        }
        *ranked = kept;
    }

    /// The two threads of an order that tells all failing from all passing runs, whichever is first.
    fn threads_that_meet(&self, found: &Finding) -> Option<(u32, u32)> {
        let own = found.predicate.place.thread;
        let Claim::After(other) = &found.predicate.claim else {
            return None;
        };
        let is_alone = found.also.is_none() && self.is_certain(&found.predicate);
        is_alone.then(|| (own.min(other.thread), own.max(other.thread)))
    }

    /// Whether a thread waited, and yet came to the lead's call too early.
    fn is_wait_before(&self, found: &Finding, lead: &Finding) -> bool {
        let (wait, lead) = (&found.predicate, &lead.predicate);
        let kind = self.sites[wait.place.site as usize].kind;
        kind == Kind::Wait
            && self.thread_category(lead) == Some(Category::AsyncWait)
            && wait.place.thread == lead.place.thread
            && wait.ended <= lead.ended
    }

    /// The one of two waits that ended last.
    fn later(&self, known: Option<Place>, next: &Predicate) -> Option<Place> {
        let ended = |place: &Place| {
            let rows = self.rows_at(place.site, place.thread);
            let row = rows.get(place.sequence as usize - 1);
            row.map_or(0.0, |row| row.mean_end())
        };
        let is_later = known
            .as_ref()
            .is_none_or(|known| ended(known) <= next.ended);
        if is_later {
            Some(next.place.clone())
        } else {
            known
        }
    }

    /// A collection in another order changes a sum only by rounding. So a rounding replaces the order that it comes
    /// from, and both are one finding.
    pub(crate) fn fold_rounding(&self, ranked: &mut Vec<Finding>) {
        let kind = |found: &Finding| self.sites[found.predicate.place.site as usize].kind;
        let is_order = |found: &Finding| kind(found) == Kind::Unordered;
        let Some(at) = ranked.iter().position(is_order) else {
            return;
        };
        let order = &ranked[at].predicate;
        let is_rounded = |found: &Finding| {
            let predicate = &found.predicate;
            let values = self.values_of(found);
            predicate.place.thread == order.place.thread
                && predicate.ended >= order.ended
                && predicate.strength(self.runs).0 >= order.strength(self.runs).0
                && self.value_category(predicate, &values) == Some(Category::FloatingPoint)
        };
        // The first to end is where it is rounded; others only pass it on.
        let candidates = (0..ranked.len()).filter(|other| is_rounded(&ranked[*other]));
        let ended = |other: &usize| ranked[*other].predicate.ended;
        let first = candidates.min_by(|one, two| ended(one).total_cmp(&ended(two)));
        let Some(rounded) = first else {
            return;
        };
        let (origin, more) = (order.place.clone(), ranked[at].folded + 1);
        let mut finding = ranked.remove(rounded);
        finding.origin = Some(origin);
        finding.folded += more;
        if rounded < at {
            ranked[at - 1] = finding;
            ranked[rounded..at].rotate_right(1);
        } else {
            ranked[at] = finding;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::tests::{Pen, ledger};

    #[test]
    fn two_threads_that_meet_otherwise_are_one_finding_which_names_the_wait() {
        // Somebody sleeps and then looks, and the work is done before both or after both.
        let run = |is_late: bool| {
            let mut pen = Pen::new();
            let worker = pen.thread("main/test_alert.py:2#1", Some(0));
            let work = (20, "list.append", Kind::Plain);
            let began = if is_late { 90_000 } else { 5_000 };
            pen.timed(work, "None", worker, (began, 1_000));
            let found = if is_late { "[]" } else { "[42]" };
            pen.timed((9, "time.sleep", Kind::Wait), "None", 0, (20_000, 9_000));
            pen.timed((10, "list", Kind::Plain), found, 0, (30_000, 1_000));
            pen.timed((11, "print", Kind::Plain), "None", 0, (40_000, 1_000));
            pen.done()
        };
        let passing = (0..8).map(|_| run(false)).collect();
        let failing = (0..8).map(|_| run(true)).collect();
        let ranked = ledger(passing, failing).rank(&[]);
        assert_eq!(ranked.len(), 1, "{ranked:#?}");
        assert_eq!(ranked[0].spot.site.line, 10);
        assert_eq!(ranked[0].wait.as_ref().unwrap().site.line, 9);
        let mut alike: Vec<u32> = ranked[0].alike.iter().map(|one| one.site.line).collect();
        alike.sort_unstable();
        assert_eq!(alike, [9, 11, 20]);
    }
}
