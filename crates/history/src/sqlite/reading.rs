//! Reading runs, labels and what belongs to them.

use rusqlite::Row;

use super::{Sqlite, blocks, revision};
use crate::daily::{DailyCount, FlakyRule};
use crate::run::{Label, Provenance, TestName};
use crate::store::{Appended, KeptRun, Source, Store, StoreError, Stream};

impl Store for Sqlite {
    fn append(&mut self, source: &mut dyn Source) -> Result<Appended, StoreError> {
        self.append_source(source)
    }

    fn append_labels(&mut self, labels: &[Label]) -> Result<(), StoreError> {
        self.add_labels(labels)
    }

    fn tests(&self) -> Result<Vec<(u32, TestName)>, StoreError> {
        let all = "SELECT id, name, copy, by_framework FROM test ORDER BY id";
        self.read(all, [], |row| {
            let test = TestName {
                name: row.get(1)?,
                copy: row.get(2)?,
                is_own: row.get(3)?,
            };
            Ok((row.get(0)?, test))
        })
    }

    fn streams(&self) -> Result<Vec<Stream>, StoreError> {
        let all = "SELECT id, branch, release FROM stream ORDER BY id";
        self.read(all, [], |row| {
            Ok(Stream {
                number: row.get(0)?,
                branch: row.get(1)?,
                release: row.get(2)?,
            })
        })
    }

    fn visit_daily(
        &self,
        rule: FlakyRule,
        visit: &mut dyn FnMut(DailyCount),
    ) -> Result<(), StoreError> {
        if rule == FlakyRule::Revision {
            return revision::visit(&self.connection, visit).map_err(self.trouble());
        }
        let to_count = |key: blocks::Key, tally: crate::daily::Tally| DailyCount {
            test: key.test,
            day: key.day,
            stream: key.stream,
            runs: tally.runs,
            failures: tally.failures,
            flaky: tally.flaky(rule),
        };
        // Blocks and the runs after them are read as of the same moment.
        let moment = self.connection.unchecked_transaction();
        let moment = moment.map_err(self.trouble())?;
        blocks::visit(&moment, |key, tally| visit(to_count(key, tally))).map_err(self.trouble())
    }

    fn runs_of(&self, tests: &[u32], from: i64, to: i64) -> Result<Vec<KeptRun>, StoreError> {
        let mut runs = Vec::new();
        for test in tests {
            let all = "SELECT run.id, run.time, outcome.name, run.attempt, run.duration, \
                       provenance.revision, stream.branch, stream.release, provenance.environment, \
                       provenance.job, signature.text, signature.example, run.bug, run.verdict \
                       FROM run JOIN outcome ON outcome.id = run.outcome \
                       JOIN provenance ON provenance.id = run.provenance \
                       JOIN stream ON stream.id = provenance.stream \
                       LEFT JOIN signature ON signature.id = run.signature \
                       WHERE run.test = ?1 AND run.time BETWEEN ?2 AND ?3 ORDER BY run.time, run.id";
            runs.extend(self.read(all, (test, from, to), to_kept_run)?);
        }
        runs.sort_by_key(|run| (run.time, run.number));
        Ok(runs)
    }

    fn labels(&self) -> Result<Vec<Label>, StoreError> {
        let all = "SELECT label.time, test.name, test.copy, test.by_framework, label.run, label.kind, \
                   label.value, label.author FROM label JOIN test ON test.id = label.test ORDER BY label.id";
        self.read(all, [], |row| {
            Ok(Label {
                time: row.get(0)?,
                test: TestName {
                    name: row.get(1)?,
                    copy: row.get(2)?,
                    is_own: row.get(3)?,
                },
                run: row.get(4)?,
                kind: row.get(5)?,
                value: row.get(6)?,
                author: row.get(7)?,
            })
        })
    }

    fn revisions(
        &self,
        streams: &[u32],
        from: i64,
        to: i64,
    ) -> Result<Vec<(String, i64)>, StoreError> {
        let all = "SELECT provenance.revision, min(run.time), provenance.stream \
                   FROM run JOIN provenance ON provenance.id = run.provenance \
                   WHERE run.time BETWEEN ?1 AND ?2 AND provenance.revision <> '' \
                   GROUP BY provenance.revision, provenance.stream ORDER BY min(run.time)";
        let found: Vec<(String, i64, u32)> = self.read(all, (from, to), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
        let found = found.into_iter();
        let found = found.filter(|(_, _, stream)| streams.is_empty() || streams.contains(stream));
        Ok(found.map(|(revision, time, _)| (revision, time)).collect())
    }

    fn durations(&self) -> Result<Vec<(u32, f64)>, StoreError> {
        // The last million runs say enough about how long tests take.
        let all = "SELECT test, avg(duration) / 1e6 FROM run \
                   WHERE id > (SELECT max(id) FROM run) - 1000000 AND duration IS NOT NULL \
                   GROUP BY test ORDER BY test";
        self.read(all, [], |row| Ok((row.get(0)?, row.get(1)?)))
    }
}

impl Sqlite {
    fn read<T>(
        &self,
        query: &str,
        parameters: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.connection.prepare(query).map_err(self.trouble())?;
        let rows = statement.query_map(parameters, read);
        let rows = rows.and_then(Iterator::collect::<rusqlite::Result<Vec<T>>>);
        rows.map_err(self.trouble())
    }
}

fn to_kept_run(row: &Row<'_>) -> rusqlite::Result<KeptRun> {
    Ok(KeptRun {
        number: row.get(0)?,
        time: row.get(1)?,
        outcome: row.get(2)?,
        attempt: row.get(3)?,
        duration: row.get(4)?,
        provenance: Provenance {
            revision: row.get(5)?,
            branch: row.get(6)?,
            release: row.get(7)?,
            environment: row.get(8)?,
            job: row.get(9)?,
        },
        signature: row.get(10)?,
        example: row.get(11)?,
        bug: row.get(12)?,
        verdict: row.get(13)?,
    })
}
