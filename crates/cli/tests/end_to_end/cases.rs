//! Folders of fixture projects, and a check that is made on many of them at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

/// The fixture projects in `fixtures/<family>`, or the one that `UNFLAKE_FIXTURE` names.
pub(crate) fn find_cases(family: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut cases: Vec<PathBuf> = fs::read_dir(root.join(family))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    let only = std::env::var("UNFLAKE_FIXTURE").ok();
    cases.retain(|case| only.as_ref().is_none_or(|only| case.ends_with(only)));
    cases
}

/// Checks all of them, as many at once as there are processors, and fails with every trouble.
pub(crate) fn check_all<T: Send>(cases: Vec<T>, check: impl Fn(&T) -> Result<(), String> + Sync) {
    assert!(!cases.is_empty(), "there is no such fixture");
    let queue = Mutex::new(cases.into_iter());
    let troubles = Mutex::new(Vec::new());
    let next = || queue.lock().unwrap().next();
    let work = || {
        while let Some(case) = next() {
            if let Err(trouble) = check(&case) {
                troubles.lock().unwrap().push(trouble);
            }
        }
    };
    thread::scope(|scope| {
        let lanes = thread::available_parallelism().unwrap().get();
        for _ in 0..lanes {
            scope.spawn(work);
        }
    });
    let troubles = troubles.into_inner().unwrap();
    assert!(troubles.is_empty(), "{}", troubles.join("\n\n"));
}
