//! Adding several sources in one transaction: the disk is waited for once.

use rusqlite::{Connection, Error, TransactionBehavior, ffi};

use super::{Writer, has_import};
use crate::sqlite::blocks::Builder;
use crate::store::source::{Appended, Source};

/// Adds sources whose digests are known before their batches are read. Each is there as a whole or not
/// at all, and when this returns all of them are on the disk.
pub(in crate::sqlite) fn append_all(
    connection: &mut Connection,
    sources: &mut [&mut dyn Source],
) -> rusqlite::Result<Vec<Appended>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut builder = Builder::begin(&transaction)?;
    let mut results = Vec::new();
    for source in sources {
        let Ok(digest) = source.digest() else {
            results.push(Appended::Refused);
            continue;
        };
        if has_import(&transaction, &digest)? {
            results.push(Appended::Known);
            continue;
        }
        let mut writer = Writer::begin(&transaction, *source, builder)?;
        while let Some(batch) = source.next_batch() {
            writer.write(&batch)?;
        }
        let runs = writer.runs;
        let ended = writer.end(digest)?;
        // Nobody else writes, and the digest was not there a moment ago.
        builder = ended.ok_or_else(contradiction)?;
        results.push(Appended::Added { runs });
    }
    transaction.commit()?;
    Ok(results)
}

fn contradiction() -> Error {
    let text = "its list of sources contradicts itself".to_owned();
    Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(text))
}
