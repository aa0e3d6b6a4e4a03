//! The end of a VM's session: what is wrong with it that is no test's failure.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a waiter looks for what it waits for and passes over the rest"
)]

use std::time::{Duration, Instant};

use unflake_core::blame::{Blame, Open};
use unflake_core::event::{Event, Note};
use unflake_core::trial::VmId;
use unflake_core::verdict::{Reason, Verdict};

use crate::lab::pending::last_lines;
use crate::lab::session::{Halt, Session};
use crate::protocol::messages::Command;
use crate::vm::event::{Fate, Happening};

/// How long a VM that was told to finish may take for it.
const FINISHING: Duration = Duration::from_secs(60);

/// How a framework's session came to its end.
pub(crate) struct SessionEnd {
    /// How many failures it counted beyond those of tests and of collection.
    extra: u32,
    fate: Fate,
}

impl SessionEnd {
    /// What is wrong with it that is no test's failure; `framework` is who ended.
    fn trouble(&self, framework: &str, has_failures: bool) -> Option<String> {
        // pytest ends with 0 for success, 5 for no tests, 1 for failures, 2 for an early stop.
        // Failures that a plugin of the project reran until they passed leave it at 0.
        let expected: &[&str] = if has_failures {
            &["exit status 0", "exit status 1", "exit status 2"]
        } else {
            &["exit status 0", "exit status 5"]
        };
        let how = &self.fate.how;
        if self.extra > 0 {
            let failures = if self.extra == 1 {
                "failure"
            } else {
                "failures"
            };
            Some(format!(
                "{framework} counted {} {failures} beside the tests",
                self.extra
            ))
        } else {
            let is_expected = expected.contains(&how.as_str());
            (!is_expected).then(|| format!("{framework} ended with {how} after the tests"))
        }
    }
}

impl Session {
    /// Judges what an interruption left open.
    pub(crate) fn judge_unfinished(&mut self) {
        for at in 0..self.suspects.len() {
            if !self.suspects[at].is_judged {
                let verdict = self.suspects[at].verdict;
                let verdict = verdict.unwrap_or(Verdict::Unexamined(Reason::Cut));
                let blame = Blame::unasked(Open::Unexamined);
                self.judge(at, verdict, Some(Box::new(blame)));
            }
        }
    }

    /// Lets a VM end its session by itself, and kills it when that takes too long.
    pub(crate) fn finish(&mut self, vm: VmId) -> Result<(), Halt> {
        self.fleet.tell(vm, &Command::Finish {});
        let Some(end) = self.await_end(vm, FINISHING)? else {
            return Ok(());
        };
        let mut suspects = self.suspects.iter();
        let has_failures = suspects.any(|suspect| suspect.trials[0].vm == vm)
            || self
                .suite
                .as_ref()
                .is_some_and(|suite| !suite.errors.is_empty());
        if let Some(what) = end.trouble(self.wish.project.framework(), has_failures) {
            let output = end.fate.output.text(Duration::from_secs(1));
            let reason = format!("{what}; it wrote:\n{}", last_lines(&output));
            self.tell(Event::SessionFailed { vm, reason });
        }
        Ok(())
    }

    /// Waits until a VM has ended; kills it when that takes longer than `patience`.
    ///
    /// How it ended, if it did so by itself.
    pub(crate) fn await_end(
        &mut self,
        vm: VmId,
        patience: Duration,
    ) -> Result<Option<SessionEnd>, Halt> {
        let deadline = Instant::now() + patience;
        let mut was_killed = false;
        let mut extra = 0;
        while self.fleet.vm(vm).is_some() {
            match self.next((!was_killed).then_some(deadline))? {
                Happening::Deadline => {
                    self.fleet.kill(vm);
                    self.note(Note::VmLingered { vm });
                    was_killed = true;
                }
                Happening::Finished(finished, _, more) if finished == vm => extra = more,
                Happening::Ended(ended, fate) if ended == vm => {
                    return Ok((!was_killed).then_some(SessionEnd { extra, fate }));
                }
                unrelated => drop(unrelated),
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::output::Output;

    fn ended(how: &str, extra: u32) -> SessionEnd {
        let (how, output) = (how.to_owned(), Output::default());
        let fate = Fate { how, output };
        SessionEnd { extra, fate }
    }

    #[test]
    fn who_ended_badly_is_called_by_its_name() {
        let said = ended("exit status 3", 0).trouble("the JVM of the tests", true);
        let expected = "the JVM of the tests ended with exit status 3 after the tests";
        assert_eq!(said.as_deref(), Some(expected));
        assert_eq!(ended("exit status 1", 0).trouble("pytest", true), None);
        let said = ended("exit status 0", 2).trouble("pytest", false);
        assert_eq!(
            said.as_deref(),
            Some("pytest counted 2 failures beside the tests")
        );
    }
}
