//! What watched runs tell: what a test uses of the changes, and in which ways it fails.

use super::{Ended, Inquiry};
use crate::blame::runs::add_missing;
use crate::intersect::Intersection;

/// How many runs here are watched at first, and how many at the most.
const FIRST_WATCHED: u32 = 3;
const MOST_WATCHED: u32 = 20;
/// After how many pairs without a failure that was watched another run is watched.
const PAIRS_A_LOOK: u32 = 6;

impl Inquiry {
    pub(super) fn hear_used(&mut self, ended: &Ended, used: Intersection) {
        let is_alike = *ended == Ended::Alike;
        self.watched.hits += u32::from(is_alike);
        self.watched.misses += u32::from(!is_alike);
        self.is_untouched |= is_alike && used.is_disjoint();
        add_missing(&mut self.used.touches, used.touches);
        add_missing(&mut self.used.unknowns, used.unknowns);
    }

    /// Whether a watched run may tell more of what it uses: until one fails alike and shows a change that it uses, or
    /// that it uses none.
    pub(super) fn wants_watching(&self) -> bool {
        let is_told = self.is_untouched || !self.used.touches.is_empty();
        let wanted = MOST_WATCHED.min(FIRST_WATCHED + self.for_guilt.runs() / PAIRS_A_LOOK);
        let has_failed = self.watched.hits > 0;
        let is_open = self.waiting_here.is_none() && !self.is_over && !self.is_given_up();
        is_open
            && if has_failed {
                !is_told && self.watched.hits < FIRST_WATCHED
            } else {
                self.watched.runs() < wanted
            }
    }

    /// Another way in which it failed here, and never at the base.
    pub(super) fn unmatched(&self) -> Option<&str> {
        let others = self.here.others.iter().chain(&self.strange);
        let mut unmatched = others.filter(|(print, _)| !self.base.others.contains_key(*print));
        unmatched.next().map(|(_, message)| message.as_str())
    }

    /// Whether nothing that changed was used when it failed. No watched run may gainsay it.
    pub(super) fn is_untouched_at_failure(&self) -> bool {
        let seen = self.at_failure.as_ref();
        seen.is_some_and(Intersection::is_disjoint) && self.used.touches.is_empty()
    }

    /// Whether a failing run used nothing that changed. What never passed here must be seen to pass at the base: else the
    /// failure may simply be older.
    pub(super) fn is_untouched_shown(&self) -> bool {
        let passes_there = self.base.passed > 0 && self.base.alike == 0;
        self.is_untouched && (self.has_passed || passes_there)
    }
}
