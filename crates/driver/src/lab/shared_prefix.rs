//! Orders that begin alike, run as one: copies of the VM leave it where the orders part.
//!
//! It is a short cut and no more. Whatever goes wrong on the way ends it, and the orders that have no
//! answer by then are run one by one. What a copy does to files would be found by those after it, so
//! that ends it too.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a waiter looks for what it waits for and passes over the rest"
)]

use std::time::Instant;

use nix::unistd::Pid;
use unflake_core::nio::Setting;
use unflake_core::order::trunk::Trunk;
use unflake_core::test::TestId;
use unflake_core::trial::{Rung, Trial};

use crate::files::workspace::Workspace;
use crate::lab::lane::Lane;
use crate::lab::lanes::{PATIENCE, kill_copy};
use crate::lab::session::{Halt, Session};
use crate::order::search::Search;
use crate::protocol::messages::{Command, Name, WireBranch};
use crate::vm::event::Happening;

/// How far orders that are run as one go.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    /// To the end of all.
    End,
    /// To the first whose last test ends otherwise than it does alone.
    Other {
        /// How it ends alone.
        passes_alone: bool,
    },
}

/// What came of orders that were run as one.
pub(crate) struct Shared {
    /// The trials of each order that has an answer.
    pub(crate) trials: Vec<Option<Vec<Trial>>>,
    /// Whether it had to be ended on the way.
    pub(crate) is_cut: bool,
}

/// A trunk on its way.
struct Growth<'a> {
    orders: &'a [Vec<TestId>],
    trunk: &'a Trunk,
    until: Until,
    /// What the trunk itself has run.
    stem: Vec<Trial>,
    /// How many branches have begun, and what the last has run.
    begun: usize,
    is_branching: bool,
    twig: Vec<Trial>,
    /// The copies that are alive, the one that speaks last.
    copies: Vec<Pid>,
    shared: Shared,
}

impl Growth<'_> {
    /// The test whose report comes next.
    fn expected(&self) -> Option<&TestId> {
        if self.copies.len() > 1 {
            let branch = &self.trunk.branches[self.begun - 1];
            return self.orders[branch.order].get(branch.after + self.twig.len());
        }
        self.orders[self.trunk.order].get(self.stem.len())
    }

    fn take(&mut self, trial: Trial) {
        self.shared.is_cut |= trial.outcome.ends_vm();
        if self.copies.len() > 1 {
            self.twig.push(trial);
        } else {
            self.stem.push(trial);
        }
    }

    /// A copy has ended.
    fn rejoin(&mut self, how: Option<&String>) {
        self.shared.is_cut |= how.is_some() || self.expected().is_some();
        let order = if self.copies.len() > 1 {
            let branch = &self.trunk.branches[self.begun - 1];
            self.twig.splice(0..0, self.stem[..branch.after].to_vec());
            branch.order
        } else {
            self.twig.clone_from(&self.stem);
            self.trunk.order
        };
        self.copies.pop();
        let trials = std::mem::take(&mut self.twig);
        let is_whole = how.is_none() && trials.len() == self.orders[order].len();
        self.shared.trials[order] = is_whole.then_some(trials);
    }

    /// Whether the last copy has shown what was looked for.
    fn is_enough(&self) -> bool {
        let Until::Other { passes_alone } = self.until else {
            return false;
        };
        let branch = self.begun.checked_sub(1);
        let branch = branch.map(|at| &self.trunk.branches[at]);
        let trials = branch.and_then(|branch| self.shared.trials[branch.order].as_ref());
        let last = trials.and_then(|trials| trials.last()?.outcome.passed());
        last == Some(!passes_alone)
    }
}

impl Session {
    /// Runs orders that share a trunk in a lane that does nothing else.
    pub(crate) fn run_trunk(
        &mut self,
        lane: &mut Lane,
        orders: &[Vec<TestId>],
        trunk: &Trunk,
        until: Until,
    ) -> Result<Shared, Halt> {
        let mut growth = Growth {
            orders,
            trunk,
            until,
            stem: Vec::new(),
            begun: 0,
            is_branching: false,
            twig: Vec::new(),
            copies: Vec::new(),
            shared: Shared {
                trials: vec![None; orders.len()],
                is_cut: false,
            },
        };
        if lane.is_used {
            self.put_back(lane)?;
        }
        let is_watched = lane.workspace.as_mut().is_some_and(Workspace::is_quiet);
        if lane.is_spent || self.fleet.vm(lane.vm).is_none() || !is_watched {
            growth.shared.is_cut = true;
            return Ok(growth.shared);
        }
        lane.is_used = true;
        self.tell_trunk(lane, orders, trunk);
        self.grow(lane, &mut growth)?;
        Ok(growth.shared)
    }

    fn tell_trunk(&mut self, lane: &Lane, orders: &[Vec<TestId>], trunk: &Trunk) {
        let names = |tests: &[TestId]| tests.iter().map(Name::from).collect();
        let branches = trunk.branches.iter().map(|branch| WireBranch {
            after: branch.after,
            tests: names(&orders[branch.order][branch.after..]),
        });
        let command = Command::Twice {
            reload: false,
            tests: names(&orders[trunk.order]),
            between: None,
            next: None,
            restore: Vec::new(),
            compare: false,
            brief: true,
            apart: true,
            usage: None,
            redraw: self.redraw(),
            branches: branches.collect(),
        };
        self.fleet.tell(lane.vm, &command);
    }

    /// Listens until the trunk has ended, or must be ended.
    fn grow(&mut self, lane: &mut Lane, growth: &mut Growth<'_>) -> Result<(), Halt> {
        let rung = Rung::Once(Setting::Ordered);
        loop {
            let limit = growth.expected();
            let limit = limit.and_then(|test| self.wish.plan.timeout_for(test));
            let deadline = Instant::now() + limit.unwrap_or(PATIENCE);
            match self.next(Some(deadline))? {
                Happening::Apart(vm, copy) if vm == lane.vm => growth.copies.push(copy),
                Happening::Branching(vm) if vm == lane.vm => {
                    // What the trunk itself did to files is no matter.
                    if let Some(files) = &mut lane.workspace {
                        files.is_quiet();
                    }
                    growth.begun += 1;
                    growth.is_branching = true;
                    self.fleet.tell(vm, &Command::Go {});
                }
                Happening::Ran(vm, ran) if vm == lane.vm => {
                    let Some(test) = growth.expected().cloned() else {
                        return self.fell(lane, growth);
                    };
                    let asked = self.ask(test, rung, vm, Instant::now());
                    let trial = asked.ran(*ran).into_iter().next();
                    let trial = trial.map(|trial| self.at_home(lane.workspace.as_ref(), trial));
                    if let Some(trial) = trial {
                        growth.take(trial);
                    }
                }
                Happening::Rejoined(vm, how) if vm == lane.vm => {
                    growth.is_branching = false;
                    growth.rejoin(how.as_ref());
                    let files = lane.workspace.as_mut();
                    let is_quiet = files.is_some_and(Workspace::is_quiet);
                    if growth.copies.is_empty() {
                        return Ok(());
                    }
                    growth.shared.is_cut |= !is_quiet;
                    if growth.shared.is_cut {
                        return self.fell(lane, growth);
                    }
                    if growth.is_enough() {
                        return self.end_trunk(lane, growth);
                    }
                }
                Happening::Ended(vm, _) if vm == lane.vm => {
                    lane.is_spent = true;
                    return self.fell(lane, growth);
                }
                Happening::Deadline => return self.fell(lane, growth),
                Happening::Unforked(vm, _) if vm == lane.vm => {
                    growth.is_branching = false;
                    return self.fell(lane, growth);
                }
                Happening::Unknown(vm) if vm == lane.vm => return self.fell(lane, growth),
                Happening::Stopped(vm, ..) if vm == lane.vm => return self.fell(lane, growth),
                _ => {}
            }
        }
    }

    /// Ends a trunk that has gone wrong.
    fn fell(&mut self, lane: &mut Lane, growth: &mut Growth<'_>) -> Result<(), Halt> {
        growth.shared.is_cut = true;
        self.end_trunk(lane, growth)
    }

    /// Ends a trunk on its way, and waits until its lane is free.
    fn end_trunk(&mut self, lane: &mut Lane, growth: &mut Growth<'_>) -> Result<(), Halt> {
        // The trunk first: it must not tell of a branch that ends.
        growth.copies.iter().copied().for_each(kill_copy);
        // A branch may still say something, and nobody would know what about.
        let mut is_lost = lane.is_spent || growth.is_branching;
        let deadline = Instant::now() + PATIENCE;
        while !growth.copies.is_empty() && !is_lost {
            match self.next(Some(deadline))? {
                Happening::Rejoined(vm, _) if vm == lane.vm => growth.copies.clear(),
                Happening::Ended(vm, _) if vm == lane.vm => is_lost = true,
                Happening::Deadline => is_lost = true,
                _ => {}
            }
        }
        if is_lost {
            self.fleet.kill(lane.vm);
            lane.is_spent = true;
        }
        Ok(())
    }

    /// Runs as one what these orders have in common, and books what came of it; the places of those that
    /// it answers, with their trials. What it does not answer is to be asked for anew.
    pub(crate) fn run_shared(
        &mut self,
        search: &mut Search,
        orders: &[Vec<TestId>],
        trunk: &Trunk,
        until: Until,
    ) -> Result<Vec<(usize, Vec<Trial>)>, Halt> {
        let rung = Rung::Once(Setting::Ordered);
        let recall = |order: &Vec<TestId>| search.journal.as_mut()?.recall(order, rung);
        let mut all: Vec<Option<Vec<Trial>>> = orders.iter().map(recall).collect();
        if all.iter().all(Option::is_none) {
            let shared = self.run_trunk(&mut search.lanes[0], orders, trunk, until)?;
            if shared.is_cut {
                search.unshared.extend(orders[trunk.order].last().cloned());
            }
            for (order, trials) in orders.iter().zip(&shared.trials) {
                if let (Some(journal), Some(trials)) = (&mut search.journal, trials) {
                    journal.note(order, trials);
                }
            }
            all = shared.trials;
        }
        let all = all.into_iter().enumerate();
        let all = all.filter_map(|(order, trials)| Some((order, trials?)));
        let all: Vec<(usize, Vec<Trial>)> = all.collect();
        for (_, trials) in &all {
            search.book.note(trials);
        }
        Ok(all)
    }
}
