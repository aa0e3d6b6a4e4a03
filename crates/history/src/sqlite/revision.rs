//! Counts by the rule that a failure is flaky if the test also passed at the same revision.
//!
//! Blocks do not know revisions, so the runs themselves are read, twice.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use super::blocks::to_day;
use crate::daily::DailyCount;
use crate::run::Ended;

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
