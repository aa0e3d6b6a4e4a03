//! What is known of runs before this session. Whoever keeps a history answers; the driver only asks.

use std::fmt;
use std::sync::Arc;

use unflake_core::test::TestId;

/// Says when a test passed at a commit, without other changes, if that is known: milliseconds since 1970.
#[derive(Clone)]
pub struct Memory(Arc<Recall>);

type Recall = dyn Fn(&TestId, &str) -> Option<i64> + Send + Sync;

impl Memory {
    /// Keeps who answers.
    pub fn new(recall: impl Fn(&TestId, &str) -> Option<i64> + Send + Sync + 'static) -> Self {
        Self(Arc::new(recall))
    }

    pub(crate) fn passed_at(&self, test: &TestId, commit: &str) -> Option<i64> {
        (self.0)(test, commit)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Memory")
    }
}
