//! What is asked about a failure, and what runs of clean trees say.

use crate::run::TestName;

/// What is asked about a failure.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// What the runs of the project's folder are called.
    pub source: &'a str,
    /// The digest of what is installed.
    pub installed: &'a [u8; 32],
    /// What the test is called and was called before, each with the text of the fingerprint that is asked for.
    pub names: &'a [(TestName, String)],
    /// Only what began before this time counts, in milliseconds since 1970.
    pub before: i64,
}

/// How a test fared in the runs that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// How many there were.
    pub runs: u32,
    /// How many of them failed in the way that was asked for.
    pub failures: u32,
    /// When the last of these failures was, or the last run if none failed so.
    pub last: i64,
}
