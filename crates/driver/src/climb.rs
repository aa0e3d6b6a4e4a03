//! The rungs after the suite: at its end in the same VM, then in fresh VMs.
//!
//! Order matters for what a rerun may find. All same-VM reruns come first; then forks, while the
//! suite's VMs are idle but alive; then the suite's VMs end, so that a new interpreter finds ports,
//! files and databases as free as a developer would.

use std::time::{Duration, Instant};

use unflake_core::event::{Event, Note};
use unflake_core::ladder::{Place, Stage, Step};
use unflake_core::outcome::Outcome;
use unflake_core::test::TestId;
use unflake_core::trial::{Account, Birth, Rung, Trial, VmId};

use crate::fleet::Happening;
use crate::protocol::{Command, Name, Target, Worker};
use crate::session::{Costing, Halt, Mould, Session};

/// A test in a fork gets at least this long before the fork itself is blamed for the delay.
const FORK_PATIENCE: Duration = Duration::from_secs(30);
/// How long a fresh interpreter may take to end after its test.
const LEAVING: Duration = Duration::from_secs(20);

/// The places that one sweep over the suspects may use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sweep {
    SuiteVms,
    Forks,
    Interpreters,
}

/// What a trial in a VM came to.
enum Tried {
    Done(Trial),
    /// The VM has no such test.
    Unknown,
}

impl Session {
    /// Climbs the ladder for every suspect, until each has its verdict.
    pub(crate) fn climb(&mut self) -> Result<(), Halt> {
        for sweep in [Sweep::SuiteVms, Sweep::Forks, Sweep::Interpreters] {
            if sweep == Sweep::Interpreters {
                for vm in std::mem::take(&mut self.suite_vms) {
                    self.finish(vm)?;
                }
            }
            for at in 0..self.suspects.len() {
                self.climb_one(at, sweep)?;
            }
        }
        if let Mould::Vm(mould) = self.mould {
            self.fleet.kill(mould);
        }
        Ok(())
    }

    /// Makes the trials of one suspect that belong to this sweep.
    fn climb_one(&mut self, at: usize, sweep: Sweep) -> Result<(), Halt> {
        let mut fresh = None;
        while !self.suspects[at].is_judged {
            let (rung, place) = match self.step(&self.suspects[at], self.stage(at)) {
                Step::Rerun(rung, place) => (rung, place),
                Step::Conclude(verdict) => {
                    self.judge(at, verdict);
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
            let trial = match place {
                Place::SuiteVm => {
                    let vm = self.suspects[at].trials[0].vm;
                    self.rerun(at, rung, vm, Instant::now())?
                }
                Place::LastVm => match fresh {
                    Some(vm) => self.rerun(at, rung, vm, Instant::now())?,
                    None => unreachable!("the last VM is kept until the next step"),
                },
                Place::CheapestVm if self.can_fork() => self.in_fork(at, rung, &mut fresh)?,
                Place::CheapestVm | Place::NewInterpreter => {
                    self.in_interpreter(at, rung, &mut fresh)?
                }
            };
            let worker = self.suspects[at].worker.clone();
            self.record(trial, worker);
        }
        self.leave(fresh)
    }

    fn stage(&self, at: usize) -> Stage {
        Stage::SuiteEnded {
            too_many_failures: self.too_many_failures,
            suite_vm_alive: self.suite_vms.contains(&self.suspects[at].trials[0].vm)
                && self.fleet.vm(self.suspects[at].trials[0].vm).is_some(),
        }
    }

    fn sweep_of(&self, place: Place, at: usize) -> Sweep {
        match place {
            Place::SuiteVm => Sweep::SuiteVms,
            Place::CheapestVm if self.can_fork() => Sweep::Forks,
            Place::CheapestVm | Place::NewInterpreter => Sweep::Interpreters,
            Place::LastVm => match self.suspects[at].trials.last().map(|trial| trial.birth) {
                Some(Birth::Fork) => Sweep::Forks,
                Some(Birth::Exec) | None => Sweep::Interpreters,
            },
        }
    }

    fn can_fork(&self) -> bool {
        matches!(self.mould, Mould::Vm(_)) && self.wish.fresh_by != Some(Birth::Exec)
    }

    /// A trial in a fork of the mould. A fork that dies or hangs says nothing about the test,
    /// because a copied process can do that by itself: then a new interpreter decides.
    fn in_fork(&mut self, at: usize, rung: Rung, fresh: &mut Option<VmId>) -> Result<Trial, Halt> {
        let since = Instant::now();
        let Mould::Vm(mould) = self.mould else {
            return self.in_interpreter(at, rung, fresh);
        };
        let vm = self.fleet.fork(mould);
        loop {
            match self.next(Some(since + FORK_PATIENCE))? {
                Happening::Cloned(cloned) if cloned == vm => break,
                Happening::Deadline | Happening::Unforked(..) => {
                    return self.without_forks("the mould does not answer", at, rung, fresh);
                }
                Happening::Ended(ended, _) if ended == mould || ended == vm => {
                    return self.without_forks("the mould has ended", at, rung, fresh);
                }
                unrelated => drop(unrelated),
            }
        }
        *fresh = Some(vm);
        let trial = self.rerun(at, rung, vm, since)?;
        if trial.outcome.ends_vm() {
            let note = Note::ForkGivenUp {
                test: trial.test.clone(),
                why: trial.account.message.clone(),
            };
            self.note(note);
            *fresh = None;
            self.fleet.kill(vm);
            return self.in_interpreter(at, rung, fresh);
        }
        Ok(trial)
    }

    fn without_forks(
        &mut self,
        why: &str,
        at: usize,
        rung: Rung,
        fresh: &mut Option<VmId>,
    ) -> Result<Trial, Halt> {
        if let Mould::Vm(mould) = self.mould {
            self.fleet.kill(mould);
        }
        let why = why.to_owned();
        self.mould = Mould::None { why, said: false };
        self.in_interpreter(at, rung, fresh)
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
        let suite = self
            .suite
            .as_ref()
            .expect("the suite is listed before it runs");
        let alone = self.wish.project.start_alone(suite, &test);
        let whole = self.wish.project.start(true, &suite.replay);
        let mut trouble = Account::default();
        for start in [alone, Some(whole)].into_iter().flatten() {
            let vm = self.spawn(start)?;
            let worker = self.suspects[at].worker.clone();
            if let Err(account) = self.await_ready(vm, worker, &test)? {
                trouble = account;
                self.leave(Some(vm))?;
                continue;
            }
            *fresh = Some(vm);
            match self.try_in(at, rung, vm, since)? {
                Tried::Done(trial) => return Ok(trial),
                Tried::Unknown => unreachable!("the VM has listed this test"),
            }
        }
        let vm = self.suspects[at].trials[0].vm;
        let outcome = Outcome::Errored;
        let trial = self.trial(&test, rung, vm, outcome, trouble);
        Ok(Trial {
            birth: Birth::Exec,
            ..trial
        }
        .costing(since.elapsed()))
    }

    fn say_why_no_fork(&mut self) {
        if let Mould::None { why, said } = &mut self.mould
            && !std::mem::replace(said, true)
        {
            let why = why.clone();
            self.note(Note::ForkUnavailable { why });
        }
    }

    /// Waits until a new interpreter has listed `test`; what it said instead if it has not.
    fn await_ready(
        &mut self,
        vm: VmId,
        worker: Option<Worker>,
        test: &TestId,
    ) -> Result<Result<(), Account>, Halt> {
        loop {
            match self.next(None)? {
                Happening::Parsed(parsed, _) if parsed == vm => {
                    self.fleet.collect(vm, worker.clone());
                }
                Happening::Ready(ready, collected) if ready == vm => {
                    let name = Name::from(test);
                    let is_listed = collected.tests.iter().any(|listed| {
                        listed.name.test == name.test && listed.name.copy == name.copy
                    });
                    return Ok(if is_listed && !collected.blocked {
                        Ok(())
                    } else {
                        let texts = collected.errors.into_iter().map(|error| error.text);
                        Err(unlisted(&texts.collect::<Vec<_>>().join("\n")))
                    });
                }
                Happening::Ended(ended, fate) if ended == vm => {
                    return Ok(Err(unlisted(&fate.output.text(Duration::from_secs(1)))));
                }
                unrelated => drop(unrelated),
            }
        }
    }

    /// Runs a suspect again in a VM that is sure to have it.
    fn rerun(&mut self, at: usize, rung: Rung, vm: VmId, since: Instant) -> Result<Trial, Halt> {
        match self.try_in(at, rung, vm, since)? {
            Tried::Done(trial) => Ok(trial),
            Tried::Unknown => {
                let test = self.suspects[at].test.clone();
                Ok(self.trial(&test, rung, vm, Outcome::Errored, unlisted("")))
            }
        }
    }

    fn try_in(&mut self, at: usize, rung: Rung, vm: VmId, since: Instant) -> Result<Tried, Halt> {
        let test = self.suspects[at].test.clone();
        let limit = self.limit(at, vm);
        let deadline = limit.map(|limit| Instant::now() + limit);
        self.tell(Event::TrialStarted {
            test: test.clone(),
            vm,
            rung,
        });
        let target = Target {
            test: Name::from(&test),
            next: None,
        };
        self.fleet.tell(vm, &Command::Rerun(target));
        loop {
            match self.next(deadline)? {
                Happening::Ran(ran_in, ran) if ran_in == vm => {
                    let is_it = ran.test.to_id() == test;
                    let attempt = ran.attempts.into_iter().next_back().filter(|_| is_it);
                    let cost = since.elapsed();
                    return Ok(Tried::Done(match attempt {
                        Some(attempt) => self.to_trial(&test, rung, vm, attempt, cost),
                        None => {
                            let account = unlisted("");
                            self.trial(&test, rung, vm, Outcome::Errored, account)
                                .costing(cost)
                        }
                    }));
                }
                Happening::Unknown(unknown_in) if unknown_in == vm => return Ok(Tried::Unknown),
                Happening::Stopped(stopped, ..) if stopped == vm => {
                    let how = "KeyboardInterrupt or pytest.exit".to_owned();
                    let account = short(&format!("it ended the session: {how}"), "");
                    let outcome = Outcome::VmDied { how };
                    let trial = self.trial(&test, rung, vm, outcome, account);
                    self.fleet.kill(vm);
                    return Ok(Tried::Done(trial.costing(since.elapsed())));
                }
                Happening::Ended(ended, fate) if ended == vm => {
                    let account = short(
                        &format!("its VM ended: {}", fate.how),
                        &fate.output.text(Duration::from_secs(1)),
                    );
                    let outcome = Outcome::VmDied { how: fate.how };
                    let trial = self.trial(&test, rung, vm, outcome, account);
                    return Ok(Tried::Done(trial.costing(since.elapsed())));
                }
                Happening::Deadline => {
                    let after = limit.expect("only a limit sets a deadline");
                    let stack = self.fleet.stack(vm).unwrap_or_default();
                    let account = short(&format!("still running after {after:?}"), &stack);
                    let outcome = Outcome::TimedOut { after };
                    let trial = self.trial(&test, rung, vm, outcome, account);
                    self.fleet.kill(vm);
                    return Ok(Tried::Done(trial.costing(since.elapsed())));
                }
                unrelated => drop(unrelated),
            }
        }
    }

    /// How long a rerun may take: the user's limit, and for a fork always some limit.
    fn limit(&self, at: usize, vm: VmId) -> Option<Duration> {
        let suspect = &self.suspects[at];
        let own = self.wish.plan.timeout_for(&suspect.test);
        let is_fork = self.fleet.vm(vm).is_some_and(|vm| vm.birth == Birth::Fork);
        let patience = FORK_PATIENCE.max(suspect.trials[0].duration * 10);
        own.or(is_fork.then_some(patience))
    }

    /// Ends a fresh VM that is not needed any more.
    fn leave(&mut self, fresh: Option<VmId>) -> Result<(), Halt> {
        let Some(vm) = fresh else { return Ok(()) };
        match self.fleet.vm(vm).map(|vm| vm.birth) {
            Some(Birth::Exec) => {
                self.fleet.tell(vm, &Command::Finish {});
                self.await_end(vm, LEAVING)
            }
            Some(Birth::Fork) => {
                self.fleet.kill(vm);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn unlisted(text: &str) -> Account {
    short("a new interpreter could not run this test", text)
}

fn short(message: &str, text: &str) -> Account {
    Account {
        message: message.to_owned(),
        text: text.to_owned(),
        output: String::new(),
    }
}
