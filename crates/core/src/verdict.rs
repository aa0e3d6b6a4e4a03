//! What many trials of one test say about it. The trials themselves are the evidence.

use crate::blame::Blame;
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
    /// Whose failure it is, if that was a question.
    pub blame: Option<Box<Blame>>,
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
/// It says how a test fails, and not whose failure that is: `Finding::blame` does.
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
    /// It failed each time it was run.
    Broken,
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
    /// It kept failing in its VM and passed in a fresh one.
    StateDependent,
    /// It failed after a rerun had rebuilt shared fixtures, and passes where nothing was rerun.
    Disturbed,
    /// It failed and passed; why is not known.
    Unplaced,
    /// It passes and fails in one and the same order.
    Chance,
    /// It fails with one hash seed and passes with another.
    HashSeed,
    /// It failed each time, but it used nothing that changed since the base, where it passed.
    Untouched,
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
    /// It failed in every fresh VM, and passed sometimes after itself.
    Mixed,
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
            Self::Brittle | Self::Broken | Self::Flaky(Flakiness::Untouched) => true,
            Self::Flaky(
                Flakiness::NonBursty
                | Flakiness::StateDependent
                | Flakiness::Disturbed
                | Flakiness::Unplaced
                | Flakiness::Chance
                | Flakiness::HashSeed,
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
                | Flakiness::Disturbed
                | Flakiness::Unplaced
                | Flakiness::Chance
                | Flakiness::HashSeed
                | Flakiness::Untouched,
            )
            | Self::Nio(_)
            | Self::NonDeterministic
            | Self::Broken
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
            Self::Broken => "broken",
            Self::Unclear(_) => "unclear",
            Self::Unexamined(_) => "unexamined",
        }
    }

    /// The word that narrows it down, if there is one.
    pub fn kind(self) -> Option<&'static str> {
        match self {
            Self::Flaky(Flakiness::NonBursty) => Some("non-bursty"),
            Self::Flaky(Flakiness::StateDependent) => Some("state-dependent"),
            Self::Flaky(Flakiness::Disturbed) => Some("disturbed"),
            Self::Flaky(Flakiness::Unplaced) => Some("unplaced"),
            Self::Flaky(Flakiness::Chance) => Some("chance"),
            Self::Flaky(Flakiness::HashSeed) => Some("hash-seed"),
            Self::Flaky(Flakiness::Untouched) => Some("untouched"),
            Self::Unclear(Doubt::OnlyInForks) => Some("only-in-forks"),
            Self::Unclear(Doubt::NotRunAgain) => Some("not-run-again"),
            Self::Unclear(Doubt::SharedTearDown) => Some("shared-tear-down"),
            Self::Unclear(Doubt::Mixed) => Some("mixed"),
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
            | Self::Broken => None,
        }
    }

    /// What it means for the person who must act on it, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Flaky(Flakiness::NonBursty) => {
                "passed when run again at once, and passes alone; why it failed is not known yet"
            }
            Self::Flaky(Flakiness::StateDependent) => {
                "passes in a fresh state only: what an earlier test left behind breaks it"
            }
            Self::Flaky(Flakiness::Disturbed) => {
                "passes in its own order, and failed here only because the rerun of an earlier test \
                 had set up shared fixtures anew: it needs what earlier tests leave in them"
            }
            Self::Flaky(Flakiness::Unplaced) => {
                "failed and passed on the same code; why is not known yet"
            }
            Self::Flaky(Flakiness::Chance) => {
                "passes and fails in one and the same order: chance, time or something outside"
            }
            Self::Flaky(Flakiness::HashSeed) => {
                "fails with one hash seed and passes with another: it depends on the order of a set, \
                 or on hashes in another way"
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
            Self::Broken => "failed each time it was run",
            Self::Unclear(Doubt::OnlyInForks) => {
                "ends otherwise in forked VMs than in a new interpreter: not called flaky"
            }
            Self::Unclear(Doubt::Mixed) => {
                "failed alone in every fresh VM, and passed only sometimes after its own run: \
                 not called flaky"
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
