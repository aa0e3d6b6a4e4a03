//! What is kept of folders, beside runs: what runs left behind in them, and the files that the last run that passed had.

use serde::{Deserialize, Serialize};

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

/// A run that passed, and what it ran on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedRun {
    /// When it was, in milliseconds since 1970.
    pub time: i64,
    /// The digest of what was installed.
    pub installed: [u8; 32],
    /// Its tests in their order, by name and copy, and whether they passed: others were left out.
    pub tests: Vec<(String, u32, bool)>,
    /// Its files.
    pub files: Vec<PassedFile>,
}

/// A file of such a run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct PassedFile {
    /// Its path.
    pub path: String,
    /// The digest of its content.
    pub digest: [u8; 32],
    /// How many bytes it had.
    pub size: u64,
    /// When it had last changed, in nanoseconds since 1970.
    pub changed: i64,
}
