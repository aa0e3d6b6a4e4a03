//! Whose failure it is: runs a suspect here and at the base, as `unflake_core::blame` asks for.

pub(crate) mod base;
pub(crate) mod comparison;
mod environment;
pub mod memory;
mod polluters;
mod recall;
pub(crate) mod renames;
mod runs;
mod setup;
mod shared_runs;
pub(crate) mod side;
mod sides;
mod sight;
mod stray;
mod verdict;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use unflake_core::blame::inquiry::Inquiry;
use unflake_core::blame::question::{Ground, Heard, Step};
use unflake_core::blame::{Blame, Open, is_asked};
use unflake_core::change::ChangeKind;
use unflake_core::event::Event;
use unflake_core::failure::Fingerprint;
use unflake_core::verdict::{Doubt, Flakiness, Reason, Verdict};

use crate::blame::comparison::Changes;
use crate::blame::memory::Memory;
use crate::git::difference::{CheckBase, Difference, Kept};
use crate::lab::session::{Halt, Session};
use crate::usage::ignored::Ignored;
use sides::Sides;

/// How long the question may take at least, where the user does not say it.
const LEAST_BUDGET: Duration = Duration::from_secs(60);
/// How many different failures are asked at the base where there are too many to be examined.
const MOST_RED: usize = 3;

/// How far the question about a suspect has come.
enum Asked {
    /// How it fails, and whose failure it is.
    Settled(Verdict, Box<Blame>),
    /// Its share of the time is over, but not all of the time.
    Unsettled(Box<Inquiry>),
}

impl Session {
    /// Finds out for every suspect whose failure it is, and judges it.
    pub(crate) fn blame_all(&mut self) -> Result<(), Halt> {
        let open: Vec<usize> = (0..self.suspects.len())
            .filter(|at| !self.suspects[*at].is_judged)
            .collect();
        let budget = self.blame_budget();
        let mut sides = Sides::until(budget.map(|budget| Instant::now() + budget));
        let total = open.len();
        let asked = open.iter().copied();
        sides
            .shared
            .begin(asked.filter(|at| self.suspects[*at].verdict.is_some_and(is_asked)));
        let mut red = BTreeSet::new();
        let mut waiting: VecDeque<(usize, Option<Inquiry>)> =
            open.into_iter().map(|at| (at, None)).collect();
        while let Some((at, begun)) = waiting.pop_front() {
            let test = self.suspects[at].test.clone();
            let done = total - waiting.len() - 1;
            self.tell(Event::Blaming { test, done, total });
            let verdict = self.suspects[at].verdict;
            let verdict = verdict.expect("the ladder has ended for every suspect");
            sides.shared.leave(at);
            if begun.is_none() && !is_asked(verdict) && !self.is_red_sample(at, verdict, &mut red) {
                let blame = Blame::unasked(Open::Unexamined);
                self.judge(at, verdict, Some(Box::new(blame)));
                continue;
            }
            let question = match begun {
                Some(begun) => begun,
                None => self.open_inquiry(at, verdict),
            };
            let share = sides.share_among(waiting.len() + 1);
            match self.blame(at, question, &mut sides, share)? {
                Asked::Settled(verdict, blame) => self.judge(at, verdict, Some(blame)),
                Asked::Unsettled(question) => waiting.push_back((at, Some(*question))),
            }
        }
        sides.close()
    }

    /// Whether a failure among too many is one of the few that are asked at the base all the same: the main branch may
    /// be red too.
    fn is_red_sample(&self, at: usize, verdict: Verdict, red: &mut BTreeSet<Fingerprint>) -> bool {
        let first = self.suspects[at].trials.first();
        let print = first.map(|first| Fingerprint::of(&first.outcome, &first.account));
        verdict == Verdict::Unexamined(Reason::TooManyFailures)
            && red.len() < MOST_RED
            && print.is_some_and(|print| red.insert(print))
    }

    /// How long the question may take for all suspects; `None` without a limit.
    fn blame_budget(&self) -> Option<Duration> {
        let against = self.wish.against.as_ref();
        match against.map(|against| (against.check_base, against.budget)) {
            Some((CheckBase::Always, None)) => None,
            Some((_, Some(budget))) => Some(budget),
            Some((CheckBase::WithinBudget | CheckBase::Never, None)) | None => {
                Some(LEAST_BUDGET.max(self.suite_elapsed / 2))
            }
        }
    }

    /// Asks until it is settled, or until the suspect's share of the time is over. Whoever does not need all of its share
    /// leaves the rest to those that are asked again.
    fn blame(
        &mut self,
        at: usize,
        mut inquiry: Inquiry,
        sides: &mut Sides,
        mut share: Option<Instant>,
    ) -> Result<Asked, Halt> {
        let began = Instant::now();
        let whose = loop {
            if share.is_some_and(|share| Instant::now() >= share) {
                if !sides.is_over() {
                    return Ok(Asked::Unsettled(Box::new(inquiry)));
                }
                inquiry.hear(Heard::TimeIsOver);
            }
            let heard = match inquiry.next() {
                Step::Conclude(whose) => break whose,
                Step::Recall => Heard::Recalled(self.recall_failure(at)),
                Step::List => {
                    let heard = self.list_base(at, sides)?;
                    inquiry.hear(Heard::BaseEnvironment(self.base_environment()));
                    // What serves all suspects is not taken from the share of the first.
                    let prepared = std::mem::take(&mut sides.prepared);
                    share = share.map(|share| share + prepared).min(sides.deadline);
                    heard
                }
                Step::Run(side) => self.run_side(at, side, sides)?,
            };
            inquiry.hear(heard);
        };
        let verdict = self.suspects[at].verdict;
        let verdict = verdict.expect("the ladder has ended for every suspect");
        let times = (began, share);
        let verdict = self.settle_verdict((at, verdict), &mut inquiry, &whose, (sides, times))?;
        let is_leak = verdict == Verdict::Flaky(Flakiness::StateDependent);
        let polluters = if is_leak {
            self.find_polluters(at, sides, share)?
        } else {
            Vec::new()
        };
        let (here, at_base, used, otherwise) = inquiry.evidence();
        let difference = self.known_difference();
        let blame = Blame {
            whose,
            base: difference.as_ref().map(|one| one.base.clone()),
            changed_files: difference.map_or(0, |one| one.changes.len()),
            intersection: used.clone(),
            here,
            at_base,
            otherwise: otherwise.map(ToOwned::to_owned),
            polluters,
        };
        Ok(Asked::Settled(verdict, Box::new(blame)))
    }

    /// The question about a suspect, with what is known already.
    fn open_inquiry(&mut self, at: usize, verdict: Verdict) -> Inquiry {
        let ground = self.ground(at, verdict);
        let has_passed = self.suspects[at]
            .trials
            .iter()
            .any(|trial| trial.outcome.is_pass());
        let mut inquiry = Inquiry::new(ground, has_passed);
        if let Some(used) = self.used_at_failure(at) {
            inquiry.hear(Heard::AtFailure(used));
        }
        if self.is_base_unwanted() {
            inquiry.hear(Heard::BaseUnwanted);
        }
        let difference = self.known_difference();
        if difference.is_some_and(|known| known.git.is_none()) {
            inquiry.hear(Heard::BaseIsDigests);
        }
        if let Some(Err(unready)) = &self.base {
            inquiry.hear(unready.heard());
        }
        inquiry
    }

    /// What is known before anything is run.
    fn ground(&mut self, at: usize, verdict: Verdict) -> Ground {
        if let Verdict::Unclear(Doubt::OldReport) = verdict {
            return Ground::None(Open::OldReport);
        }
        if let Verdict::Unclear(Doubt::OtherMachine) = verdict {
            return Ground::None(Open::OtherMachine);
        }
        let Some(difference) = self.difference() else {
            return Ground::None(match &self.changes {
                Changes::Unknowable { why, fetch } => Open::NoBase {
                    why: why.clone(),
                    fetch: fetch.clone(),
                },
                Changes::Unwanted if self.wish.against.is_none() => Open::NotAsked,
                Changes::Unwanted | Changes::Unread | Changes::Known(_) => Open::NoRepository,
            });
        };
        if difference.git.is_none() && !self.passed_so_far(at, &difference) {
            return Ground::None(Open::NoRepository);
        }
        if difference.changes.is_empty() {
            let Some(git) = &difference.git else {
                return Ground::Unchanged;
            };
            match self.first_tested(git) {
                None => {
                    let why = "nothing differs from it, and this commit was not tested before";
                    return Ground::None(Open::NoBase {
                        why: why.to_owned(),
                        fetch: None,
                    });
                }
                Some(tested) if self.is_as_then(git, tested) => return Ground::Unchanged,
                Some(_) => {}
            }
        }
        if !self.has_order(at) {
            return Ground::None(Open::NotAsked);
        }
        let rules = self.rules();
        let changed = difference.changes.iter().map(|change| &change.file.path);
        let environment = changed.filter(|path| rules.shapes_environment(path));
        let mut kinds = difference.changes.iter().map(|change| change.file.kind);
        Ground::Changed {
            environment: environment.cloned().collect(),
            deletes: kinds.any(|kind| kind == ChangeKind::Deleted),
        }
    }

    /// Whether nobody wants anything to be run at the base.
    fn is_base_unwanted(&self) -> bool {
        let against = self.wish.against.as_ref();
        against.is_some_and(|against| against.check_base == CheckBase::Never)
    }

    /// Whether a suspect and those that ran before it, in this order, are the first tests of the run that passed. What
    /// other tests did before it then, or did not, may be the change's doing.
    fn passed_so_far(&self, at: usize, difference: &Difference) -> bool {
        let before = self.before_here(at);
        let then = difference.tests.get(..=before.len()).unwrap_or_default();
        let Some(((test, true), then)) = then.split_last() else {
            return false;
        };
        let is_same = then.iter().map(|(test, _)| test).eq(&before);
        self.has_order(at) && is_same && *test == self.suspects[at].test
    }

    /// When this very commit was first tested, without other changes.
    fn first_tested(&self, git: &Kept) -> Option<SystemTime> {
        let head = git.repository.ask(&["rev-parse", "HEAD"]).ok().flatten();
        self.memory()?.first_tested(&head?)
    }

    /// Whether what git ignores is what it was at a time as well.
    fn is_as_then(&self, git: &Kept, then: SystemTime) -> bool {
        let against = self.wish.against.as_ref();
        let clutter = against.map(|against| against.clutter(&git.repository));
        let ignored = Ignored::read(&git.repository, &clutter.unwrap_or_default());
        ignored.is_some_and(|ignored| ignored.is_older(git.repository.root(), then))
    }

    fn memory(&self) -> Option<&Memory> {
        self.wish.against.as_ref()?.memory.as_ref()
    }

    fn rules(&self) -> unflake_core::rules::Rules {
        let against = self.wish.against.as_ref();
        against
            .map(|against| against.rules.clone())
            .unwrap_or_default()
    }

    fn known_difference(&self) -> Option<Arc<Difference>> {
        match &self.changes {
            Changes::Known(difference) => Some(Arc::clone(difference)),
            Changes::Unwanted | Changes::Unread | Changes::Unknowable { .. } => None,
        }
    }
}
