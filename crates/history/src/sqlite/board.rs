//! What the board asks of a store: few rows out of many millions, so by indexes.
//!
//! The indexes are made when a store is first served. A store that is only ever filled and counted does not
//! pay for them.

use std::collections::HashMap;

use rusqlite::params_from_iter;

use super::Sqlite;
use super::rows::{JOINED, KEPT, to_kept, to_test};
use crate::run::{Provenance, TestName};
use crate::store::{KeptRun, StoreError};

/// Failures and passing reruns are few among all runs. The numbers are those of `Ended`.
const INDEXES: &str = "
CREATE INDEX IF NOT EXISTS run_of_test ON run(test, time);
CREATE INDEX IF NOT EXISTS failure_in_time ON run(time) WHERE outcome IN (1, 2, 7, 8);
CREATE INDEX IF NOT EXISTS passed_rerun_in_time ON run(time) WHERE attempt > 1 AND outcome IN (0, 5);
";

/// How far a store has grown: the numbers of its last run and its last label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The last run.
    pub run: i64,
    /// The last label.
    pub label: i64,
}

/// A failure with all that is kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFailure {
    /// The test's number.
    pub test: u32,
    /// The stream's number.
    pub stream: u32,
    /// The number of its provenance: failures of one report share it.
    pub provenance: u32,
    /// The run.
    pub run: KeptRun,
    /// Why it was run, if that is known.
    pub rung: Option<String>,
}

/// A label with the number of its test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLabel {
    /// When it was said, in milliseconds since 1970.
    pub time: i64,
    /// The test's number.
    pub test: u32,
    /// The run that it is about, if it is about one.
    pub run: Option<i64>,
    /// What it says.
    pub kind: String,
    /// More about it.
    pub value: String,
    /// Who said it.
    pub author: String,
}

/// One row of the scan that builds are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// The number of the run's provenance.
    pub provenance: u32,
    /// Milliseconds since 1970.
    pub time: i64,
    /// Whether it made a suite red.
    pub is_failure: bool,
    /// Whether it is the run itself, and not a rerun.
    pub is_first: bool,
}

impl Sqlite {
    /// Makes the indexes, if they are not there.
    pub fn prepare_board(&self) -> Result<(), StoreError> {
        self.connection
            .execute_batch(INDEXES)
            .map_err(self.trouble())
    }

    /// How far the store has grown.
    pub fn extent(&self) -> Result<Extent, StoreError> {
        let last = "SELECT (SELECT coalesce(max(id), 0) FROM run), \
                    (SELECT coalesce(max(id), 0) FROM label)";
        let found = self.connection.query_row(last, [], |row| {
            Ok(Extent {
                run: row.get(0)?,
                label: row.get(1)?,
            })
        });
        found.map_err(self.trouble())
    }

    /// The number of the last test that was added; 0 if there is none.
    pub fn last_test(&self) -> Result<u32, StoreError> {
        let last = "SELECT coalesce(max(id), 0) FROM test";
        let found = self.connection.query_row(last, [], |row| row.get(0));
        found.map_err(self.trouble())
    }

    /// The failures in a range of times, first runs only, in the order of time.
    pub fn failures_between(&self, from: i64, to: i64) -> Result<Vec<KeptFailure>, StoreError> {
        let all = format!(
            "SELECT {KEPT}, run.test, provenance.stream, run.provenance, detail.rung \
             FROM run INDEXED BY failure_in_time {JOINED} \
             WHERE run.outcome IN (1, 2, 7, 8) AND run.attempt = 1 AND run.time BETWEEN ?1 AND ?2 \
             ORDER BY run.time, run.id"
        );
        self.read(&all, (from, to), |row| {
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
    pub fn failure_places(&self, from: i64, to: i64) -> Result<Vec<(u32, u32)>, StoreError> {
        let all = "SELECT DISTINCT test, provenance FROM run INDEXED BY failure_in_time \
                   WHERE outcome IN (1, 2, 7, 8) AND attempt = 1 AND time BETWEEN ?1 AND ?2";
        self.read(all, (from, to), |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// How many reruns of each test passed in a range of times.
    pub fn passed_reruns(&self, from: i64, to: i64) -> Result<HashMap<u32, u32>, StoreError> {
        let all = "SELECT test, count(*) FROM run INDEXED BY passed_rerun_in_time \
                   WHERE attempt > 1 AND outcome IN (0, 5) AND time BETWEEN ?1 AND ?2 GROUP BY test";
        let found = self.read(all, (from, to), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(found.into_iter().collect())
    }

    /// The last runs of a test, the newest first.
    pub fn last_runs_of(&self, tests: &[u32], most: u32) -> Result<Vec<KeptRun>, StoreError> {
        self.newest(tests, most, "")
    }

    /// One test's failures that are kept with a signature, the newest first.
    pub fn failures_of(&self, tests: &[u32], most: u32) -> Result<Vec<KeptRun>, StoreError> {
        self.newest(tests, most, "AND outcome IN (1, 2, 7, 8)")
    }

    /// The last runs of a test for which something more holds, the newest first.
    fn newest(&self, tests: &[u32], most: u32, more: &str) -> Result<Vec<KeptRun>, StoreError> {
        let last = format!(
            "SELECT {KEPT} FROM (SELECT * FROM run INDEXED BY run_of_test WHERE test = ?1 {more} \
             ORDER BY time DESC LIMIT ?2) AS run {JOINED}"
        );
        let mut runs = Vec::new();
        for test in tests {
            runs.extend(self.read(&last, (test, most), to_kept)?);
        }
        runs.sort_by_key(|run| std::cmp::Reverse((run.time, run.number)));
        runs.truncate(most as usize);
        Ok(runs)
    }

    /// The runs of some tests in a range of times, as day, stream, and whether it failed: what daily counts
    /// of days long past are made of.
    pub fn visit_days_of(
        &self,
        tests: &[u32],
        (from, to): (i64, i64),
        mut visit: impl FnMut(i64, u32, bool),
    ) -> Result<(), StoreError> {
        let places = vec!["?"; tests.len()].join(",");
        let all = format!(
            "SELECT run.time, provenance.stream, run.outcome FROM run INDEXED BY run_of_test \
             JOIN provenance ON provenance.id = run.provenance \
             WHERE run.test IN ({places}) AND run.time BETWEEN {from} AND {to} AND run.attempt = 1 \
             AND run.outcome IN (0, 1, 2, 5, 7, 8)"
        );
        let numbers = params_from_iter(tests.iter());
        self.each(&all, numbers, |row| {
            let outcome: i64 = row.get(2)?;
            visit(row.get(0)?, row.get(1)?, !matches!(outcome, 0 | 5));
            Ok(())
        })
    }

    /// What the test with a number is called.
    pub fn test_by_number(&self, number: u32) -> Result<Option<TestName>, StoreError> {
        let one = "SELECT name, copy, by_framework FROM test WHERE id = ?1";
        let found = self.read(one, [number], |row| to_test(row, 0))?;
        Ok(found.into_iter().next())
    }

    /// A run by its number, with its test's number and its stream's.
    pub fn run_by_number(&self, number: i64) -> Result<Option<(u32, u32, KeptRun)>, StoreError> {
        let one = format!(
            "SELECT {KEPT}, run.test, provenance.stream FROM run {JOINED} WHERE run.id = ?1"
        );
        let found = self.read(&one, [number], |row| {
            Ok((row.get(15)?, row.get(16)?, to_kept(row)?))
        })?;
        Ok(found.into_iter().next())
    }

    /// All labels in the order in which they were added.
    pub fn kept_labels(&self) -> Result<Vec<KeptLabel>, StoreError> {
        let all = "SELECT time, test, run, kind, value, author FROM label ORDER BY id";
        self.read(all, [], |row| {
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
    pub fn provenances(&self) -> Result<HashMap<u32, (u32, Provenance)>, StoreError> {
        let all = "SELECT provenance.id, provenance.stream, revision, stream.branch, stream.release, \
                   environment, job FROM provenance JOIN stream ON stream.id = provenance.stream";
        let found = self.read(all, [], |row| {
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
    pub fn scan_after(
        &self,
        number: i64,
        mut visit: impl FnMut(Scanned),
    ) -> Result<(), StoreError> {
        let all = "SELECT provenance, time, outcome, attempt FROM run WHERE id > ?1";
        self.each(all, [number], |row| {
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
}
