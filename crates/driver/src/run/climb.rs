//! The rungs after the suite: at its end in the same VM, then in fresh VMs.
//!
//! Order matters for what a rerun may find. All same-VM reruns come first; then forks, while the
//! suite's VMs are idle but alive; then the suite's VMs end, so that a new interpreter finds ports,
//! files and databases as free as a developer would.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a waiter looks for what it waits for and passes over the rest"
)]

use std::time::{Duration, Instant};

use unflake_core::event::{Event, Note};
use unflake_core::ladder::{Place, Stage, Step};
use unflake_core::test::TestId;
use unflake_core::trial::{Birth, Fixtures, Rung, Trial, VmId};
use unflake_core::verdict::Verdict;

use crate::lab::pending::Asked;
use crate::lab::session::{Halt, Mould, Session};
use crate::protocol::messages::{Command, Target};
use crate::vm::event::Happening;

/// A test in a fork gets at least this long before the fork itself is blamed for the delay.
const FORK_PATIENCE: Duration = Duration::from_secs(30);
/// The time that a fresh interpreter may take to end after its test.
pub(crate) const LEAVING: Duration = Duration::from_secs(20);

/// The places that one sweep over the suspects may use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sweep {
    SuiteVms,
    Forks,
    Interpreters,
}

impl Session {
    /// Climbs the ladder for every suspect, until each has its verdict.
    pub(crate) fn climb(&mut self) -> Result<(), Halt> {
        for sweep in [Sweep::SuiteVms, Sweep::Forks, Sweep::Interpreters] {
            if sweep == Sweep::Interpreters {
                // The mould holds what was opened at import: a port or a lock, for example.
                if let Mould::Vm(mould) = self.mould {
                    self.fleet.kill(mould);
                    let why = "it has ended".to_owned();
                    self.mould = Mould::None { why, said: true };
                }
                for vm in std::mem::take(&mut self.suite_vms) {
                    self.finish(vm)?;
                }
            }
            for at in 0..self.suspects.len() {
                self.climb_one(at, sweep)?;
            }
        }
        Ok(())
    }

    /// Makes the trials of one suspect that belong to this sweep.
    fn climb_one(&mut self, at: usize, sweep: Sweep) -> Result<(), Halt> {
        let mut fresh = None;
        while self.suspects[at].verdict.is_none() {
            let (rung, place) = match self.step(&self.suspects[at], self.stage(at)) {
                Step::Rerun(rung, place) => (rung, place),
                Step::Conclude(verdict) => {
                    self.settle(at, verdict);
                    break;
                }
                Step::Wait => unreachable!("after the suite there is nothing to wait for"),
            };
            if self.sweep_of(place, at) > sweep {
                break;
            }
            if place != Place::LastVm {
                self.leave(fresh.take())?;
            }
            let since = Instant::now();
            let (suite_vm, last_vm) = self.places(at);
            let trial = match place {
                Place::SuiteVm => self.try_in(at, rung, suite_vm, since)?,
                Place::LastVm => self.try_in(at, rung, last_vm, since)?,
                Place::CheapestVm => self.in_fork(at, rung, &mut fresh)?,
                Place::NewInterpreter => self.in_interpreter(at, rung, &mut fresh)?,
                Place::OtherSeed => self.with_other_seed(at, &mut fresh)?,
            };
            let worker = self.suspects[at].worker.clone();
            self.record(trial, worker);
        }
        self.leave(fresh)
    }

    /// The VM in which a suspect failed in the suite, and that of its last trial.
    fn places(&self, at: usize) -> (VmId, VmId) {
        let trials = &self.suspects[at].trials;
        match (trials.first(), trials.last()) {
            (Some(first), Some(last)) => (first.vm, last.vm),
            _ => unreachable!("a suspect has the trial that made it one"),
        }
    }

    fn stage(&self, at: usize) -> Stage {
        let (suite_vm, _) = self.places(at);
        Stage::SuiteEnded {
            too_many_failures: self.too_many_failures,
            suite_vm_alive: self.suite_vms.contains(&suite_vm) && self.fleet.vm(suite_vm).is_some(),
        }
    }

    fn sweep_of(&self, place: Place, at: usize) -> Sweep {
        let last_birth = self.suspects[at].trials.last().map(|trial| trial.birth);
        match place {
            Place::SuiteVm => Sweep::SuiteVms,
            Place::CheapestVm if self.can_fork() => Sweep::Forks,
            Place::LastVm if last_birth == Some(Birth::Fork) => Sweep::Forks,
            Place::LastVm | Place::CheapestVm | Place::NewInterpreter | Place::OtherSeed => {
                Sweep::Interpreters
            }
        }
    }

    fn can_fork(&self) -> bool {
        matches!(self.mould, Mould::Vm(_)) && self.wish.fresh_by != Some(Birth::Exec)
    }

    /// A trial in a fork of the mould. A fork that dies or hangs says nothing about the test,
    /// because a copied process can do that by itself: then a new interpreter decides.
    fn in_fork(&mut self, at: usize, rung: Rung, fresh: &mut Option<VmId>) -> Result<Trial, Halt> {
        let since = Instant::now();
        let Some(vm) = self.make_fork(since)? else {
            return self.in_interpreter(at, rung, fresh);
        };
        let trial = self.try_in(at, rung, vm, since)?;
        if !trial.outcome.ends_vm() {
            *fresh = Some(vm);
            return Ok(trial);
        }
        self.fleet.kill(vm);
        let why = trial.account.message;
        let test = trial.test;
        self.note(Note::ForkGivenUp { test, why });
        self.in_interpreter(at, rung, fresh)
    }

    /// Looks for another hash seed with which a test passes that fails everywhere, and not because of the change.
    pub(crate) fn seek_seed(
        &mut self,
        at: usize,
        deadline: Option<Instant>,
    ) -> Result<Verdict, Halt> {
        if self.wish.plan.rungs.other_seeds > 0 {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let trials = self.suspects[at].trials.iter();
            let fresh = trials.filter(|trial| matches!(trial.rung, Rung::Fresh | Rung::OtherSeed));
            let each = fresh.map(|trial| trial.cost).max().unwrap_or_default();
            let runs = left.map_or(u128::MAX, |left| left.as_millis() / each.as_millis().max(1));
            self.suspects[at].seeds = Some(u32::try_from(runs).unwrap_or(u32::MAX));
            self.suspects[at].verdict = None;
            self.climb_one(at, Sweep::Interpreters)?;
        }
        let verdict = self.suspects[at].verdict;
        Ok(verdict.expect("the last sweep leads to a verdict"))
    }

    /// A trial in a new interpreter whose hashes have another seed.
    fn with_other_seed(&mut self, at: usize, fresh: &mut Option<VmId>) -> Result<Trial, Halt> {
        let trials = self.suspects[at].trials.iter();
        let tried = trials.filter(|trial| trial.rung == Rung::OtherSeed);
        // A test that passes with one seed runs again with that one.
        let failed = tried.take_while(|trial| !trial.outcome.is_pass()).count();
        let own = self.wish.project.clone();
        self.wish.project = own.clone().with_other_seed(failed);
        let trial = self.in_interpreter(at, Rung::OtherSeed, fresh);
        self.wish.project = own;
        trial
    }

    /// A copy of the mould that is ready for a test; `None` if there can be none.
    fn make_fork(&mut self, since: Instant) -> Result<Option<VmId>, Halt> {
        let Mould::Vm(mould) = self.mould else {
            return Ok(None);
        };
        self.learn_chance()?;
        while !self.fleet.has_greeted(mould) && self.fleet.vm(mould).is_some() {
            if let Happening::Deadline = self.next(Some(since + FORK_PATIENCE))? {
                self.fleet.kill(mould);
            }
        }
        let vm = self.fleet.fork(mould, self.redraw())?;
        let why = loop {
            match self.next(Some(since + FORK_PATIENCE))? {
                Happening::Cloned(cloned) if cloned == vm => return Ok(Some(vm)),
                Happening::Unforked(_, why) => break why,
                Happening::Deadline => break "the VM to copy does not answer".to_owned(),
                Happening::Ended(ended, fate) if ended == mould || ended == vm => break fate.how,
                unrelated => drop(unrelated),
            }
        };
        self.fleet.kill(vm);
        self.fleet.kill(mould);
        self.mould = Mould::None { why, said: false };
        Ok(None)
    }

    /// A trial in a new interpreter that collects this one test, or all if it must.
    fn in_interpreter(
        &mut self,
        at: usize,
        rung: Rung,
        fresh: &mut Option<VmId>,
    ) -> Result<Trial, Halt> {
        self.say_why_no_fork();
        let since = Instant::now();
        let test = self.suspects[at].test.clone();
        let suite = self.listed();
        let setup = self.wish.project.setup(suite);
        // A replay needs the tests before it as well.
        let alone = (rung != Rung::Replay).then(|| self.wish.project.start_alone(&setup, &test));
        let whole = self.wish.project.start(true, &suite.replay);
        let mut trouble = None;
        for start in [alone.flatten(), Some(whole)].into_iter().flatten() {
            let vm = self.spawn(start)?;
            match self.await_test(at, vm)? {
                None => {
                    *fresh = Some(vm);
                    return self.try_in(at, rung, vm, since);
                }
                Some(said) => {
                    self.leave(Some(vm))?;
                    trouble = Some((vm, said));
                }
            }
        }
        let (vm, said) = trouble.expect("the whole suite is always tried");
        let asked = self.ask(test, rung, vm, since);
        Ok(asked.not_collected(&said))
    }

    pub(crate) fn say_why_no_fork(&mut self) {
        if let Mould::None { why, said } = &mut self.mould
            && !std::mem::replace(said, true)
        {
            let why = why.clone();
            self.note(Note::ForkUnavailable { why });
        }
    }

    /// Runs a suspect again in a VM that is ready for it, in the way of its rung.
    pub(crate) fn try_in(
        &mut self,
        at: usize,
        rung: Rung,
        vm: VmId,
        mut since: Instant,
    ) -> Result<Trial, Halt> {
        let test = self.suspects[at].test.clone();
        let before = match rung {
            // Itself first, with shared fixtures left alive, as they are between tests of a suite.
            Rung::AfterItself => vec![test.clone()],
            Rung::Replay => self.before_in_file(&test),
            Rung::Suite
            | Rung::OwnRerun
            | Rung::Immediate
            | Rung::End
            | Rung::Fresh
            | Rung::Look
            | Rung::Confirm
            | Rung::OtherSeed
            | Rung::InOrder
            | Rung::Alone
            | Rung::Base
            | Rung::Report
            | Rung::Once(_)
            | Rung::Again(_) => Vec::new(),
        };
        let limit = self.limit(at, vm);
        for (place, one) in before.iter().enumerate() {
            let next = before.get(place + 1).unwrap_or(&test);
            let asked = self.ask(one.clone(), rung, vm, since);
            let trial = self.rerun(&asked, Some(next), place > 0, limit)?;
            let is_own = *one == test;
            if !is_own {
                let one = one.clone();
                self.tell(Event::Prepared { test: one, vm });
            }
            if trial.outcome.ends_vm() {
                return Ok(Trial { test, ..trial });
            }
            if is_own {
                // The suspect's own run is evidence like any other.
                let worker = self.suspects[at].worker.clone();
                self.record(trial, worker);
                since = Instant::now();
            }
        }
        let asked = self.ask(test, rung, vm, since);
        self.rerun(&asked, None, !before.is_empty(), limit)
    }

    /// Runs a test again and waits for its end, whatever that is.
    pub(crate) fn rerun(
        &mut self,
        asked: &Asked,
        next: Option<&TestId>,
        keep: bool,
        limit: Option<Duration>,
    ) -> Result<Trial, Halt> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        let target = Target {
            test: asked.name.clone(),
            next: next.map(|next| self.listings.name_in(asked.vm, next)),
        };
        let vm = asked.vm;
        if self.fleet.vm(vm).is_none() {
            return Ok(asked.not_run("its VM is gone", ""));
        }
        self.fleet.tell(vm, &Command::Rerun { target, keep });
        loop {
            match self.next(deadline)? {
                Happening::Deadline => {
                    let stack = self.fleet.stack(vm, None);
                    self.fleet.kill(vm);
                    let after = limit.expect("only a limit sets a deadline");
                    return Ok(asked.timed_out(after, stack.as_deref()));
                }
                Happening::Stopped(stopped, _, message) if stopped == vm => {
                    self.fleet.kill(vm);
                    return Ok(asked.stopped("KeyboardInterrupt or pytest.exit", &message));
                }
                happening => {
                    if let Some(trial) = answer(asked, happening) {
                        return Ok(trial);
                    }
                }
            }
        }
    }

    /// The time limit of a rerun: the user's limit, and for a fork always some limit.
    fn limit(&self, at: usize, vm: VmId) -> Option<Duration> {
        let suspect = &self.suspects[at];
        let own = self.wish.plan.timeout_for(&suspect.test);
        let is_fork = self.fleet.vm(vm).is_some_and(|vm| vm.birth == Birth::Fork);
        let patience = FORK_PATIENCE.max(suspect.trials[0].duration.saturating_mul(10));
        own.or(is_fork.then_some(patience))
    }

    /// Ends a fresh VM that is not needed any more.
    pub(crate) fn leave(&mut self, fresh: Option<VmId>) -> Result<(), Halt> {
        let Some(vm) = fresh else { return Ok(()) };
        self.fleet.tell(vm, &Command::Finish {});
        self.await_end(vm, LEAVING)?;
        Ok(())
    }

    /// Makes a note of what a VM is about to be told to run.
    pub(crate) fn ask(&mut self, test: TestId, rung: Rung, vm: VmId, since: Instant) -> Asked {
        self.tell_start(&test, vm, rung);
        self.asked(test, rung, vm, since)
    }

    /// The same without a word to the readers of events.
    pub(crate) fn asked(&mut self, test: TestId, rung: Rung, vm: VmId, since: Instant) -> Asked {
        let birth = self.fleet.vm(vm).map_or(Birth::Exec, |vm| vm.birth);
        let is_other = self.is_other_test(&test, vm, rung);
        let is_rebuilt = self.rebuilt.contains(&(vm, self.file_of(&test).to_owned()));
        Asked {
            name: self.listings.name_in(vm, &test),
            test,
            rung,
            vm,
            birth,
            is_watched: self.is_watching,
            is_other,
            before: self.fleet.count_trial(vm),
            fixtures: if is_rebuilt {
                Fixtures::Rebuilt
            } else {
                Fixtures::AsInPlainRun
            },
            since,
        }
    }
}

/// The trial that a happening is the answer of, if it is one.
fn answer(asked: &Asked, happening: Happening) -> Option<Trial> {
    match happening {
        Happening::Ran(vm, ran) if vm == asked.vm => asked.ran(*ran).pop(),
        Happening::Unknown(vm) if vm == asked.vm => {
            Some(asked.not_run("its VM does not list this test", ""))
        }
        Happening::Ended(vm, fate) if vm == asked.vm => Some(asked.died(&fate)),
        _ => None,
    }
}
