//! Counts by the rule that a failure is flaky if the test also passed at the same revision.
//!
//! Blocks do not know revisions, so the runs themselves are read, twice.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use super::Sqlite;
use super::blocks::to_day;
use crate::daily::DailyCount;
use crate::run::{Ended, TestName};
use crate::store::StoreError;

/// Passes in our own runs at one revision without other changes, with the same installed around them. An experiment says nothing, and the run at
/// the base of a comparison is kept with the revision that it ran at.
const PASSES: &str = "SELECT test.name, test.copy, max(run.time) FROM import \
                      JOIN run ON run.id BETWEEN import.first AND import.last \
                      JOIN provenance ON provenance.id = run.provenance JOIN test ON test.id = run.test \
                      LEFT JOIN detail ON detail.run = run.id \
                      WHERE import.source = ?1 AND provenance.revision = ?2 AND import.installed = ?3 \
                      AND test.by_framework AND run.outcome = ?4 AND (run.attempt > 0 OR detail.rung = 'base') \
                      GROUP BY run.test";

impl Sqlite {
    /// The tests that passed at a revision in runs of this source with all that was installed as in
    /// `installed`, and when they did so last.
    pub fn passes_at(
        &self,
        source: &str,
        revision: &str,
        installed: &[u8; 32],
    ) -> Result<Vec<(TestName, i64)>, StoreError> {
        let read = || {
            let mut passes = self.connection.prepare(PASSES)?;
            let outcome = Ended::PASSED.number();
            let rows = passes.query_map((source, revision, installed, outcome), |row| {
                let test = TestName {
                    name: row.get(0)?,
                    copy: row.get(1)?,
                    is_own: true,
                };
                Ok((test, row.get(2)?))
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(self.trouble())
    }
}

struct Run {
    test: u32,
    day: i32,
    stream: u32,
    ended: Ended,
    attempt: u32,
    /// The revision's number, if it is known and the code had no other changes.
    revision: Option<u32>,
}

pub(super) fn visit(
    connection: &Connection,
    visit: &mut dyn FnMut(DailyCount),
) -> rusqlite::Result<()> {
    let moment = connection.unchecked_transaction()?;
    let revisions = read_revisions(&moment)?;
    let mut failed = HashSet::new();
    for_each_run(&moment, &revisions, |run| {
        if let (true, Some(revision)) = (run.ended.is_failure(), run.revision) {
            failed.insert((run.test, revision));
        }
    })?;
    let mut passed = HashSet::new();
    for_each_run(&moment, &revisions, |run| {
        if let (true, Some(revision)) = (run.ended.is_pass(), run.revision)
            && failed.contains(&(run.test, revision))
        {
            passed.insert((run.test, revision));
        }
    })?;
    for_each_run(&moment, &revisions, |run| {
        if run.attempt != 1 || !run.ended.counts() {
            return;
        }
        let also_passed = |revision| passed.contains(&(run.test, revision));
        let is_failure = run.ended.is_failure();
        visit(DailyCount {
            test: run.test,
            day: run.day,
            stream: run.stream,
            runs: 1,
            failures: u32::from(is_failure),
            flaky: u32::from(is_failure && run.revision.is_some_and(also_passed)),
        });
    })
}

/// The revision and stream of each provenance.
fn read_revisions(connection: &Connection) -> rusqlite::Result<HashMap<u32, (Option<u32>, u32)>> {
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut found = HashMap::new();
    let mut all = connection.prepare("SELECT id, revision, stream FROM provenance")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let revision: String = row.get(1)?;
        let is_exact = !revision.is_empty() && !revision.ends_with('+');
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        let number = is_exact.then(|| *numbers.entry(revision).or_insert(next));
        found.insert(row.get(0)?, (number, row.get(2)?));
    }
    Ok(found)
}

fn for_each_run(
    connection: &Connection,
    revisions: &HashMap<u32, (Option<u32>, u32)>,
    mut each: impl FnMut(Run),
) -> rusqlite::Result<()> {
    let all = "SELECT test, time, outcome, provenance, attempt FROM run";
    let mut all = connection.prepare(all)?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let Some(ended) = Ended::from_number(row.get(2)?) else {
            continue;
        };
        let provenance: u32 = row.get(3)?;
        let (revision, stream) = revisions.get(&provenance).copied().unwrap_or((None, 0));
        each(Run {
            test: row.get(0)?,
            day: to_day(row.get(1)?),
            stream,
            ended,
            attempt: row.get(4)?,
            revision,
        });
    }
    Ok(())
}
