//! What people have said: product faults, and tests in quarantine. The last word counts.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use unflake_history::store::kept::KeptLabel;
use unflake_history::store::{Store, StoreError};

use crate::board::aliases::Aliases;

/// A failure is a fault of the product; the value is a bug's id or address.
pub(crate) const BUG: &str = "bug";
/// Said of a failure: what was said before does not hold.
pub(crate) const CLEARED: &str = "cleared";
/// Where a failure stood on the board when somebody called it a fault.
pub(crate) const STOOD: &str = "stood";
/// A test is in quarantine; the value is [`Terms`] as JSON.
pub(crate) const QUARANTINED: &str = "quarantined";
/// A test has left quarantine; the value says why.
pub(crate) const RESOLVED: &str = "resolved";

/// The two lists of the board, as they are kept.
pub(crate) const FIRST_LIST: &str = "faults";
pub(crate) const SECOND_LIST: &str = "flaky";

/// All that was said, by what it is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// Runs that are faults of the product.
    pub(crate) faults: HashMap<i64, Fault>,
    /// The list in which each such run stood.
    pub(crate) stood: HashMap<i64, String>,
    /// Tests that are in quarantine, by the first of their numbers.
    pub(crate) quarantined: HashMap<u32, Kept>,
    /// Tests that have left it, with the last word about them.
    pub(crate) left: HashMap<u32, Kept>,
}

/// A run that is a fault of the product.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Fault {
    /// The bug's id or address; may be empty.
    pub(crate) bug: String,
    pub(crate) author: String,
    /// Milliseconds since 1970.
    pub(crate) time: i64,
}

/// A test that is or was in quarantine.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) terms: Terms,
    /// Since when, in milliseconds since 1970.
    pub(crate) since: i64,
    pub(crate) author: String,
    /// When and why it left.
    pub(crate) left: Option<(i64, String)>,
}

/// Why a test is in quarantine, and how long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Terms {
    pub(crate) reason: String,
    #[serde(default)]
    pub(crate) owner: String,
    /// The last day, as 2026-11-30.
    pub(crate) until: String,
}

impl Said {
    pub(crate) fn read(store: &dyn Store, aliases: &Aliases) -> Result<Self, StoreError> {
        let mut said = Self::default();
        for mut label in store.labels()? {
            label.test = aliases.first(label.test);
            said.hear(label);
        }
        Ok(said)
    }

    fn hear(&mut self, label: KeptLabel) {
        match (label.kind.as_str(), label.run) {
            (BUG, Some(run)) => {
                let fault = Fault {
                    bug: label.value,
                    author: label.author,
                    time: label.time,
                };
                self.faults.insert(run, fault);
            }
            (CLEARED, Some(run)) => {
                self.faults.remove(&run);
                self.stood.remove(&run);
            }
            (STOOD, Some(run)) => {
                self.stood.insert(run, label.value);
            }
            (QUARANTINED, None) => {
                let plain = |text: String| Terms {
                    reason: text,
                    ..Terms::default()
                };
                // Another program may have written only a reason.
                let terms = serde_json::from_str(&label.value);
                let terms = terms.unwrap_or_else(|_| plain(label.value));
                let kept = Kept {
                    terms,
                    since: label.time,
                    author: label.author,
                    left: None,
                };
                self.left.remove(&label.test);
                self.quarantined.insert(label.test, kept);
            }
            (RESOLVED, None) => {
                if let Some(mut kept) = self.quarantined.remove(&label.test) {
                    kept.left = Some((label.time, label.value));
                    self.left.insert(label.test, kept);
                }
            }
            // Other programs may say other things.
            (_, _) => {}
        }
    }
}
