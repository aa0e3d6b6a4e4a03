//! Pairs of runs, one on either side, and what they count for.

use super::{Ended, HOPELESS, Inquiry};
use crate::blame::two_sample::{Pairs, fails_there_too};
use crate::failure::Fingerprint;

impl Inquiry {
    pub(super) fn join_pair(&mut self) {
        if self.waiting_here.is_none() || self.waiting_base.is_none() {
            return;
        }
        let (Some(here), Some(base)) = (self.waiting_here.take(), self.waiting_base.take()) else {
            return;
        };
        let is_failure = |ended: &Ended| *ended != Ended::Passed;
        self.for_guilt.add(here == Ended::Alike, is_failure(&base));
        self.for_innocence
            .add(is_failure(&here), self.is_known_here(&base));
        self.alike.add(here == Ended::Alike, base == Ended::Alike);
    }

    /// Whether it failed at the base in a way that it fails in here. A test may fail at one of several lines.
    fn is_known_here(&self, base: &Ended) -> bool {
        match base {
            Ended::Alike => true,
            Ended::Otherwise { print, .. } => self.has_failed_so(print),
            Ended::Passed | Ended::NotRun { .. } => false,
        }
    }

    /// Whether it has failed here in this other way.
    pub(super) fn has_failed_so(&self, print: &Fingerprint) -> bool {
        self.here.others.contains_key(print) || self.strange.contains_key(print)
    }

    /// Whether it does not fail more than three times as often here: neither in the way that is asked about, nor in all
    /// the ways together that it fails in here.
    pub(super) fn is_as_frequent_there(&self) -> bool {
        fails_there_too(self.alike) && fails_there_too(self.for_innocence)
    }

    /// Whether neither side has failed alike in many pairs, so that no more are made.
    pub(super) fn is_in_vain(&self) -> bool {
        let Pairs {
            both,
            here,
            base,
            neither,
        } = self.alike;
        neither >= HOPELESS && both + here + base == 0
    }
}
