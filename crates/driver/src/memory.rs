//! What is known of runs before this session. Whoever keeps a history answers; the driver only asks.

use std::fmt;
use std::sync::Arc;

use unflake_core::test::TestId;

/// Says when a test passed at a commit, without other changes and with the same installed around it, if that is
/// known: milliseconds since 1970.
#[derive(Clone)]
pub struct Memory(Arc<Recall>);

/// A pass that somebody asks for.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The test.
    pub test: &'a TestId,
    /// The commit.
    pub commit: &'a str,
    /// What is installed now: `Listing::installed`.
    pub installed: &'a [String],
}

type Recall = dyn Fn(&Asked<'_>) -> Option<i64> + Send + Sync;

impl Memory {
    /// Keeps who answers.
    pub fn new(recall: impl Fn(&Asked<'_>) -> Option<i64> + Send + Sync + 'static) -> Self {
        Self(Arc::new(recall))
    }

    pub(crate) fn recall(&self, asked: &Asked<'_>) -> Option<i64> {
        (self.0)(asked)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Memory")
    }
}
