//! Reading runs, labels and what belongs to them.

use std::collections::{HashMap, HashSet};

use rusqlite::Row;

use super::labelled::Labelled;
use super::rows::{JOINED, KEPT, to_kept, to_test};
use super::{Sqlite, blocks, revision};
use crate::daily::{DailyCount, FlakyRule};
use crate::run::{Ended, Label, TestName};
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
        self.read(all, [], |row| Ok((row.get(0)?, to_test(row, 1)?)))
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
        // Blocks, the runs after them and the labels are read as of the same moment.
        let moment = self.connection.unchecked_transaction();
        let moment = moment.map_err(self.trouble())?;
        let mut labelled = Labelled::read(&moment, rule).map_err(self.trouble())?;
        let mut to_count = |key: blocks::Key, tally: crate::daily::Tally| DailyCount {
            test: key.test,
            day: key.day,
            stream: key.stream,
            runs: tally.runs,
            failures: tally.failures,
            flaky: labelled.take_from(key, tally.flaky(rule)),
        };
        blocks::visit(&moment, |key, tally| visit(to_count(key, tally))).map_err(self.trouble())
    }

    fn runs_of(&self, tests: &[u32], from: i64, to: i64) -> Result<Vec<KeptRun>, StoreError> {
        let mut runs = Vec::new();
        for test in tests {
            let all = format!(
                "SELECT {KEPT} FROM run {JOINED} \
                 WHERE run.test = ?1 AND run.time BETWEEN ?2 AND ?3 ORDER BY run.time, run.id"
            );
            runs.extend(self.read(&all, (test, from, to), to_kept)?);
        }
        runs.sort_by_key(|run| (run.time, run.number));
        Ok(runs)
    }

    fn visit_runs(
        &self,
        streams: &[u32],
        from: i64,
        to: i64,
        visit: &mut dyn FnMut(i64, u32, bool),
    ) -> Result<(), StoreError> {
        let of: Vec<(u32, u32)> = self.read("SELECT id, stream FROM provenance", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        let wanted = of.iter().filter(|(_, stream)| streams.contains(stream));
        let wanted: HashSet<u32> = wanted.map(|(provenance, _)| *provenance).collect();
        let all = "SELECT time, test, outcome, provenance FROM run WHERE attempt = 1 AND time BETWEEN ?1 AND ?2";
        self.each(all, (from, to), |row| {
            let ended = Ended::from_number(row.get(2)?).filter(|ended| ended.counts());
            if let Some(ended) = ended
                && wanted.contains(&row.get(3)?)
            {
                visit(row.get(0)?, row.get(1)?, ended.is_failure());
            }
            Ok(())
        })
    }

    fn labels(&self) -> Result<Vec<Label>, StoreError> {
        let all = "SELECT label.time, test.name, test.copy, test.by_framework, label.run, label.kind, \
                   label.value, label.author FROM label JOIN test ON test.id = label.test ORDER BY label.id";
        self.read(all, [], |row| {
            Ok(Label {
                time: row.get(0)?,
                test: to_test(row, 1)?,
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
        let known = "SELECT id, revision, stream FROM provenance WHERE revision <> ''";
        let known: Vec<(u32, String, u32)> =
            self.read(known, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let of: HashMap<u32, String> = known
            .into_iter()
            .filter(|(_, _, stream)| streams.contains(stream))
            .map(|(provenance, revision, _)| (provenance, revision))
            .collect();
        if of.is_empty() {
            return Ok(Vec::new());
        }
        // A revision begins with its first run ever, which may be before the range.
        let all = "SELECT provenance, min(time) FROM run WHERE time <= ?1 GROUP BY provenance";
        let mut first: HashMap<&str, i64> = HashMap::new();
        self.each(all, [to], |row| {
            if let Some(revision) = of.get(&row.get(0)?) {
                let time: i64 = row.get(1)?;
                let known = first.entry(revision).or_insert(time);
                *known = time.min(*known);
            }
            Ok(())
        })?;
        let mut found: Vec<(String, i64)> = first
            .into_iter()
            .filter(|(_, time)| *time >= from)
            .map(|(revision, time)| (revision.to_owned(), time))
            .collect();
        found.sort_by(|one, other| one.1.cmp(&other.1).then_with(|| one.0.cmp(&other.0)));
        Ok(found)
    }

    fn durations(&self) -> Result<Vec<(u32, f64)>, StoreError> {
        // The last runs say enough about how long tests take.
        let all = "SELECT test, avg(duration) / 1e6 FROM run \
                   WHERE id > (SELECT max(id) FROM run) - 200000 AND duration IS NOT NULL \
                   GROUP BY test ORDER BY test";
        self.read(all, [], |row| Ok((row.get(0)?, row.get(1)?)))
    }
}

impl Sqlite {
    pub(super) fn each(
        &self,
        query: &str,
        parameters: impl rusqlite::Params,
        mut each: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare(query).map_err(self.trouble())?;
        let mut rows = statement.query(parameters).map_err(self.trouble())?;
        while let Some(row) = rows.next().map_err(self.trouble())? {
            each(row).map_err(self.trouble())?;
        }
        Ok(())
    }

    pub(super) fn read<T>(
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
