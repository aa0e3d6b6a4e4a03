//! Rows of runs and tests as they are read, wherever they are asked for.

use rusqlite::Row;

use crate::run::{Provenance, TestName};
use crate::store::KeptRun;

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
