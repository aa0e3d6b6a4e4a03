//! What the history knows of a test at the base: INTERSECT asks here where it does not run the test there.

use std::collections::HashMap;
use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};
use unflake_driver::memory::{Asked, Memory};
use unflake_history::sqlite::{Missing, Sqlite};
use unflake_history::store::StoreError;

use super::whence;

/// By commit and what was installed: which tests passed with them, and when. The modules of a project may have
/// different packages.
type Known = HashMap<(String, [u8; 32]), HashMap<(String, u32), i64>>;

/// The memory of what ran in `folder`, from the history at `path`, which is opened at the first question.
pub(crate) fn of(path: &Utf8Path, folder: &Utf8Path) -> Memory {
    let (path, folder) = (path.to_owned(), folder.to_owned());
    let known: Mutex<Known> = Mutex::default();
    Memory::new(move |asked: &Asked<'_>| {
        let mut known = known.lock().expect("nobody panics with it");
        let key = (asked.commit.to_owned(), whence::installed(asked.installed));
        let passes = known.entry(key).or_insert_with_key(|(commit, installed)| {
            // Without a history the report says that nobody looked.
            read(&path, &folder, commit, installed).unwrap_or_default()
        });
        let test = (asked.test.name().to_owned(), asked.test.copy());
        passes.get(&test).copied()
    })
}

fn read(
    path: &Utf8PathBuf,
    folder: &Utf8Path,
    commit: &str,
    installed: &[u8; 32],
) -> Result<HashMap<(String, u32), i64>, StoreError> {
    let store = Sqlite::open(path.as_std_path(), Missing::Refuse)?;
    let passes = store.passes_at(&whence::source(folder), commit, installed)?;
    let passes = passes.into_iter();
    Ok(passes
        .map(|(test, time)| ((test.name, test.copy), time))
        .collect())
}
