//! What the board asks of a store: few rows out of many millions, so by indexes.
//!
//! The indexes are made when a store is first served. A store that is only ever filled and counted does not
//! pay for them.

use std::collections::HashMap;

use rusqlite::{Connection, params_from_iter};

use super::rows::{JOINED, KEPT, each, read, to_kept, to_test};
use crate::run::{Provenance, TestName};
use crate::store::kept::{Extent, KeptFailure, KeptLabel, KeptRun, Scanned};

/// Failures and passing reruns are few among all runs. The numbers are those of `Ended`.
const INDEXES: &str = "
CREATE INDEX IF NOT EXISTS run_of_test ON run(test, time);
CREATE INDEX IF NOT EXISTS failure_in_time ON run(time) WHERE outcome IN (1, 2, 7, 8);
CREATE INDEX IF NOT EXISTS passed_rerun_in_time ON run(time) WHERE attempt > 1 AND outcome IN (0, 5);
";

/// Makes the indexes, if they are not there.
pub(super) fn add_indexes(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(INDEXES)
}

/// How far the store has grown.
pub(super) fn extent(connection: &Connection) -> rusqlite::Result<Extent> {
    let last = "SELECT (SELECT coalesce(max(id), 0) FROM run), \
                (SELECT coalesce(max(id), 0) FROM label)";
    connection.query_row(last, [], |row| {
        Ok(Extent {
            run: row.get(0)?,
            label: row.get(1)?,
        })
    })
}

/// The number of the last test that was added; 0 if there is none.
pub(super) fn last_test(connection: &Connection) -> rusqlite::Result<u32> {
    let last = "SELECT coalesce(max(id), 0) FROM test";
    connection.query_row(last, [], |row| row.get(0))
}

/// The failures in a range of times, first runs only, in the order of time.
pub(super) fn failures_between(
    connection: &Connection,
    from: i64,
    to: i64,
) -> rusqlite::Result<Vec<KeptFailure>> {
    let all = format!(
        "SELECT {KEPT}, run.test, provenance.stream, run.provenance, detail.rung \
         FROM run INDEXED BY failure_in_time {JOINED} \
         WHERE run.outcome IN (1, 2, 7, 8) AND run.attempt = 1 AND run.time BETWEEN ?1 AND ?2 \
         ORDER BY run.time, run.id"
    );
    read(connection, &all, (from, to), |row| {
        Ok(KeptFailure {
            run: to_kept(row)?,
            test: row.get(15)?,
            stream: row.get(16)?,
            provenance: row.get(17)?,
            rung: row.get(18)?,
        })
    })
}

/// Which tests failed in which provenances, of first runs in a range of times.
pub(super) fn failure_places(
    connection: &Connection,
    from: i64,
    to: i64,
) -> rusqlite::Result<Vec<(u32, u32)>> {
    let all = "SELECT DISTINCT test, provenance FROM run INDEXED BY failure_in_time \
               WHERE outcome IN (1, 2, 7, 8) AND attempt = 1 AND time BETWEEN ?1 AND ?2";
    read(connection, all, (from, to), |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
}

/// How many reruns of each test passed in a range of times.
pub(super) fn passed_reruns(
    connection: &Connection,
    from: i64,
    to: i64,
) -> rusqlite::Result<HashMap<u32, u32>> {
    let all = "SELECT test, count(*) FROM run INDEXED BY passed_rerun_in_time \
               WHERE attempt > 1 AND outcome IN (0, 5) AND time BETWEEN ?1 AND ?2 GROUP BY test";
    let found = read(connection, all, (from, to), |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    Ok(found.into_iter().collect())
}

/// The last runs of a test, the newest first.
pub(super) fn last_runs_of(
    connection: &Connection,
    tests: &[u32],
    most: u32,
) -> rusqlite::Result<Vec<KeptRun>> {
    newest(connection, tests, most, "")
}

/// One test's failures, the newest first.
pub(super) fn failures_of(
    connection: &Connection,
    tests: &[u32],
    most: u32,
) -> rusqlite::Result<Vec<KeptRun>> {
    newest(connection, tests, most, "AND outcome IN (1, 2, 7, 8)")
}

/// The last runs of a test for which something more holds, the newest first.
fn newest(
    connection: &Connection,
    tests: &[u32],
    most: u32,
    more: &str,
) -> rusqlite::Result<Vec<KeptRun>> {
    let last = format!(
        "SELECT {KEPT} FROM (SELECT * FROM run INDEXED BY run_of_test WHERE test = ?1 {more} \
         ORDER BY time DESC LIMIT ?2) AS run {JOINED}"
    );
    let mut runs = Vec::new();
    for test in tests {
        runs.extend(read(connection, &last, (test, most), to_kept)?);
    }
    runs.sort_by_key(|run| std::cmp::Reverse((run.time, run.number)));
    runs.truncate(most as usize);
    Ok(runs)
}

/// The runs of some tests in a range of times, as day, stream, and whether it failed: what daily counts
/// of days long past are made of.
pub(super) fn visit_days_of(
    connection: &Connection,
    tests: &[u32],
    from: i64,
    to: i64,
    visit: &mut dyn FnMut(i64, u32, bool),
) -> rusqlite::Result<()> {
    let places = vec!["?"; tests.len()].join(",");
    let all = format!(
        "SELECT run.time, provenance.stream, run.outcome FROM run INDEXED BY run_of_test \
         JOIN provenance ON provenance.id = run.provenance \
         WHERE run.test IN ({places}) AND run.time BETWEEN {from} AND {to} AND run.attempt = 1 \
         AND run.outcome IN (0, 1, 2, 5, 7, 8)"
    );
    let numbers = params_from_iter(tests.iter());
    each(connection, &all, numbers, |row| {
        let outcome: i64 = row.get(2)?;
        visit(row.get(0)?, row.get(1)?, !matches!(outcome, 0 | 5));
        Ok(())
    })
}

/// What the test with a number is called.
pub(super) fn test_by_number(
    connection: &Connection,
    number: u32,
) -> rusqlite::Result<Option<TestName>> {
    let one = "SELECT name, copy, by_framework FROM test WHERE id = ?1";
    let found = read(connection, one, [number], |row| to_test(row, 0))?;
    Ok(found.into_iter().next())
}

/// All labels in the order in which they were added.
pub(super) fn labels(connection: &Connection) -> rusqlite::Result<Vec<KeptLabel>> {
    let all = "SELECT time, test, run, kind, value, author FROM label ORDER BY id";
    read(connection, all, [], |row| {
        Ok(KeptLabel {
            time: row.get(0)?,
            test: row.get(1)?,
            run: row.get(2)?,
            kind: row.get(3)?,
            value: row.get(4)?,
            author: row.get(5)?,
        })
    })
}

/// All provenances by number, with the numbers of their streams.
pub(super) fn provenances(
    connection: &Connection,
) -> rusqlite::Result<HashMap<u32, (u32, Provenance)>> {
    let all = "SELECT provenance.id, provenance.stream, revision, stream.branch, stream.release, \
               environment, job FROM provenance JOIN stream ON stream.id = provenance.stream";
    let found = read(connection, all, [], |row| {
        let provenance = Provenance {
            revision: row.get(2)?,
            branch: row.get(3)?,
            release: row.get(4)?,
            environment: row.get(5)?,
            job: row.get(6)?,
        };
        Ok((row.get(0)?, (row.get(1)?, provenance)))
    })?;
    Ok(found.into_iter().collect())
}

/// Visits all runs after a number that count, in the order of their numbers.
pub(super) fn scan_after(
    connection: &Connection,
    number: i64,
    visit: &mut dyn FnMut(Scanned),
) -> rusqlite::Result<()> {
    let all = "SELECT provenance, time, outcome, attempt FROM run WHERE id > ?1";
    each(connection, all, [number], |row| {
        let outcome: i64 = row.get(2)?;
        if matches!(outcome, 0 | 1 | 2 | 5 | 7 | 8) {
            visit(Scanned {
                provenance: row.get(0)?,
                time: row.get(1)?,
                is_failure: !matches!(outcome, 0 | 5),
                is_first: row.get::<_, i64>(3)? == 1,
            });
        }
        Ok(())
    })
}
