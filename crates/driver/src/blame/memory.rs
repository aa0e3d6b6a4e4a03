//! What is known of runs before this session. Whoever keeps a history answers; the driver only asks.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::blame::Known;
use unflake_core::change::ChangedFile;
use unflake_core::failure::Fingerprint;
use unflake_core::test::TestId;

use crate::git::clutter::Leftover;

/// What answers questions about runs before this session.
#[derive(Clone)]
pub struct Memory(Arc<dyn Recollection>);

/// Who keeps a history.
pub trait Recollection: Send + Sync {
    /// How often a test failed in a certain way before the change: in the suite's own runs of clean trees at certain
    /// commits, in the same folder and with the same installed. `None` if there is no such run.
    fn known(&self, asked: &AskedFailure<'_>) -> Option<Known>;

    /// When tests first ran at this very commit before this session, without other changes. They need not have been all.
    fn first_tested(&self, commit: &str) -> Option<SystemTime>;

    /// What differs from the files of the last run in which all tests passed with the same installed, where no git tells;
    /// `None` if there is none, or if not all files are known.
    fn last_pass(&self, installed: &[String]) -> Option<LastPass>;

    /// What runs before this session left behind in the work tree at `root`.
    fn left_behind(&self, root: &Utf8Path) -> Vec<Leftover>;
}

/// A failure that somebody asks for.
pub struct AskedFailure<'a> {
    /// What the test is called and was called before, each with the fingerprint that the failure has or had under that
    /// name. The runs of all names count.
    pub names: &'a [(TestId, Fingerprint)],
    /// Whether a commit is the base or an ancestor of it. A branch's name says nothing: it moves.
    pub commits: &'a dyn Fn(&str) -> bool,
    /// What is installed now: `Listing::installed`.
    pub installed: &'a [String],
}

/// What the last run that passed was, and what differs from its files.
#[derive(Clone, Debug)]
pub struct LastPass {
    /// The folder of its files.
    pub root: Utf8PathBuf,
    /// Which run it was, in words.
    pub what: String,
    /// Its tests in their order, and whether they passed: others were left out.
    pub tests: Vec<(TestId, bool)>,
    /// The files that differ.
    pub files: Vec<ChangedFile>,
    /// The files that there are now, but for those that runs have left since.
    pub known: BTreeSet<String>,
    /// What runs have left since.
    pub left: BTreeSet<String>,
    /// All files that there were then.
    pub known_then: BTreeSet<String>,
}

impl Memory {
    /// Keeps who answers.
    pub fn new(recollection: impl Recollection + 'static) -> Self {
        Self(Arc::new(recollection))
    }

    /// See [`Recollection::known`].
    pub fn known(&self, asked: &AskedFailure<'_>) -> Option<Known> {
        self.0.known(asked)
    }

    /// See [`Recollection::last_pass`].
    pub fn last_pass(&self, installed: &[String]) -> Option<LastPass> {
        self.0.last_pass(installed)
    }

    /// See [`Recollection::left_behind`].
    pub fn left_behind(&self, root: &Utf8Path) -> Vec<Leftover> {
        self.0.left_behind(root)
    }

    /// See [`Recollection::first_tested`].
    pub fn first_tested(&self, commit: &str) -> Option<SystemTime> {
        self.0.first_tested(commit)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Memory")
    }
}

/// Says whether a commit is known to have been run on a clean tree.
#[derive(Clone)]
pub struct Tested(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl Tested {
    /// Keeps who answers.
    pub fn new(is_tested: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_tested))
    }

    pub(crate) fn holds(&self, commit: &str) -> bool {
        (self.0)(commit)
    }
}

impl fmt::Debug for Tested {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tested")
    }
}
