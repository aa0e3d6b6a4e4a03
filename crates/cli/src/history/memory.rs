//! What the history knows of a test at the base: INTERSECT asks here before it runs the test there.

use std::collections::HashMap;
use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::test::TestId;
use unflake_driver::memory::Memory;
use unflake_history::sqlite::{Missing, Sqlite};
use unflake_history::store::StoreError;

use super::whence;

/// By commit: which tests passed at it, and when.
type Known = HashMap<String, HashMap<(String, u32), i64>>;

/// The memory of what ran in `folder`, from the history at `path`, which is opened at the first question.
pub(crate) fn of(path: &Utf8Path, folder: &Utf8Path) -> Memory {
    let (path, folder) = (path.to_owned(), folder.to_owned());
    let known: Mutex<Known> = Mutex::default();
    Memory::new(move |test: &TestId, commit: &str| {
        let mut known = known.lock().expect("nobody panics with it");
        let passes = known.entry(commit.to_owned()).or_insert_with(|| {
            // Without a history the test is run at the base, or the report says that nobody looked.
            read(&path, &folder, commit).unwrap_or_default()
        });
        passes.get(&(test.name().to_owned(), test.copy())).copied()
    })
}

fn read(
    path: &Utf8PathBuf,
    folder: &Utf8Path,
    commit: &str,
) -> Result<HashMap<(String, u32), i64>, StoreError> {
    let store = Sqlite::open(path.as_std_path(), Missing::Refuse)?;
    let passes = store.passes_at(&whence::source(folder), commit)?;
    let passes = passes.into_iter();
    Ok(passes
        .map(|(test, time)| ((test.name, test.copy), time))
        .collect())
}
