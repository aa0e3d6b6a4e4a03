//! One run of a test that a VM was told to do, and the trial that comes of it, however it ends.

use std::time::{Duration, Instant};

use unflake_core::outcome::Outcome;
use unflake_core::test::TestId;
use unflake_core::trial::{Account, Birth, Fixtures, Frame, Part, Rung, Trial, VmId};

use crate::protocol::messages::Name;
use crate::protocol::result::{Attempt, Ran, WireFixtures, WireOutcome};
use crate::vm::event::Fate;

/// How much of a dead VM's output is shown: its last lines, where an interpreter says why it died.
const LAST_LINES: usize = 40;
/// What a JVM says when it has no memory left, wherever in a line.
const NO_MEMORY: &str = "OutOfMemoryError";
/// How many letters of a VM's reason for its end are shown.
const LONGEST_REASON: usize = 200;
/// How long the output of a dead VM may take to arrive.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What is said where a name stands for another test than the one that failed.
pub(crate) const OTHER_TEST: &str =
    "a new interpreter has another test under this name: its parameters are other ones";

/// No test takes longer than a year, whatever its clock says.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A run that a VM was told to do.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) test: TestId,
    pub(crate) rung: Rung,
    pub(crate) vm: VmId,
    pub(crate) birth: Birth,
    /// How many trials the VM had done before.
    pub(crate) before: usize,
    /// Whether shared fixtures are as a plain run would have left them.
    pub(crate) fixtures: Fixtures,
    /// Whether the VM writes down what it uses.
    pub(crate) is_watched: bool,
    /// What the VM calls the test.
    pub(crate) name: Name,
    /// Whether the VM has another test under this name.
    pub(crate) is_other: bool,
    /// From when on its cost is counted.
    pub(crate) since: Instant,
}

impl Asked {
    /// The trials of what a runner reported: more than one if a plugin of the project reran it.
    ///
    /// A report without attempts, or about another test, is an error and never a pass.
    pub(crate) fn ran(&self, ran: Ran) -> Vec<Trial> {
        if self.is_other {
            return vec![self.not_run(OTHER_TEST, "")];
        }
        if ran.attempts.is_empty() || ran.test != self.name {
            return vec![self.errored("the runner ran nothing for this test", "")];
        }
        let fixtures = match ran.fixtures {
            WireFixtures::Plain => self.fixtures,
            WireFixtures::Rebuilt => Fixtures::Rebuilt,
            WireFixtures::EndedBadly => Fixtures::EndedBadly,
        };
        let rungs = std::iter::once(self.rung).chain(std::iter::repeat(Rung::OwnRerun));
        let attempts = rungs.zip(ran.attempts);
        attempts
            .map(|(rung, attempt)| Trial {
                rung,
                fixtures,
                ..self.attempted(attempt)
            })
            .collect()
    }

    /// The VM would not end its test in time; `stack` is where it was.
    pub(crate) fn timed_out(&self, after: Duration, stack: Option<&str>) -> Trial {
        let message = format!("still running after {after:?}");
        let text = stack.unwrap_or("no stack could be had");
        self.ended(Outcome::TimedOut { after }, account(&message, text))
    }

    /// The VM ended under its test.
    pub(crate) fn died(&self, fate: &Fate) -> Trial {
        let output = fate.output.text(LAST_WORDS);
        let text = last_lines(&output);
        let reason = reason(&text).map(|said| format!(": {said}"));
        let message = format!("its VM ended: {}{}", fate.how, reason.unwrap_or_default());
        let how = fate.how.clone();
        self.ended(Outcome::VmDied { how }, account(&message, &text))
    }

    /// The copy of a VM that ran it ended under it.
    pub(crate) fn lost(&self, how: &str) -> Trial {
        let message = format!("its VM ended: {how}");
        let how = how.to_owned();
        self.ended(Outcome::VmDied { how }, account(&message, ""))
    }

    /// The test ended the session of its VM by itself.
    pub(crate) fn stopped(&self, how: &str, message: &str) -> Trial {
        let message = format!("it ended its VM: {how} {message}");
        let how = how.to_owned();
        self.ended(Outcome::VmDied { how }, account(message.trim_end(), ""))
    }

    /// The VM does not know the test.
    pub(crate) fn unknown(&self) -> Trial {
        let message = "a new interpreter does not list this test: its id changes from run to run";
        self.errored(message, "")
    }

    /// A new interpreter does not list the test; what it said instead.
    pub(crate) fn not_collected(&self, said: &str) -> Trial {
        if self.is_other {
            return self.not_run(OTHER_TEST, "");
        }
        self.not_run("a new interpreter could not collect this test", said)
    }

    /// The test could not be run in a fresh VM.
    pub(crate) fn not_run(&self, message: &str, text: &str) -> Trial {
        self.ended(Outcome::NotRun, account(message, text))
    }

    /// The test could not be run, for a reason that is not its own.
    pub(crate) fn errored(&self, message: &str, text: &str) -> Trial {
        self.ended(Outcome::Errored, account(message, text))
    }

    fn attempted(&self, attempt: Attempt) -> Trial {
        let outcome = match attempt.outcome {
            WireOutcome::Passed => Outcome::Passed,
            WireOutcome::Failed => Outcome::Failed,
            WireOutcome::Errored => Outcome::Errored,
            WireOutcome::Skipped => Outcome::Skipped,
            WireOutcome::Xfailed => Outcome::ExpectedFailure,
            WireOutcome::Xpassed => Outcome::UnexpectedPass,
        };
        let account = Account {
            message: attempt.message,
            text: attempt.text,
            output: attempt.output,
            kind: attempt.kind,
            frames: attempt.frames.into_iter().map(frame).collect(),
            parts: attempt.parts.into_iter().map(part).collect(),
        };
        // A framework under a patched clock can report nonsense; that is no reason to lose a trial.
        let duration = Duration::try_from_secs_f64(attempt.seconds).unwrap_or_default();
        let duration = duration.min(LONGEST);
        Trial {
            duration,
            ..self.ended(outcome, account)
        }
    }

    fn ended(&self, outcome: Outcome, account: Account) -> Trial {
        let cost = self.since.elapsed();
        Trial {
            test: self.test.clone(),
            rung: self.rung,
            vm: self.vm,
            birth: self.birth,
            before: self.before,
            fixtures: self.fixtures,
            is_watched: self.is_watched,
            outcome,
            duration: cost,
            cost,
            account,
        }
    }
}

/// The end of what a VM wrote.
pub(crate) fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

/// Why a VM ended that had no memory left: it says so itself, and its exit status does not.
fn reason(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| line.contains(NO_MEMORY))?;
    let start = line.find(NO_MEMORY)?;
    Some(line[start..].chars().take(LONGEST_REASON).collect())
}

fn account(message: &str, text: &str) -> Account {
    Account {
        message: message.to_owned(),
        text: text.to_owned(),
        ..Account::default()
    }
}

fn frame((file, function, text): (String, String, String)) -> Frame {
    Frame {
        file,
        function,
        text,
    }
}

fn part((number, name): (String, String)) -> Part {
    Part { number, name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        Asked {
            test: TestId::new("a.py::t"),
            rung: Rung::Immediate,
            vm: VmId(0),
            is_watched: false,
            name: Name::from(&TestId::new("a.py::t")),
            is_other: false,
            birth: Birth::Exec,
            before: 0,
            fixtures: Fixtures::AsInPlainRun,
            since: Instant::now(),
        }
    }

    fn ran(test: &str, outcomes: &[WireOutcome]) -> Ran {
        let attempt = |outcome: &WireOutcome| Attempt {
            outcome: *outcome,
            seconds: f64::NAN,
            message: String::new(),
            text: String::new(),
            output: String::new(),
            kind: "shop.Empty".to_owned(),
            frames: vec![("shop.py".to_owned(), "first".to_owned(), "raise".to_owned())],
            parts: vec![("1".to_owned(), "[1] tea".to_owned())],
        };
        Ran {
            test: Name::from(&TestId::new(test)),
            attempts: outcomes.iter().map(attempt).collect(),
            fixtures: WireFixtures::Rebuilt,
            held: true,
            stop: None,
        }
    }

    #[test]
    fn a_jvm_without_memory_is_told_by_its_own_words() {
        for (output, expected) in [
            (
                "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space\n\tat shop.Cart.fill\n",
                Some("OutOfMemoryError: Java heap space"),
            ),
            (
                "Terminating due to java.lang.OutOfMemoryError: Metaspace\n",
                Some("OutOfMemoryError: Metaspace"),
            ),
            ("all is well\n", None),
        ] {
            assert_eq!(reason(output).as_deref(), expected);
        }
    }

    #[test]
    fn a_rerun_that_ran_nothing_is_an_error_and_never_a_pass() {
        let trials = asked().ran(ran("a.py::t", &[]));
        assert_eq!(trials.len(), 1);
        assert_eq!(trials[0].outcome, Outcome::Errored);
    }

    #[test]
    fn a_pass_of_another_test_is_an_error_and_never_a_pass() {
        let trials = asked().ran(ran("a.py::t[2]", &[WireOutcome::Passed]));
        assert_eq!(trials[0].outcome, Outcome::Errored);
        assert_eq!(trials[0].test, TestId::new("a.py::t"));
    }

    #[test]
    fn a_run_of_a_namesake_with_other_parameters_is_none_of_this_test() {
        let asked = Asked {
            is_other: true,
            ..asked()
        };
        for trial in [
            asked.ran(ran("a.py::t", &[WireOutcome::Passed])).remove(0),
            asked.not_collected("nothing"),
        ] {
            assert_eq!(trial.outcome, Outcome::NotRun);
            assert_eq!(trial.account.message, OTHER_TEST);
        }
    }

    #[test]
    fn what_was_raised_is_kept_as_facts() {
        let trial = asked()
            .ran(ran("a.py::t", &[WireOutcome::Failed]))
            .remove(0);
        assert_eq!(trial.account.kind, "shop.Empty");
        assert_eq!(trial.account.frames[0].function, "first");
        assert_eq!(trial.account.parts[0].name, "[1] tea");
    }

    #[test]
    fn attempts_after_the_first_are_those_of_the_projects_own_plugin() {
        let trials = asked().ran(ran("a.py::t", &[WireOutcome::Failed, WireOutcome::Passed]));
        let rungs: Vec<Rung> = trials.iter().map(|trial| trial.rung).collect();
        assert_eq!(rungs, [Rung::Immediate, Rung::OwnRerun]);
        assert!(
            trials
                .iter()
                .all(|trial| trial.fixtures == Fixtures::Rebuilt)
        );
        assert!(trials[1].outcome.is_pass());
    }
}
