//! What runs leave behind in a folder, beside what they say: by this the next run tells it from what a person wrote.

use rusqlite::params;

use super::Sqlite;
use crate::store::StoreError;

/// So many of a folder are kept.
const KEPT: u32 = 1000;

/// Files that a run left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// One file, by its path in the folder; `None` for all.
    pub path: Option<String>,
    /// They last changed at this time or later, in nanoseconds since 1970.
    pub first: i64,
    /// They last changed at this time or before.
    pub last: i64,
}

impl Sqlite {
    /// Keeps what a run left behind in a folder of a machine.
    pub fn add_leftovers(&mut self, place: &str, leftovers: &[Left]) -> Result<(), StoreError> {
        let path = self.path.clone();
        let trouble = |error| super::translate(&path, error);
        let transaction = self.connection.transaction().map_err(trouble)?;
        for left in leftovers {
            let add = "INSERT INTO leftover(place, path, first, last) VALUES (?1, ?2, ?3, ?4)";
            let values = params![place, left.path, left.first, left.last];
            transaction.execute(add, values).map_err(trouble)?;
        }
        let forget = "DELETE FROM leftover WHERE place = ?1 AND id NOT IN \
                      (SELECT id FROM leftover WHERE place = ?1 ORDER BY id DESC LIMIT ?2)";
        transaction
            .execute(forget, params![place, KEPT])
            .map_err(trouble)?;
        transaction.commit().map_err(trouble)
    }

    /// What runs left behind in a folder of a machine.
    pub fn leftovers(&self, place: &str) -> Result<Vec<Left>, StoreError> {
        let all = "SELECT path, first, last FROM leftover WHERE place = ?1 ORDER BY id";
        self.read(all, [place], |row| {
            Ok(Left {
                path: row.get(0)?,
                first: row.get(1)?,
                last: row.get(2)?,
            })
        })
    }
}
