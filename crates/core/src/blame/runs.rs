//! The runs of one side of a comparison, counted by how they ended.

use std::collections::BTreeMap;

use super::question::Ended;
use crate::failure::Fingerprint;
use crate::sequential::Tally;

/// The runs on one side.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    pub(super) alike: u32,
    pub(super) otherwise: u32,
    pub(super) passed: u32,
    pub(super) not_run: u32,
    /// What was wrong at last, where it was not the failure that is asked about.
    pub(super) trouble: String,
    /// In which other ways it failed.
    pub(super) others: BTreeMap<Fingerprint, String>,
}

impl Runs {
    /// Takes in how a run ended.
    pub(super) fn add(&mut self, ended: &Ended) {
        match ended {
            Ended::Alike => self.alike += 1,
            Ended::Otherwise { message, print } => {
                self.otherwise += 1;
                self.trouble.clone_from(message);
                self.others.insert(print.clone(), message.clone());
            }
            Ended::Passed => self.passed += 1,
            Ended::NotRun { why } => {
                self.not_run += 1;
                self.trouble.clone_from(why);
            }
        }
    }

    /// How often it failed in the same way, of the runs that came about.
    pub(super) fn tally(&self) -> Tally {
        Tally {
            hits: self.alike,
            misses: self.otherwise + self.passed,
        }
    }

    /// How many runs came about.
    pub(super) fn total(&self) -> u32 {
        self.tally().runs()
    }
}

/// What waits for its partner now; a run that did not come about waits for none.
pub(super) fn partner(ended: Ended, before: Option<Ended>) -> Option<Ended> {
    match ended {
        Ended::NotRun { .. } => before,
        Ended::Alike | Ended::Otherwise { .. } | Ended::Passed => Some(ended),
    }
}

/// Adds what is not there yet.
pub(super) fn add_missing<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}
