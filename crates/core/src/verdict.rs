//! What many trials of one test say about it. The trials themselves are the evidence.

use crate::comparison::Comparison;
use crate::nio::Nio;
use crate::order::Dependence;
use crate::state::Cause;
use crate::test::TestId;
use crate::trial::Trial;

/// A verdict with all it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The test that failed.
    pub test: TestId,
    /// What it is.
    pub verdict: Verdict,
    /// Every trial of it, the failure in the suite first.
    pub trials: Vec<Trial>,
    /// How it stands to the latest changes, if it failed each time and there was a base to look at.
    pub comparison: Option<Comparison>,
    /// The files of the work tree that two runs of it in a row changed, where that was looked at.
    pub left_behind: Vec<String>,
    /// Which tests it depends on, if that was looked into.
    pub dependence: Option<Box<Dependence>>,
    /// The state behind it, if that was looked into.
    pub cause: Option<Box<Cause>>,
    /// Whether it takes tests of two classes in one VM, where the project gives each class its own.
    pub is_latent: bool,
}

/// What a failing test is.
///
/// Only `Flaky` says that the failure may be no fault of the code: all others keep the suite red.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It failed and passed on the same code.
    Flaky(Flakiness),
    /// It passes, and fails when it is run again in the same VM.
    Nio(Nio),
    /// Alone it can be run twice; after other tests it fails the second time.
    NioAfterOthers,
    /// It fails after other tests and passes alone.
    Victim,
    /// It passes and fails under the same conditions.
    NonDeterministic,
    /// It fails in every fresh VM, and passed only after its own failed run.
    Brittle,
    /// It failed each time it was run, and at the base too.
    PreExisting,
    /// It failed each time it was run.
    Broken(Blame),
    /// The trials contradict each other in a way that must not be called flaky.
    Unclear(Doubt),
    /// It failed, and nothing was tried.
    Unexamined(Reason),
}

/// Which kind of flaky a test is, by the rung that saw it pass (Eloussi 2015, Ch. 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flakiness {
    /// It passed when it was run again at once.
    NonBursty,
    /// It passed in the same VM, but only after the suite.
    Bursty,
    /// It kept failing in its VM and passed in a fresh one.
    StateDependent,
    /// It failed after a rerun had rebuilt shared fixtures, and passes where nothing was rerun.
    Disturbed,
    /// It passed in a fresh VM, and nothing says that an earlier test is to blame.
    Unplaced,
    /// It failed each time, but it used nothing that changed since the base, where it passed.
    Untouched,
}

/// What the latest changes have to do with a test that failed each time it was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Nobody looked.
    NotAsked,
    /// The failing run went through them.
    TouchesChange,
    /// It was seen to go through none of them, but not all could be seen.
    CannotTell,
    /// There is no revision to compare with.
    NoBase,
}

/// Why the trials do not settle it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It ends otherwise in forked VMs than in new interpreters.
    OnlyInForks,
    /// A rerun did not run the test (it was skipped, or not found), and none passed.
    NotRunAgain,
    /// The tear-down of fixtures that other tests share failed after it, and not in a replay.
    SharedTearDown,
    /// It passes only while it is watched what it uses.
    OnlyWatched,
    /// It failed in a report that is older than the code.
    OldReport,
    /// It failed in a report from another machine.
    OtherMachine,
}

/// Why nothing was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The share of failures reached the threshold.
    TooManyFailures,
    /// All reruns are switched off.
    RerunsOff,
    /// The run was interrupted or stopped before a verdict.
    Cut,
}

impl Verdict {
    /// Whether the failure is shown to be flaky.
    pub fn is_flaky(self) -> bool {
        matches!(self, Self::Flaky(_))
    }

    /// Whether it says flaky because a rerun passed.
    pub fn rests_on_a_pass(self) -> bool {
        self.is_flaky() && !self.fails_alone()
    }

    /// Whether it fails alone in a fresh VM, each time.
    pub fn fails_alone(self) -> bool {
        match self {
            Self::Brittle
            | Self::PreExisting
            | Self::Broken(_)
            | Self::Flaky(Flakiness::Untouched) => true,
            Self::Flaky(
                Flakiness::NonBursty
                | Flakiness::Bursty
                | Flakiness::StateDependent
                | Flakiness::Disturbed
                | Flakiness::Unplaced,
            )
            | Self::Nio(_)
            | Self::NioAfterOthers
            | Self::Victim
            | Self::NonDeterministic
            | Self::Unclear(_)
            | Self::Unexamined(_) => false,
        }
    }

    /// Whether what ran before it decides how it ends, as far as is known.
    pub fn depends_on_order(self) -> bool {
        match self {
            Self::Flaky(Flakiness::StateDependent)
            | Self::NioAfterOthers
            | Self::Victim
            | Self::Brittle => true,
            Self::Flaky(
                Flakiness::NonBursty
                | Flakiness::Bursty
                | Flakiness::Disturbed
                | Flakiness::Unplaced
                | Flakiness::Untouched,
            )
            | Self::Nio(_)
            | Self::NonDeterministic
            | Self::PreExisting
            | Self::Broken(_)
            | Self::Unclear(_)
            | Self::Unexamined(_) => false,
        }
    }

    /// The one word for it in reports.
    pub fn label(self) -> &'static str {
        match self {
            Self::Flaky(_) => "flaky",
            Self::Nio(_) => "nio",
            Self::NioAfterOthers => "nio-after-others",
            Self::Victim => "victim",
            Self::NonDeterministic => "non-deterministic",
            Self::Brittle => "brittle",
            Self::PreExisting => "pre-existing",
            Self::Broken(_) => "broken",
            Self::Unclear(_) => "unclear",
            Self::Unexamined(_) => "unexamined",
        }
    }

    /// The word that narrows it down, if there is one.
    pub fn kind(self) -> Option<&'static str> {
        match self {
            Self::Flaky(Flakiness::NonBursty) => Some("non-bursty"),
            Self::Flaky(Flakiness::Bursty) => Some("bursty"),
            Self::Flaky(Flakiness::StateDependent) => Some("state-dependent"),
            Self::Flaky(Flakiness::Disturbed) => Some("disturbed"),
            Self::Flaky(Flakiness::Unplaced) => Some("unplaced"),
            Self::Flaky(Flakiness::Untouched) => Some("untouched"),
            Self::Broken(Blame::TouchesChange) => Some("touches-change"),
            Self::Broken(Blame::CannotTell) => Some("cannot-tell"),
            Self::Broken(Blame::NoBase) => Some("no-base"),
            Self::Unclear(Doubt::OnlyInForks) => Some("only-in-forks"),
            Self::Unclear(Doubt::NotRunAgain) => Some("not-run-again"),
            Self::Unclear(Doubt::SharedTearDown) => Some("shared-tear-down"),
            Self::Unclear(Doubt::OnlyWatched) => Some("only-watched"),
            Self::Unclear(Doubt::OldReport) => Some("old-report"),
            Self::Unclear(Doubt::OtherMachine) => Some("other-machine"),
            Self::Unexamined(Reason::TooManyFailures) => Some("too-many-failures"),
            Self::Unexamined(Reason::RerunsOff) => Some("reruns-off"),
            Self::Unexamined(Reason::Cut) => Some("cut"),
            Self::Nio(nio) if nio.depends_on_collector => Some("collector"),
            Self::Nio(nio) if nio.needs_shared_fixtures => Some("shared-fixtures"),
            Self::Nio(_)
            | Self::NioAfterOthers
            | Self::Victim
            | Self::NonDeterministic
            | Self::Brittle
            | Self::PreExisting
            | Self::Broken(Blame::NotAsked) => None,
        }
    }

    /// What it means for the person who must act on it, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Flaky(Flakiness::NonBursty) => {
                "passed when run again at once, and passes alone: plain non-determinism \
                 (or a file or service that the failed run has changed)"
            }
            Self::Flaky(Flakiness::Bursty) => {
                "passed only after the suite: an outside condition came and went"
            }
            Self::Flaky(Flakiness::StateDependent) => {
                "passes in a fresh state only: what an earlier test left behind breaks it"
            }
            Self::Flaky(Flakiness::Disturbed) => {
                "passes in its own order, and failed here only because the rerun of an earlier test \
                 had set up shared fixtures anew: it needs what earlier tests leave in them"
            }
            Self::Flaky(Flakiness::Unplaced) => {
                "passed in a fresh VM; the kind is open: chance, the hash seed, what importing \
                 other files does, or an earlier test"
            }
            Self::Nio(nio) if nio.depends_on_collector => {
                "passes, and fails when it is run again in the same VM before the garbage is \
                 collected: it depends on objects that its first run left behind"
            }
            Self::Nio(nio) if nio.needs_shared_fixtures => {
                "passes, and fails when it is run again in the same VM: it changes a fixture that it \
                 shares with other tests, so a test that does the same before it will break it"
            }
            Self::Nio(_) => {
                "passes, and fails when it is run again in the same VM: it leaves behind state that \
                 it depends on itself, so a test that does the same before it will break it"
            }
            Self::NioAfterOthers => {
                "fails when it is run again after other tests; alone it can be run twice"
            }
            Self::Victim => {
                "passes alone and fails after other tests: what an earlier test left behind breaks it"
            }
            Self::NonDeterministic => {
                "passes and fails under the same conditions: chance, time or something outside"
            }
            Self::Brittle => {
                "fails alone in every fresh VM, and passes only after itself or after other tests: \
                 it needs state that it does not set up"
            }
            Self::Flaky(Flakiness::Untouched) => {
                "failed each time, but it uses nothing that changed since the base, and it passes \
                 there: something outside the code makes it fail"
            }
            Self::PreExisting => "fails without your change too, in the same way",
            Self::Broken(Blame::NotAsked) => "failed each time it was run",
            Self::Broken(Blame::TouchesChange) => {
                "failed each time it was run, and went through your change"
            }
            Self::Broken(Blame::CannotTell) => {
                "failed each time it was run; whether your change is the cause cannot be told"
            }
            Self::Broken(Blame::NoBase) => {
                "failed each time it was run; there is no base to compare your change with"
            }
            Self::Unclear(Doubt::OnlyInForks) => {
                "ends otherwise in forked VMs than in a new interpreter: not called flaky"
            }
            Self::Unclear(Doubt::OnlyWatched) => {
                "passes in a fresh VM only while unflake watches what it uses: not called flaky"
            }
            Self::Unclear(Doubt::OtherMachine) => {
                "failed on another machine and passes on this one: not called flaky, because the \
                 machines may differ"
            }
            Self::Unclear(Doubt::OldReport) => {
                "failed in the report and passes now, but files have changed since the report: \
                 not called flaky"
            }
            Self::Unclear(Doubt::NotRunAgain) => "a rerun did not run it: not called flaky",
            Self::Unclear(Doubt::SharedTearDown) => {
                "the tear-down of fixtures that it shares with earlier tests failed, \
                 which no rerun of it alone can show: not called flaky"
            }
            Self::Unexamined(Reason::TooManyFailures) => {
                "not examined: so many tests failed that the change is probably broken"
            }
            Self::Unexamined(Reason::RerunsOff) => "not examined: reruns are switched off",
            Self::Unexamined(Reason::Cut) => "not examined: the run ended before a verdict",
        }
    }
}
