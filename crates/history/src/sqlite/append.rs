//! Adding runs and labels.

pub(super) mod first;
pub(super) mod group;
mod insert;

use std::collections::HashMap;

use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params,
};

use self::insert::Insert;
use super::blocks::Builder;
use super::past::Failures;
use crate::batch::Batch;
use crate::run::{Label, More, Provenance, Row, TestName};
use crate::store::source::{Appended, Refused, Source};

const INSERT_DETAIL: &str = "INSERT INTO detail(run, rung, vm, signature, bug, verdict) \
                             VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// So many signatures are remembered while a source is written.
const SIGNATURES: usize = 100_000;

/// Adds all runs of a source, or none of them.
pub(super) fn append(
    connection: &mut Connection,
    source: &mut dyn Source,
) -> rusqlite::Result<Appended> {
    // The first batches are awaited before the lock is taken: others may write meanwhile.
    let (batches, is_large) = first::begin(source);
    let has_left = is_large && first::leave_log(connection)?;
    let appended = append_batches(connection, batches, source);
    if has_left {
        // What was added is there already. A store without its log gets it when it is opened.
        let _ = first::take_log(connection);
    }
    appended
}

fn append_batches(
    connection: &mut Connection,
    batches: Vec<Batch>,
    source: &mut dyn Source,
) -> rusqlite::Result<Appended> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let builder = Builder::begin(&transaction)?;
    let mut writer = Writer::begin(&transaction, source, builder)?;
    let more = std::iter::from_fn(|| source.next_batch());
    for batch in batches.into_iter().chain(more) {
        writer.write(&batch)?;
    }
    let digest = match source.digest() {
        Ok(digest) => digest,
        Err(Refused) => return Ok(Appended::Refused),
    };
    let runs = writer.runs;
    if writer.end(digest)?.is_none() {
        return Ok(Appended::Known);
    }
    transaction.commit()?;
    Ok(Appended::Added { runs })
}

/// Adds labels.
pub(super) fn append_labels(connection: &mut Connection, labels: &[Label]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let add = "INSERT INTO label(time, test, run, kind, value, author) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    for label in labels {
        let test = find_test(&transaction, &label.test)?;
        let Label {
            time,
            run,
            kind,
            value,
            author,
            ..
        } = label;
        transaction.execute(add, params![time, test, run, kind, value, author])?;
    }
    transaction.commit()
}

/// Whether something with this digest was added.
pub(super) fn has_import(connection: &Connection, digest: &[u8; 32]) -> rusqlite::Result<bool> {
    let known = "SELECT 1 FROM import WHERE digest = ?1";
    let found = connection.query_row(known, [digest], |_| Ok(()));
    Ok(found.optional()?.is_some())
}

/// One source on its way into the tables.
pub(super) struct Writer<'a> {
    transaction: &'a Transaction<'a>,
    import: i64,
    /// The number that the next run gets: one more than the largest, as nobody else writes meanwhile.
    next: i64,
    pub(super) runs: u64,
    /// The numbers of the batch's tests and provenances, the latter with their streams.
    tests: Vec<i64>,
    provenances: Vec<(i64, u32)>,
    signatures: HashMap<String, i64>,
    failures: Failures<'a>,
    builder: Builder<'a>,
    insert: Insert<'a>,
}

impl<'a> Writer<'a> {
    pub(super) fn begin(
        transaction: &'a Transaction<'a>,
        source: &dyn Source,
        builder: Builder<'a>,
    ) -> rusqlite::Result<Self> {
        // Its digest is known at the end only. Nobody sees it before.
        let add = "INSERT INTO import(digest, source, first, last, installed, project, jobs, hash_seed) \
                   VALUES (x'', ?1, 0, -1, ?2, ?3, ?4, ?5)";
        let (name, installed) = (source.name(), source.installed());
        let ours = source.conditions();
        let (project, jobs, hash_seed) = match &ours {
            Some(ours) => (
                Some(&ours.project),
                Some(ours.jobs),
                ours.hash_seed.as_ref(),
            ),
            None => (None, None, None),
        };
        transaction.execute(add, params![name, installed, project, jobs, hash_seed])?;
        let import = transaction.last_insert_rowid();
        let last = "SELECT coalesce(max(id), 0) FROM run";
        let last: i64 = transaction.query_row(last, [], |row| row.get(0))?;
        Ok(Self {
            transaction,
            import,
            next: last + 1,
            runs: 0,
            tests: Vec::new(),
            provenances: Vec::new(),
            signatures: HashMap::new(),
            failures: Failures::new(transaction),
            builder,
            insert: Insert::begin(transaction)?,
        })
    }

    pub(super) fn write(&mut self, batch: &Batch) -> rusqlite::Result<()> {
        if batch.is_fresh {
            self.tests.clear();
            self.provenances.clear();
        }
        for test in &batch.tests {
            self.tests.push(find_test(self.transaction, test)?);
        }
        for provenance in &batch.provenances {
            let found = find_provenance(self.transaction, provenance)?;
            self.provenances.push(found);
        }
        for row in &batch.rows {
            self.write_run(row)?;
        }
        self.insert.flush()
    }

    fn write_run(&mut self, row: &Row) -> rusqlite::Result<()> {
        let test = self.tests[row.test as usize];
        let (provenance, stream) = self.provenances[row.provenance as usize];
        self.insert.add([
            Some(test),
            Some(row.time),
            Some(i64::from(row.ended.number())),
            Some(provenance),
            Some(i64::from(row.attempt)),
            row.duration,
        ])?;
        if let Some(more) = &row.more {
            self.write_detail(self.next, more)?;
        }
        self.builder.add(row, self.next, test, stream)?;
        self.next += 1;
        self.runs += 1;
        Ok(())
    }

    fn write_detail(&mut self, run: i64, more: &More) -> rusqlite::Result<()> {
        let signature = match &more.signature {
            None => None,
            Some(found) => Some(self.find_signature(found, &more.message)?),
        };
        let mut insert = self.transaction.prepare_cached(INSERT_DETAIL)?;
        insert.execute(params![
            run,
            more.rung,
            more.vm,
            signature,
            more.bug,
            more.verdict
        ])?;
        self.failures.write(run, more)
    }

    fn find_signature(&mut self, text: &str, example: &str) -> rusqlite::Result<i64> {
        if let Some(number) = self.signatures.get(text) {
            return Ok(*number);
        }
        let number = find_or_add(
            self.transaction,
            "SELECT id FROM signature WHERE text = ?1",
            "INSERT INTO signature(text, example) VALUES (?1, ?2)",
            params![text],
            params![text, example],
        )?;
        if self.signatures.len() >= SIGNATURES {
            self.signatures.clear();
        }
        self.signatures.insert(text.to_owned(), number);
        Ok(number)
    }

    /// Nothing if a source with this digest is there already; else what counts runs, for the next source.
    pub(super) fn end(mut self, digest: [u8; 32]) -> rusqlite::Result<Option<Builder<'a>>> {
        self.builder.settle(self.next - 1)?;
        let update = "UPDATE import SET digest = ?1, first = ?2, last = ?3 WHERE id = ?4";
        let last = self.next - 1;
        let first = self.next - i64::try_from(self.runs).unwrap_or(0);
        match self
            .transaction
            .execute(update, params![digest, first, last, self.import])
        {
            Ok(_) => Ok(Some(self.builder)),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

pub(super) fn find_test(connection: &Connection, test: &TestName) -> rusqlite::Result<i64> {
    find_or_add(
        connection,
        "SELECT id FROM test WHERE name = ?1 AND copy = ?2 AND by_framework = ?3",
        "INSERT INTO test(name, copy, by_framework) VALUES (?1, ?2, ?3)",
        params![test.name, test.copy, test.is_own],
        params![test.name, test.copy, test.is_own],
    )
}

/// The number of a provenance, and of its stream.
fn find_provenance(
    connection: &Connection,
    provenance: &Provenance,
) -> rusqlite::Result<(i64, u32)> {
    let Provenance {
        revision,
        branch,
        release,
        environment,
        job,
    } = provenance;
    let stream = find_or_add(
        connection,
        "SELECT id FROM stream WHERE branch = ?1 AND release = ?2",
        "INSERT INTO stream(branch, release) VALUES (?1, ?2)",
        params![branch, release],
        params![branch, release],
    )?;
    let number = find_or_add(
        connection,
        "SELECT id FROM provenance \
         WHERE stream = ?1 AND revision = ?2 AND environment = ?3 AND job = ?4",
        "INSERT INTO provenance(stream, revision, environment, job) VALUES (?1, ?2, ?3, ?4)",
        params![stream, revision, environment, job],
        params![stream, revision, environment, job],
    )?;
    Ok((number, u32::try_from(stream).unwrap_or(u32::MAX)))
}

pub(super) fn find_or_add(
    connection: &Connection,
    find: &str,
    add: &str,
    key: &[&dyn rusqlite::ToSql],
    values: &[&dyn rusqlite::ToSql],
) -> rusqlite::Result<i64> {
    let mut find = connection.prepare_cached(find)?;
    if let Some(number) = find.query_row(key, |row| row.get(0)).optional()? {
        return Ok(number);
    }
    connection.prepare_cached(add)?.execute(values)?;
    Ok(connection.last_insert_rowid())
}
