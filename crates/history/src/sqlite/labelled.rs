//! Failures that somebody called a fault of the product after they were written down.
//!
//! Blocks are never changed, so such failures are taken out while counts are read.

use std::collections::HashMap;

use rusqlite::Connection;

use super::blocks::{Key, to_day};
use crate::daily::{FlakyRule, says_flaky, says_real};

/// How many failures of a test on a day in a stream are no flakes after all.
#[derive(Debug, Default)]
pub(super) struct Labelled(HashMap<Key, u32>);

impl Labelled {
    /// Reads the labels that change what a rule counts.
    pub(super) fn read(connection: &Connection, rule: FlakyRule) -> rusqlite::Result<Self> {
        let mut found = Self::default();
        if matches!(rule, FlakyRule::Verdict | FlakyRule::Revision) {
            return Ok(found);
        }
        // The last word about a run counts.
        let last = "SELECT run.test, run.time, provenance.stream, detail.bug IS NOT NULL, detail.verdict, \
                    label.kind FROM label JOIN run ON run.id = label.run \
                    JOIN provenance ON provenance.id = run.provenance \
                    LEFT JOIN detail ON detail.run = run.id \
                    WHERE run.attempt = 1 AND run.outcome IN (1, 2, 7, 8) AND label.id IN \
                    (SELECT max(id) FROM label WHERE run IS NOT NULL AND kind IN ('bug', 'cleared') GROUP BY run)";
        let mut last = connection.prepare(last)?;
        let mut rows = last.query([])?;
        while let Some(row) = rows.next()? {
            let has_bug: bool = row.get(3)?;
            let verdict = row.get_ref(4)?.as_str_or_null()?.map(ToOwned::to_owned);
            let verdict = verdict.as_deref();
            // What was known to be real was never counted as flaky.
            let was_real =
                has_bug || !verdict.is_some_and(says_flaky) && verdict.is_some_and(says_real);
            let is_counted = match rule {
                FlakyRule::Bug => !has_bug,
                FlakyRule::Evidence | FlakyRule::Verdict | FlakyRule::Revision => !was_real,
            };
            if is_counted && row.get_ref(5)?.as_str()? == "bug" {
                let key = Key {
                    test: row.get(0)?,
                    day: to_day(row.get(1)?),
                    stream: row.get(2)?,
                };
                *found.0.entry(key).or_default() += 1;
            }
        }
        Ok(found)
    }

    /// What is left of a count of flaky failures. A day may come in parts.
    pub(super) fn take_from(&mut self, key: Key, flaky: u32) -> u32 {
        if flaky == 0 || self.0.is_empty() {
            return flaky;
        }
        let Some(left) = self.0.get_mut(&key) else {
            return flaky;
        };
        let taken = flaky.min(*left);
        *left -= taken;
        flaky - taken
    }
}
