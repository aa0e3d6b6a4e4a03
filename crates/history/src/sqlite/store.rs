//! The answers of a store in SQLite: each question is a function of its own over the connection.

use std::collections::HashMap;
use std::fs;

use rusqlite::Connection;

use super::{Sqlite, append, board, evidence, leftovers, passed, past, runs, translate};
use crate::daily::{DailyCount, FlakyRule};
use crate::run::{Label, Provenance, TestName};
use crate::store::evidence::{Evidence, Question};
use crate::store::folder::{Left, PassedRun};
use crate::store::kept::{Extent, KeptFailure, KeptLabel, KeptRun, Scanned, Stream};
use crate::store::source::{Appended, Source};
use crate::store::{Store, StoreError};

impl Sqlite {
    /// Asks the database, and says its trouble in our words.
    fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        question(&self.connection).map_err(|error| translate(&self.path, error))
    }

    /// Writes into the database, and says its trouble in our words.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        work(&mut self.connection).map_err(|error| translate(&self.path, error))
    }
}

impl Store for Sqlite {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn bytes(&self) -> Result<u64, StoreError> {
        let file = fs::metadata(&self.path);
        file.map(|file| file.len())
            .map_err(|source| StoreError::Open {
                path: self.path.clone(),
                source: source.into(),
            })
    }

    fn prepare_to_serve(&self) -> Result<(), StoreError> {
        self.ask(board::add_indexes)
    }

    fn append(&mut self, source: &mut dyn Source) -> Result<Appended, StoreError> {
        self.write(|connection| append::append(connection, source))
    }

    fn append_all(&mut self, sources: &mut [&mut dyn Source]) -> Result<Vec<Appended>, StoreError> {
        self.write(|connection| append::group::append_all(connection, sources))
    }

    fn has_import(&self, digest: &[u8; 32]) -> Result<bool, StoreError> {
        self.ask(|connection| append::has_import(connection, digest))
    }

    fn append_labels(&mut self, labels: &[Label]) -> Result<(), StoreError> {
        self.write(|connection| append::append_labels(connection, labels))
    }

    fn labels(&self) -> Result<Vec<KeptLabel>, StoreError> {
        self.ask(board::labels)
    }

    fn extent(&self) -> Result<Extent, StoreError> {
        self.ask(board::extent)
    }

    fn tests(&self) -> Result<Vec<(u32, TestName)>, StoreError> {
        self.ask(runs::tests)
    }

    fn test_by_number(&self, number: u32) -> Result<Option<TestName>, StoreError> {
        self.ask(|connection| board::test_by_number(connection, number))
    }

    fn last_test(&self) -> Result<u32, StoreError> {
        self.ask(board::last_test)
    }

    fn streams(&self) -> Result<Vec<Stream>, StoreError> {
        self.ask(runs::streams)
    }

    fn provenances(&self) -> Result<HashMap<u32, (u32, Provenance)>, StoreError> {
        self.ask(board::provenances)
    }

    fn visit_daily(
        &self,
        rule: FlakyRule,
        visit: &mut dyn FnMut(DailyCount),
    ) -> Result<(), StoreError> {
        self.ask(|connection| runs::visit_daily(connection, rule, visit))
    }

    fn visit_runs(
        &self,
        streams: &[u32],
        from: i64,
        to: i64,
        visit: &mut dyn FnMut(i64, u32, bool),
    ) -> Result<(), StoreError> {
        self.ask(|connection| runs::visit_runs(connection, streams, from, to, visit))
    }

    fn visit_days_of(
        &self,
        tests: &[u32],
        from: i64,
        to: i64,
        visit: &mut dyn FnMut(i64, u32, bool),
    ) -> Result<(), StoreError> {
        self.ask(|connection| board::visit_days_of(connection, tests, from, to, visit))
    }

    fn scan_after(&self, number: i64, visit: &mut dyn FnMut(Scanned)) -> Result<(), StoreError> {
        self.ask(|connection| board::scan_after(connection, number, visit))
    }

    fn runs_of(&self, tests: &[u32], from: i64, to: i64) -> Result<Vec<KeptRun>, StoreError> {
        self.ask(|connection| runs::runs_of(connection, tests, from, to))
    }

    fn last_runs_of(&self, tests: &[u32], most: u32) -> Result<Vec<KeptRun>, StoreError> {
        self.ask(|connection| board::last_runs_of(connection, tests, most))
    }

    fn failures_of(&self, tests: &[u32], most: u32) -> Result<Vec<KeptRun>, StoreError> {
        self.ask(|connection| board::failures_of(connection, tests, most))
    }

    fn failures_between(&self, from: i64, to: i64) -> Result<Vec<KeptFailure>, StoreError> {
        self.ask(|connection| board::failures_between(connection, from, to))
    }

    fn failure_places(&self, from: i64, to: i64) -> Result<Vec<(u32, u32)>, StoreError> {
        self.ask(|connection| board::failure_places(connection, from, to))
    }

    fn passed_reruns(&self, from: i64, to: i64) -> Result<HashMap<u32, u32>, StoreError> {
        self.ask(|connection| board::passed_reruns(connection, from, to))
    }

    fn revisions(
        &self,
        streams: &[u32],
        from: i64,
        to: i64,
    ) -> Result<Vec<(String, i64)>, StoreError> {
        self.ask(|connection| runs::revisions(connection, streams, from, to))
    }

    fn durations(&self) -> Result<Vec<(u32, f64)>, StoreError> {
        self.ask(runs::durations)
    }

    fn evidence(
        &self,
        question: &Question<'_>,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Option<Evidence>, StoreError> {
        self.ask(|connection| evidence::evidence(connection, question, is_wanted))
    }

    fn first_tested(
        &self,
        source: &str,
        revision: &str,
        before: i64,
    ) -> Result<Option<i64>, StoreError> {
        self.ask(|connection| evidence::first_tested(connection, source, revision, before))
    }

    fn past_of(&self, run: i64) -> Result<Option<Vec<TestName>>, StoreError> {
        self.ask(|connection| past::past_of(connection, run))
    }

    fn add_leftovers(&mut self, place: &str, leftovers: &[Left]) -> Result<(), StoreError> {
        self.write(|connection| leftovers::add(connection, place, leftovers))
    }

    fn leftovers(&self, place: &str) -> Result<Vec<Left>, StoreError> {
        self.ask(|connection| leftovers::read(connection, place))
    }

    fn keep_passed(
        &mut self,
        project: &str,
        source: &str,
        run: &PassedRun,
    ) -> Result<(), StoreError> {
        self.write(|connection| passed::keep(connection, project, source, run))
    }

    fn passed(&self, project: &str, source: &str) -> Result<Option<PassedRun>, StoreError> {
        self.ask(|connection| passed::read(connection, project, source))
    }
}
