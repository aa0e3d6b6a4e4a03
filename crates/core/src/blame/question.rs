//! What the technique asks for, and what it is told.

use super::{Known, Open, Whose};
use crate::failure::Fingerprint;
use crate::intersect::Intersection;

/// What is known before anything is run for the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ground {
    /// The work tree cannot be compared with a base, or nobody wants it.
    None(Open),
    /// It does not differ from the base, or this very commit was tested before.
    Unchanged,
    /// It differs.
    Changed {
        /// The changed files that shape the environment of every test.
        environment: Vec<String>,
        /// Whether a file is gone: its tests may have done something that others need.
        deletes: bool,
    },
}

/// Where a run was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// In a copy of the work tree, in the order of this run.
    Here,
    /// In a checkout of the base, in the base's own order.
    Base,
    /// In a checkout of the base, in the order of this run.
    BaseInThisOrder,
    /// As `Here`, while it is written down what the run uses. That may slow it, so it does not count.
    HereWatched,
    /// As `Base`, while it is written down what the run uses.
    BaseWatched,
}

/// How a run ended, held against the failure that is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It failed in the same way.
    Alike,
    /// It failed in another way.
    Otherwise {
        /// What was wrong.
        message: String,
        /// What tells it from other failures.
        print: Fingerprint,
    },
    /// It passed.
    Passed,
    /// It did not run.
    NotRun {
        /// Why not.
        why: String,
    },
}

/// What the technique is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// What the failure itself had used of the changes, by the eye of the system.
    AtFailure(Intersection),
    /// The base has listed its tests.
    Listed(Listed),
    /// The base cannot be run at all.
    BaseCannotRun {
        /// Why not.
        why: String,
    },
    /// The base was not made ready in the time.
    BaseTooSlow {
        /// What took too long.
        why: String,
    },
    /// Nobody wants anything to be run at the base.
    BaseUnwanted,
    /// The environment in which the base runs.
    BaseEnvironment(BaseEnvironment),
    /// The base is known by the digests of its files only.
    BaseIsDigests,
    /// A run.
    Ran {
        /// Where.
        side: Side,
        /// How it ended.
        ended: Ended,
        /// What it used of the changes, if it was watched; at the base, what of it may be none of the base's own. Where
        /// watching slows nothing, any run may be watched and count all the same.
        used: Option<Intersection>,
    },
    /// What the history knows, if it knows the failure.
    Recalled(Option<Known>),
    /// There is no time for more.
    TimeIsOver,
}

/// The environment in which the base runs: as far as nothing is said of it, that of the work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseEnvironment {
    /// The changed files of which it has what they said at the base.
    pub settled: Vec<String>,
    /// Why it has no more of them, if that was tried.
    pub why: Option<String>,
}

/// What the list of the base's tests says about one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Whether the test is among them.
    pub is_listed: bool,
    /// Whether this run's order, as far as the base has its tests, is another than the base's own.
    pub orders_differ: bool,
    /// Whether the base has tests that may have run before it and that are gone.
    pub loses_tests: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask the history.
    Recall,
    /// List the tests of the base.
    List,
    /// Run it once on this side.
    Run(Side),
    /// It is answered.
    Conclude(Whose),
}
