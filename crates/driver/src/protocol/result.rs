//! The result of a test's run, as a runner reports it and `docs/protocol.md` describes it.

use serde::Deserialize;

use crate::protocol::messages::Name;

/// The result of one command to run a test.
#[derive(Debug, Deserialize)]
pub struct Ran {
    /// The test.
    #[serde(flatten)]
    pub test: Name,
    /// Its attempts: more than one if a plugin of the project reran it. None means that nothing ran.
    pub attempts: Vec<Attempt>,
    /// The fate of fixtures that it shares with other tests.
    pub fixtures: WireFixtures,
    /// Whether the runner now waits for a command; else it goes on with the tests that it has.
    pub held: bool,
    /// Why the framework now wants to stop the session.
    pub stop: Option<String>,
}

/// The fate of shared fixtures in a run; `unflake_core::trial::Fixtures` says what each value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireFixtures {
    Plain,
    Rebuilt,
    EndedBadly,
}

/// One attempt at a test.
#[derive(Debug, Deserialize)]
pub struct Attempt {
    /// How it ended.
    pub outcome: WireOutcome,
    /// The test's own time.
    pub seconds: f64,
    /// The trouble, in a line.
    pub message: String,
    /// The framework's own text.
    pub text: String,
    /// The test's output.
    pub output: String,
    /// The kind of what was raised; empty if that is not known.
    #[serde(default)]
    pub kind: String,
    /// File, function and source line of the project's frames, the outermost first.
    #[serde(default)]
    pub frames: Vec<(String, String, String)>,
    /// Number and name of each part that failed, of a test that makes its parts while it runs.
    #[serde(default)]
    pub parts: Vec<(String, String)>,
}

/// The outcomes that a runner can report; a dead or hung VM reports none.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireOutcome {
    Passed,
    Failed,
    Errored,
    Skipped,
    Xfailed,
    Xpassed,
}

/// The way in which a test ended the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopKind {
    /// By an interruption that it raised itself.
    Interrupt,
    /// By the framework's own call for that.
    Exit,
}
