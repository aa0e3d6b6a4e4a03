//! Which engine keeps a history: the only place that knows. All others have a [`Store`].

use std::path::Path;

use crate::sqlite::Sqlite;
use crate::store::{Store, StoreError};

/// Whether a history that is not there is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It is made, with its folder.
    Make,
    /// It is an error.
    Refuse,
}

/// Opens the history at `path`.
///
/// A folder `.unflake` that has to be made for it gets a `.gitignore` of its own, so that nobody commits a history by
/// accident.
pub fn open(path: &Path, missing: Missing) -> Result<Box<dyn Store>, StoreError> {
    Ok(Box::new(Sqlite::open(path, missing)?))
}
