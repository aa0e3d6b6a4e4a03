//! Adding several sources in one transaction: the disk is waited for once.

use rusqlite::{OptionalExtension, TransactionBehavior};

use super::Writer;
use crate::sqlite::blocks::Builder;
use crate::sqlite::{Sqlite, translate};
use crate::store::{Appended, Source, StoreError};

impl Sqlite {
    /// Adds sources whose digests are known before their batches are read. Each is there as a whole or not
    /// at all, and when this returns all of them are on the disk.
    pub fn append_all(
        &mut self,
        sources: &mut [&mut dyn Source],
    ) -> Result<Vec<Appended>, StoreError> {
        let path = self.path.clone();
        let trouble = |error| translate(&path, error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(trouble)?;
        let mut builder = Builder::begin(&transaction).map_err(trouble)?;
        let mut results = Vec::new();
        for source in sources {
            let Ok(digest) = source.digest() else {
                results.push(Appended::Refused);
                continue;
            };
            let known = "SELECT 1 FROM import WHERE digest = ?1";
            let known = transaction.query_row(known, [digest], |_| Ok(()));
            if known.optional().map_err(trouble)?.is_some() {
                results.push(Appended::Known);
                continue;
            }
            let mut writer = Writer::begin(&transaction, *source, builder).map_err(trouble)?;
            while let Some(batch) = source.next_batch() {
                writer.write(&batch).map_err(trouble)?;
            }
            let runs = writer.runs;
            let ended = writer.end(digest).map_err(trouble)?;
            // Nobody else writes, and the digest was not there a moment ago.
            builder = ended.ok_or_else(|| StoreError::Damaged {
                path: path.clone(),
                source: "its list of sources contradicts itself".into(),
            })?;
            results.push(Appended::Added { runs });
        }
        transaction.commit().map_err(trouble)?;
        Ok(results)
    }
}
