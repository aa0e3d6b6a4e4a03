//! Which failures there were and what had run before them: each fingerprint and each past stands there once.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::append::{find_or_add, find_test};
use super::rows::{read, to_test};
use crate::past::Past;
use crate::run::{More, TestName};

/// So many fingerprints are remembered while a source is written.
const FINGERPRINTS: usize = 100_000;

/// The failures of a source on their way into the tables.
pub(super) struct Failures<'a> {
    transaction: &'a Transaction<'a>,
    fingerprints: HashMap<String, i64>,
    pasts: HashMap<[u8; 32], i64>,
}

impl<'a> Failures<'a> {
    pub(super) fn new(transaction: &'a Transaction<'a>) -> Self {
        Self {
            transaction,
            fingerprints: HashMap::new(),
            pasts: HashMap::new(),
        }
    }

    /// Writes which failure a run was, if it was one.
    pub(super) fn write(&mut self, run: i64, more: &More) -> rusqlite::Result<()> {
        let Some(fingerprint) = &more.fingerprint else {
            return Ok(());
        };
        let fingerprint = self.find_fingerprint(fingerprint)?;
        let past = more.past.as_ref();
        let past = past.map(|past| self.find_past(past)).transpose()?;
        let add = "INSERT INTO failure(run, fingerprint, past) VALUES (?1, ?2, ?3)";
        let mut add = self.transaction.prepare_cached(add)?;
        add.execute(params![run, fingerprint, past])?;
        Ok(())
    }

    fn find_fingerprint(&mut self, text: &str) -> rusqlite::Result<i64> {
        if let Some(number) = self.fingerprints.get(text) {
            return Ok(*number);
        }
        let number = find_or_add(
            self.transaction,
            "SELECT id FROM fingerprint WHERE text = ?1",
            "INSERT INTO fingerprint(text) VALUES (?1)",
            params![text],
            params![text],
        )?;
        if self.fingerprints.len() >= FINGERPRINTS {
            self.fingerprints.clear();
        }
        self.fingerprints.insert(text.to_owned(), number);
        Ok(number)
    }

    fn find_past(&mut self, past: &Arc<Past>) -> rusqlite::Result<i64> {
        // From the latest back to one that is there already, and forth again.
        let mut missing = Vec::new();
        let mut known = None;
        let mut at = Some(past);
        while let Some(past) = at {
            known = self.known_past(past.digest())?;
            if known.is_some() {
                break;
            }
            missing.push(past);
            at = past.before();
        }
        for past in missing.into_iter().rev() {
            let mut tests = Vec::new();
            for test in past.tests() {
                tests.push(find_test(self.transaction, test)?.to_string());
            }
            let add = "INSERT INTO past(digest, before, tests) VALUES (?1, ?2, ?3)";
            let mut add = self.transaction.prepare_cached(add)?;
            add.execute(params![past.digest(), known, tests.join(",")])?;
            let number = self.transaction.last_insert_rowid();
            self.pasts.insert(*past.digest(), number);
            known = Some(number);
        }
        Ok(known.expect("the latest is there, or was just added"))
    }

    fn known_past(&mut self, digest: &[u8; 32]) -> rusqlite::Result<Option<i64>> {
        if let Some(number) = self.pasts.get(digest) {
            return Ok(Some(*number));
        }
        let find = "SELECT id FROM past WHERE digest = ?1";
        let mut find = self.transaction.prepare_cached(find)?;
        find.query_row([digest], |row| row.get(0)).optional()
    }
}

/// The tests that had run before a failure in its VM, in their order, reruns included. `None` if it is not known.
pub(super) fn past_of(
    connection: &Connection,
    run: i64,
) -> rusqlite::Result<Option<Vec<TestName>>> {
    let own = "SELECT past FROM failure WHERE run = ?1 AND past IS NOT NULL";
    let own: Vec<i64> = read(connection, own, [run], |row| row.get(0))?;
    let Some(mut at) = own.into_iter().next() else {
        return Ok(None);
    };
    let mut stretches = Vec::new();
    loop {
        let one = "SELECT before, tests FROM past WHERE id = ?1";
        let found: Vec<(Option<i64>, String)> =
            read(connection, one, [at], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let Some((before, tests)) = found.into_iter().next() else {
            break;
        };
        stretches.push(tests);
        match before {
            Some(before) => at = before,
            None => break,
        }
    }
    let name = "SELECT name, copy, by_framework FROM test WHERE id = ?1";
    let mut tests = Vec::new();
    for number in stretches.iter().rev().flat_map(|tests| tests.split(',')) {
        tests.extend(read(connection, name, [number], |row| to_test(row, 0))?);
    }
    Ok(Some(tests))
}
