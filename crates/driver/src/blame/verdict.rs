//! How a suspect fails, by all runs: those of the ladder, and those that were made to find out whose failure it is.

use std::time::Instant;

use unflake_core::blame::inquiry::Inquiry;
use unflake_core::blame::question::{Ended, Heard, Side as Where};
use unflake_core::blame::{Innocence, Whose};
use unflake_core::kind::{self, Look, Runs, Wanted};
use unflake_core::sequential::Tally;
use unflake_core::trial::{Rung, Trial};
use unflake_core::verdict::{Flakiness, Verdict};

use super::side::Made;
use super::sides::Sides;
use crate::lab::session::{Halt, Session};

impl Session {
    /// How it fails, by all runs: those of the ladder, and those in the order of this run.
    pub(super) fn settle_verdict(
        &mut self,
        (at, verdict): (usize, Verdict),
        inquiry: &mut Inquiry,
        whose: &Whose,
        (sides, (began, deadline)): (&mut Sides, (Instant, Option<Instant>)),
    ) -> Result<Verdict, Halt> {
        let said = match verdict {
            Verdict::Flaky(kind) => kind,
            Verdict::Broken if *whose == Whose::NotYours(Innocence::Untouched) => {
                return Ok(Verdict::Flaky(Flakiness::Untouched));
            }
            Verdict::Broken | Verdict::Brittle | Verdict::Unclear(_) if inquiry.is_mixed() => {
                return Ok(Verdict::Flaky(Flakiness::Chance));
            }
            Verdict::Broken | Verdict::Brittle | Verdict::Unclear(_)
                if matches!(whose, Whose::NotYours(_)) =>
            {
                return self.seek_pass(at, verdict, sides, (began, deadline));
            }
            Verdict::Broken
            | Verdict::Brittle
            | Verdict::Unclear(_)
            | Verdict::Unexamined(_)
            | Verdict::Nio(_)
            | Verdict::NioAfterOthers
            | Verdict::Victim
            | Verdict::NonDeterministic => return Ok(verdict),
        };
        let mut alone = Tally::default();
        loop {
            let (in_order, ..) = inquiry.evidence();
            let runs = Runs { in_order, alone };
            let first = self.suspects[at].trials.first();
            let has_time = deadline.is_none_or(|deadline| Instant::now() < deadline);
            let more = kind::wanted(first, runs, said).filter(|_| has_time && self.has_order(at));
            let Some(more) = more else {
                return Ok(Verdict::Flaky(kind::settle(first, runs, said)));
            };
            let is_run = match more {
                Wanted::InOrder => {
                    let heard = self.run_side(at, Where::Here, sides)?;
                    let is_run = !matches!(
                        &heard,
                        Heard::Ran {
                            ended: Ended::NotRun { .. },
                            ..
                        }
                    );
                    inquiry.hear(heard);
                    is_run
                }
                Wanted::Alone => match self.run_alone(at, sides)? {
                    Some(has_failed) => {
                        alone.hits += u32::from(has_failed);
                        alone.misses += u32::from(!has_failed);
                        true
                    }
                    None => false,
                },
            };
            if !is_run {
                let first = self.suspects[at].trials.first();
                return Ok(Verdict::Flaky(kind::settle(first, runs, said)));
            }
        }
    }

    /// How a test fails that the ladder did not call flaky, and that the change did not break: it is looked at by itself
    /// until it passes, for no longer than the question has taken so far, and then with other hash seeds.
    fn seek_pass(
        &mut self,
        at: usize,
        verdict: Verdict,
        sides: &mut Sides,
        (began, deadline): (Instant, Option<Instant>),
    ) -> Result<Verdict, Halt> {
        let longest = Instant::now() + began.elapsed();
        let until = deadline.map_or(longest, |deadline| deadline.min(longest));
        let mut failed = Vec::new();
        loop {
            match kind::look(&failed, Instant::now() < until) {
                Look::Flaky(kind) => return Ok(Verdict::Flaky(kind)),
                Look::Steady => break,
                Look::Again => match self.run_alone(at, sides)? {
                    Some(has_failed) => failed.push(has_failed),
                    None => break,
                },
            }
        }
        if verdict == Verdict::Broken {
            self.seek_seed(at, deadline)
        } else {
            Ok(verdict)
        }
    }

    /// Whether a suspect fails by itself in a copy of the files; `None` if it cannot be run there.
    fn run_alone(&mut self, at: usize, sides: &mut Sides) -> Result<Option<bool>, Halt> {
        let seat = self.seat(Where::Here);
        let opened = self.open_side(seat, sides)?;
        let test = self.suspects[at].test.clone();
        let Some(side) = sides.get_mut(seat).filter(|_| opened.is_ok()) else {
            return Ok(None);
        };
        if !self.has_same_params(&test, side) {
            // Another test stands under its name there: what that one does says nothing.
            return Ok(None);
        }
        let alone = std::slice::from_ref(&test);
        let run = side.run(alone)?;
        let Ok(Made { trial, .. }) = run.and_then(|run| run.last_of(alone)) else {
            return Ok(None);
        };
        let passed = trial.outcome.passed();
        let rung = Rung::Alone;
        self.suspects[at].trials.push(Trial { rung, ..trial });
        Ok(passed.map(|passed| !passed))
    }
}
