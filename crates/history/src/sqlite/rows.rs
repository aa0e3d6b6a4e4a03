//! Rows of runs and tests as they are read, wherever they are asked for.

use rusqlite::{Connection, Row};

use crate::run::{Provenance, TestName};
use crate::store::kept::KeptRun;

/// The columns of [`to_kept`], from [`JOINED`] tables.
pub(super) const KEPT: &str = "run.id, run.time, outcome.name, run.attempt, run.duration, \
    provenance.revision, stream.branch, stream.release, provenance.environment, provenance.job, \
    signature.text, signature.example, detail.bug, detail.verdict, fingerprint.text";

/// What stands after `run` to have all of it.
pub(super) const JOINED: &str = "JOIN outcome ON outcome.id = run.outcome \
    JOIN provenance ON provenance.id = run.provenance JOIN stream ON stream.id = provenance.stream \
    LEFT JOIN detail ON detail.run = run.id LEFT JOIN signature ON signature.id = detail.signature \
    LEFT JOIN failure ON failure.run = run.id LEFT JOIN fingerprint ON fingerprint.id = failure.fingerprint";

/// The run in a row that begins with the columns of [`KEPT`].
pub(super) fn to_kept(row: &Row<'_>) -> rusqlite::Result<KeptRun> {
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
        fingerprint: row.get(14)?,
    })
}

/// The test whose name, copy and origin stand in three columns from one on.
pub(super) fn to_test(row: &Row<'_>, first: usize) -> rusqlite::Result<TestName> {
    Ok(TestName {
        name: row.get(first)?,
        copy: row.get(first + 1)?,
        is_own: row.get(first + 2)?,
    })
}

/// Visits the rows that answer a query.
pub(super) fn each(
    connection: &Connection,
    query: &str,
    parameters: impl rusqlite::Params,
    mut each: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(query)?;
    let mut rows = statement.query(parameters)?;
    while let Some(row) = rows.next()? {
        each(row)?;
    }
    Ok(())
}

/// All rows that answer a query.
pub(super) fn read<T>(
    connection: &Connection,
    query: &str,
    parameters: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let mut statement = connection.prepare(query)?;
    statement.query_map(parameters, read)?.collect()
}
