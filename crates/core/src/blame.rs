//! Whose failure is it? The answers, and what they rest on; `inquiry` finds them.
//!
//! How a test fails and whose failure it is are two questions (Eloussi 2015, Ch. 1 (3)). A pass somewhere answers the
//! first only. A failure is *not yours* by one of four kinds of evidence, *yours* by one of three, and else it is not
//! known whose it is. The failure that brought the test here was selected and counts for nothing: an innocent test
//! that fails once in a hundred runs would be accused by it.

mod agreement;
pub mod inquiry;
pub mod polluters;
pub mod question;
mod runs;
pub mod shares;
pub mod two_sample;

use crate::intersect::Intersection;
use crate::sequential::Tally;
use crate::test::TestId;
use crate::verdict::Verdict;

/// The answer, with what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Blame {
    /// Whose failure it is.
    pub whose: Whose,
    /// The revision that the work tree was compared with, if there is one.
    pub base: Option<Base>,
    /// How many files differ from it.
    pub changed_files: usize,
    /// What of them its runs went through.
    pub intersection: Intersection,
    /// Its later runs here, in the order of this run: how often it failed in the same way.
    pub here: Tally,
    /// Its runs at the base, in the base's own order: how often it failed in the same way.
    pub at_base: Tally,
    /// How it failed at the base, if that was in another way.
    pub otherwise: Option<String>,
    /// The tests whose leftovers make it fail, if they were found.
    pub polluters: Vec<TestId>,
}

impl Blame {
    /// An answer for which nothing was looked at.
    pub fn unasked(open: Open) -> Self {
        Self {
            whose: Whose::NotKnown(open),
            base: None,
            changed_files: 0,
            intersection: Intersection::default(),
            here: Tally::default(),
            at_base: Tally::default(),
            otherwise: None,
            polluters: Vec::new(),
        }
    }
}

/// The revision that the work tree is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// Its full name; `None` where no repository knows it, but only the digests of its files.
    pub commit: Option<String>,
    /// What it is, in words: "where the branch left origin/main".
    pub what: String,
}

/// Whose failure it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The change did it.
    Yours(Guilt),
    /// The change did not do it.
    NotYours(Innocence),
    /// Neither was shown.
    NotKnown(Open),
}

/// What shows that a change did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guilt {
    /// The base has no such test.
    NewTest,
    /// It goes through the change, and fails more often here than at the base.
    FailsMore,
    /// The base passes in its own order, and fails in the order of this run: a test came, went or moved.
    Exposed,
}

/// What shows that a change did not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Innocence {
    /// It fails at the base in the same way, and not much more rarely.
    AtBase,
    /// The history knows the same failure from the base or before it.
    InHistory(Known),
    /// It failed in the same way in a run that used nothing that changed.
    Untouched,
    /// When it failed in the suite, nothing that changed had been used; and it has passed since.
    UntouchedAtFailure,
    /// This very commit was tested before.
    NothingChanged,
}

/// What the history knows of a failure at the base and before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// How often the test ran on clean trees.
    pub runs: u32,
    /// How often it failed in the same way.
    pub failures: u32,
    /// When it last did, in milliseconds since 1970.
    pub last: i64,
}

/// Why it is not known whose failure it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Open {
    /// The project is in no repository.
    NoRepository,
    /// There is no revision to compare with.
    NoBase {
        /// Why not.
        why: String,
        /// The command that would fetch it, if there is one.
        fetch: Option<String>,
    },
    /// Nobody wants to know.
    NotAsked,
    /// The time for it was over.
    Budget,
    /// The base cannot be run.
    BaseCannotRun {
        /// Why not.
        why: String,
    },
    /// The base was not made ready in the time.
    BaseTooSlow {
        /// What took too long.
        why: String,
    },
    /// It fails at the base too, but the base ran in the environment of the change.
    EnvironmentMoved {
        /// The changed files that shape the environment.
        files: Vec<String>,
        /// Why the base has no environment of its own, if one was tried.
        why: Option<String>,
    },
    /// It fails at the base in the same way, and here in another way too, in which it never failed there.
    AnotherFailure {
        /// The other way.
        message: String,
    },
    /// It did not fail often enough again, or the rates are too near.
    NotSettled,
    /// The history knows it, but so rarely that the runs here do not tell whether it is as rare now.
    TooRare {
        /// What the history knows.
        known: Known,
        /// How many runs here without a failure would tell; `None` if that is more than are ever made.
        needs: Option<u32>,
    },
    /// It fails more often here than at the base, but was not seen to use anything that changed.
    Unseen,
    /// It was not run again at all.
    Unexamined,
    /// It failed in a report that is older than the code.
    OldReport,
    /// It failed in a report from another machine.
    OtherMachine,
}

impl Whose {
    /// The words for it in reports.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Yours(_) => "yours",
            Self::NotYours(_) => "not-yours",
            Self::NotKnown(_) => "not-known",
        }
    }

    /// The word for what it rests on.
    pub fn because(&self) -> &'static str {
        match self {
            Self::Yours(Guilt::NewTest) => "new-test",
            Self::Yours(Guilt::FailsMore) => "fails-more",
            Self::Yours(Guilt::Exposed) => "exposed",
            Self::NotYours(Innocence::AtBase) => "at-base",
            Self::NotYours(Innocence::InHistory(_)) => "in-history",
            Self::NotYours(Innocence::Untouched | Innocence::UntouchedAtFailure) => "untouched",
            Self::NotYours(Innocence::NothingChanged) => "nothing-changed",
            Self::NotKnown(open) => open.label(),
        }
    }
}

impl Open {
    fn label(&self) -> &'static str {
        match self {
            Self::NoRepository => "no-repository",
            Self::NoBase { .. } => "no-base",
            Self::NotAsked => "not-asked",
            Self::Budget | Self::BaseTooSlow { .. } => "budget",
            Self::BaseCannotRun { .. } => "base-cannot-run",
            Self::EnvironmentMoved { .. } => "environment-moved",
            Self::AnotherFailure { .. } => "another-failure",
            Self::NotSettled => "not-settled",
            Self::TooRare { .. } => "too-rare",
            Self::Unseen => "unseen",
            Self::Unexamined => "unexamined",
            Self::OldReport => "old-report",
            Self::OtherMachine => "other-machine",
        }
    }
}

/// Whether an answer to this verdict is worth any run: what was not examined is not run.
pub fn is_asked(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Unexamined(_) => false,
        Verdict::Flaky(_)
        | Verdict::Nio(_)
        | Verdict::NioAfterOthers
        | Verdict::Victim
        | Verdict::NonDeterministic
        | Verdict::Brittle
        | Verdict::Broken
        | Verdict::Unclear(_) => true,
    }
}
