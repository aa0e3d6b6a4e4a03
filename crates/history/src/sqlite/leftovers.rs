//! What runs leave behind in a folder, beside what they say: by this the next run tells it from what a person wrote.

use rusqlite::{Connection, params};

use super::rows;
use crate::store::folder::Left;

/// So many of a folder are kept.
const KEPT: u32 = 1000;

/// Keeps what a run left behind in a folder of a machine.
pub(super) fn add(
    connection: &mut Connection,
    place: &str,
    leftovers: &[Left],
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for left in leftovers {
        let add = "INSERT INTO leftover(place, path, first, last) VALUES (?1, ?2, ?3, ?4)";
        let values = params![place, left.path, left.first, left.last];
        transaction.execute(add, values)?;
    }
    let forget = "DELETE FROM leftover WHERE place = ?1 AND id NOT IN \
                  (SELECT id FROM leftover WHERE place = ?1 ORDER BY id DESC LIMIT ?2)";
    transaction.execute(forget, params![place, KEPT])?;
    transaction.commit()
}

/// What runs left behind in a folder of a machine.
pub(super) fn read(connection: &Connection, place: &str) -> rusqlite::Result<Vec<Left>> {
    let all = "SELECT path, first, last FROM leftover WHERE place = ?1 ORDER BY id";
    rows::read(connection, all, [place], |row| {
        Ok(Left {
            path: row.get(0)?,
            first: row.get(1)?,
            last: row.get(2)?,
        })
    })
}
