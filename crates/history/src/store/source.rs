//! Runs on their way into a store, and what came of them.

use crate::batch::Batch;

/// Runs that want to be added.
pub trait Source {
    /// The next runs; `None` when there are no more.
    fn next_batch(&mut self) -> Option<Batch>;

    /// What tells this source from all others. `Err` if it turned out that it must not be added.
    fn digest(&mut self) -> Result<[u8; 32], Refused>;

    /// What it is called.
    fn name(&self) -> String;

    /// The digest of what was installed when its tests ran, if that is known.
    fn installed(&self) -> Option<[u8; 32]> {
        None
    }

    /// Of what and how its tests were run, if unflake itself ran them.
    fn conditions(&self) -> Option<Conditions> {
        None
    }
}

/// Of what and how unflake ran tests. Failures of such runs have fingerprints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The name of the repository, for people: revisions tell projects apart by themselves.
    pub project: String,
    /// In how many VMs the suite ran.
    pub jobs: u32,
    /// The seed of Python's hashes, if the user fixed it.
    pub hash_seed: Option<String>,
}

/// The source could not be read to its end, so nothing of it is added. It knows why itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// What came of adding a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// All its runs are there now.
    Added {
        /// How many.
        runs: u64,
    },
    /// They had been there before.
    Known,
    /// The source could not be read to its end: nothing was added.
    Refused,
}
