//! The lab of a session: experiments are made in lanes, as many at a time as the user allows.
//!
//! Experiments that take the same kind of VM run side by side; those of another kind wait until these have ended, and
//! get the lanes that they need. What a technique wants and means is not known here.

use std::collections::VecDeque;
use std::time::Instant;

use unflake_core::drive::{Lab, Stop};
use unflake_core::experiment::{Between, Capabilities, Experiment, Times, VmSpec};
use unflake_core::technique::{Heard, Ticket};
use unflake_core::test::TestId;
use unflake_core::trial::{Birth, Rung, Trial, VmId};

use crate::cause::find::Family;
use crate::files::workspace::Workspace;
use crate::lab::lane::{Group, Lane, Manner, News};
use crate::lab::run_error::RunError;
use crate::lab::session::{Halt, Session};
use crate::lab::start_error::StartError;
use crate::protocol::messages;

/// The lab of a session.
pub(crate) struct LaneLab<'a> {
    session: &'a mut Session,
    lanes: Vec<Lane>,
    /// The VMs for which the lanes were opened; `None` if they are as the session opened them.
    kind: Option<VmSpec>,
    /// The groups of that kind that have not begun.
    groups: VecDeque<Group>,
    /// The experiments after them.
    waiting: VecDeque<(Ticket, Experiment)>,
    to_explain: VecDeque<(Ticket, TestId)>,
    news: Vec<News>,
    heard: VecDeque<Heard>,
    began: Instant,
}

impl<'a> LaneLab<'a> {
    /// A lab with the lane in which the tests were listed.
    pub(crate) fn new(session: &'a mut Session, first: Lane) -> Self {
        Self {
            session,
            lanes: vec![first],
            kind: None,
            groups: VecDeque::new(),
            waiting: VecDeque::new(),
            to_explain: VecDeque::new(),
            news: Vec::new(),
            heard: VecDeque::new(),
            began: Instant::now(),
        }
    }

    /// Ends all VMs that are not needed any more.
    pub(crate) fn close(&mut self) -> Result<(), Halt> {
        let lanes = std::mem::take(&mut self.lanes);
        self.session.leave_lanes(lanes)
    }

    fn can_copy(&self) -> bool {
        self.session.wish.project.can_copy()
    }

    /// Whether all that has begun is over.
    fn is_idle(&self) -> bool {
        self.groups.is_empty() && self.lanes.iter().all(|lane| lane.group.is_none())
    }

    /// Goes on until something can be told.
    fn go_on(&mut self) -> Result<Heard, Halt> {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Ok(heard);
            }
            if self.is_idle() {
                if let Some((ticket, test)) = self.to_explain.pop_front() {
                    return self.find_cause(ticket, test);
                }
                self.begin_next()?;
            }
            for lane in &mut self.lanes {
                self.session.go_on(lane, &mut self.groups, &mut self.news)?;
            }
            self.take_news()?;
            if self.heard.is_empty() && !self.is_idle() {
                self.session.turn_lanes(&mut self.lanes, &mut self.news)?;
                self.take_news()?;
            }
        }
    }

    /// Makes what lanes had to tell known to who asks.
    fn take_news(&mut self) -> Result<(), Halt> {
        for news in std::mem::take(&mut self.news) {
            let heard = match news {
                News::Started(test, vm, rung) => Heard::Started { test, vm, rung },
                News::Ran(group, trial) => Heard::Trial {
                    ticket: Ticket(group),
                    trial,
                },
                News::Ended(group, left_behind) => {
                    let alone = self.leave_alone()?;
                    Heard::Ended {
                        ticket: Ticket(group),
                        left_behind: alone.unwrap_or(left_behind),
                        at: self.began.elapsed(),
                    }
                }
            };
            self.heard.push_back(heard);
        }
        Ok(())
    }

    /// Has the next experiments begin that take one kind of VM, in lanes of that kind.
    fn begin_next(&mut self) -> Result<(), Halt> {
        let next = self.waiting.front().map(|(_, experiment)| experiment.vm);
        let kind = next.expect("a lab is asked only while a ticket is open");
        self.leave_other_lanes(kind)?;
        if kind == VmSpec::New && self.can_copy() {
            return self.begin_alone();
        }
        let others = self.waiting.iter().position(|(_, one)| one.vm != kind);
        let others = others.unwrap_or(self.waiting.len());
        for (ticket, experiment) in self.waiting.drain(..others).collect::<Vec<_>>() {
            let manner = self.manner(&experiment);
            self.groups.push_back(group(ticket, experiment, manner));
        }
        if matches!(kind, VmSpec::Copied | VmSpec::New) {
            let firsts = self.groups.iter();
            let firsts: Vec<TestId> = firsts
                .filter_map(|group| group.tests.first().cloned())
                .collect();
            self.session.prepare_fresh_vms(&firsts)?;
        }
        self.open_lanes(kind)
    }

    /// Ends the VMs of lanes that are of no use for what comes next.
    fn leave_other_lanes(&mut self, next: VmSpec) -> Result<(), Halt> {
        let is_of_use = match (self.kind, next) {
            // A VM that has run the suite can run nothing else.
            (Some(VmSpec::Suite), _) => false,
            (Some(VmSpec::New), next) => next == VmSpec::New && !self.can_copy(),
            (None | Some(VmSpec::Copied | VmSpec::Reloaded), next) => next != VmSpec::New,
        };
        for lane in &mut self.lanes {
            self.session.drop_ahead(lane);
        }
        if !is_of_use {
            self.close()?;
        }
        if self.kind == Some(VmSpec::Reloaded) || next == VmSpec::Reloaded {
            // What ran in them leaves no room for other classes, and the listing VM is no place for a first look.
            for lane in &mut self.lanes {
                lane.is_spent = true;
            }
        }
        self.kind = Some(next);
        Ok(())
    }

    /// Opens as many lanes as there may be for the groups that wait.
    fn open_lanes(&mut self, kind: VmSpec) -> Result<(), Halt> {
        let wanted = self.can().lanes.min(self.groups.len());
        while self.lanes.len() < wanted {
            let worker = self.session.worker(self.lanes.len());
            let lane = match kind {
                VmSpec::Suite | VmSpec::Copied => self.session.open_another_lane(worker)?,
                VmSpec::Reloaded | VmSpec::New => self.session.open_unused_lane(worker)?,
            };
            self.lanes.push(lane);
        }
        Ok(())
    }

    /// How the tests of an experiment are run in a lane.
    fn manner(&self, experiment: &Experiment) -> Manner {
        Manner {
            setting: experiment.setting,
            between: match experiment.times {
                Times::Once => None,
                Times::Twice(between) => Some(to_wire(between)),
            },
            is_apart: match experiment.vm {
                VmSpec::Copied => true,
                VmSpec::New => !self.can_copy(),
                VmSpec::Suite | VmSpec::Reloaded => false,
            },
            is_brief: false,
        }
    }

    /// Has the next experiment begin in a new interpreter in a workspace of its own.
    fn begin_alone(&mut self) -> Result<(), Halt> {
        let Some((ticket, experiment)) = self.waiting.pop_front() else {
            return Ok(());
        };
        let since = Instant::now();
        match self.open_alone(&experiment.order)? {
            Ok(lane) => {
                self.lanes.push(lane);
                let manner = self.manner(&experiment);
                self.groups.push_back(group(ticket, experiment, manner));
            }
            Err((vm, said)) => {
                for test in &experiment.order {
                    let once = Rung::Once(experiment.setting);
                    let asked = self.session.asked(test.clone(), once, vm, since);
                    self.news.push(News::Started(test.clone(), vm, once));
                    let once = asked.not_collected(&said);
                    let rung = Rung::Again(experiment.setting);
                    let is_twice = experiment.times != Times::Once;
                    let again = is_twice.then(|| Trial {
                        rung,
                        ..once.clone()
                    });
                    let both = std::iter::once(once).chain(again);
                    self.news
                        .extend(both.map(|trial| News::Ran(ticket.0, Box::new(trial))));
                }
                self.news.push(News::Ended(ticket.0, Vec::new()));
                self.take_news()?;
            }
        }
        Ok(())
    }

    /// A new interpreter that lists these tests: they alone, or if need be with the whole suite. What the
    /// last one said if none does.
    fn open_alone(&mut self, tests: &[TestId]) -> Result<Result<Lane, (VmId, String)>, Halt> {
        let session = &mut *self.session;
        let setup = session.wish.project.setup(session.listed());
        let mut trouble = None;
        for is_alone in [true, false] {
            let mut workspace = session.new_workspace()?;
            let project = session.project_in(workspace.as_ref());
            let setup = setup.moved(session.listing_place(), &session.place(workspace.as_ref()));
            let start = if is_alone {
                project.start_among(&setup, &[], tests)
            } else {
                Some(project.start(true, &setup.replay))
            };
            let Some(start) = start else { continue };
            let process = project.process(&session.fleet.folder(), &start);
            let process = process.map_err(StartError::Scratch)?;
            let vm = session.fleet.spawn(process, Some(start))?;
            let Some(said) = session.await_tests(tests, None, vm)? else {
                if let Some(workspace) = &mut workspace {
                    workspace.mark().map_err(StartError::Scratch)?;
                }
                return Ok(Ok(Lane::new(vm, workspace, None)));
            };
            session.leave(Some(vm))?;
            trouble = Some((vm, said));
        }
        Ok(Err(trouble.expect("the whole suite is always tried")))
    }

    /// Ends the interpreter of an experiment that had it to itself; the files that it left changed.
    fn leave_alone(&mut self) -> Result<Option<Vec<String>>, Halt> {
        if self.kind != Some(VmSpec::New) || !self.can_copy() {
            return Ok(None);
        }
        let mut left_behind = Vec::new();
        for mut lane in std::mem::take(&mut self.lanes) {
            if let Some(workspace) = lane.workspace.as_mut() {
                let restored = Workspace::restore(workspace).map_err(StartError::Scratch)?;
                left_behind.extend(restored.changed);
            }
            // Its folder goes after it: on its way out it may write there.
            self.session.leave(Some(lane.vm))?;
        }
        Ok(Some(left_behind))
    }

    fn find_cause(&mut self, ticket: Ticket, test: TestId) -> Result<Heard, Halt> {
        self.close()?;
        let cause = self.session.find_causes(&Family::of_own(test))?.pop();
        let cause = cause.flatten().map(Box::new);
        Ok(Heard::Explained { ticket, cause })
    }
}

impl Lab for LaneLab<'_> {
    type Trouble = RunError;

    fn can(&self) -> Capabilities {
        let wish = &self.session.wish;
        let project = &self.session.home.project;
        Capabilities {
            copies: wish.project.can_copy(),
            reloads: project.can_reload() && wish.fresh_by != Some(Birth::Exec),
            lanes: wish.jobs.unwrap_or(1).max(1),
        }
    }

    fn submit(&mut self, ticket: Ticket, experiment: Experiment) {
        self.waiting.push_back((ticket, experiment));
    }

    fn explain(&mut self, ticket: Ticket, test: TestId) {
        self.to_explain.push_back((ticket, test));
    }

    fn hear(&mut self) -> Result<Heard, Stop<RunError>> {
        self.go_on().map_err(|halt| match halt {
            Halt::Interrupted => Stop::Interrupted,
            Halt::Error(error) => Stop::Trouble(error),
        })
    }
}

fn group(ticket: Ticket, experiment: Experiment, manner: Manner) -> Group {
    Group {
        number: ticket.0,
        tests: experiment.order,
        manner,
    }
}

fn to_wire(between: Between) -> messages::Between {
    match between {
        Between::Nothing => messages::Between::Nothing,
        Between::TearDown => messages::Between::TearDown,
        Between::Collect => messages::Between::Collect,
    }
}
