//! Why a test is flaky: runs it with tracing until there are enough passing and failing traces.
//!
//! Every run has an interpreter of its own, with another hash seed, fresh files and an empty temporary
//! folder: a copy of an interpreter would share what real runs do not. What the traces mean is decided in
//! `unflake_core::why`.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::nio::Setting;
use unflake_core::sequential::Tally;
use unflake_core::test::TestId;
use unflake_core::trial::{Rung, Trial, VmId};
use unflake_core::why::fuzz::Delays;

use crate::files::workspace::Workspace;
use crate::framework::project::Project;
use crate::lab::lane::{Lane, Manner};
use crate::lab::run_error::RunError;
use crate::lab::session::{Halt, Session};
use crate::lab::start_error::StartError;
use crate::protocol::delays::WireDelays;
use crate::protocol::messages::Command;
use crate::why::after_others::Beside;
use crate::why::delays::Fuzzed;
use crate::why::gather::{Bench, Failures};

/// The number of runs without delays before those with delays that the user asked for.
const BEFORE_DELAYS: u32 = 20;
/// The number of runs that neither passed nor failed, after which it is assumed that none will.
const MOST_WITHOUT: u32 = 5;
/// The number of runs with the same outcome after which the test runs after other tests.
const STEADY: u32 = 15;

/// The settings of an inquiry.
#[derive(Clone, Debug)]
pub struct Inquiry {
    /// The test, as the framework names it.
    pub test: String,
    /// The most traced runs.
    pub runs: u32,
    /// The most runs without tracing, which show how much tracing changes the result.
    pub plain_runs: u32,
    /// The folder in which traces are kept; with `None` they are forgotten.
    pub keep: Option<Utf8PathBuf>,
    /// Whether delays are tried.
    pub fuzz: FuzzWish,
    /// The seed that chooses the delays.
    pub seed: u64,
}

impl Inquiry {
    /// The most traced runs without delays, given the traced runs so far.
    fn most(&self, traced: Tally) -> u32 {
        match self.fuzz {
            FuzzWish::Yes if traced.hits == 0 => self.runs.min(BEFORE_DELAYS),
            FuzzWish::Yes | FuzzWish::IfNeeded | FuzzWish::No => self.runs,
        }
    }
}

/// Whether delays are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuzzWish {
    /// Never.
    No,
    /// If no run fails without them.
    IfNeeded,
    /// As soon as some runs without them have passed.
    Yes,
}

/// The facts that a run is to show.
#[derive(Clone, Copy)]
pub(crate) enum Probe<'a> {
    /// How it ends.
    Plain,
    /// Its calls.
    Traced,
    /// Its calls when threads are delayed.
    Delayed(&'a Delays),
}

/// The results of a test's runs.
#[derive(Debug)]
pub struct Traces {
    /// The folder that the files of sites are relative to.
    pub root: Utf8PathBuf,
    /// The number of traced runs that passed.
    pub passing: u32,
    /// The number of traced runs that neither passed nor failed: they were skipped, for example.
    pub neither: u32,
    /// The failing runs, by what failed; the most frequent first.
    pub failures: Vec<Failures>,
    /// The number of traces that were cut off or lost.
    pub cut: u32,
    /// The number of traced runs that failed (hits) and passed.
    pub traced: Tally,
    /// The number of runs without tracing that failed (hits) and passed.
    pub plain: Tally,
    /// Whether there were enough traces to tell chance from cause.
    pub is_enough: bool,
    /// Whether the user has ended it before.
    pub is_interrupted: bool,
    /// Whether each run had another hash seed; else the environment fixes it.
    pub varies_hash_seed: bool,
    /// Its outcomes after the tests that stand before it, if that was tried.
    pub beside: Option<Beside>,
    /// The results of runs with delays, if there were any. Failing runs are then those with delays.
    pub fuzzed: Option<Fuzzed>,
}

/// The results so far.
#[derive(Default)]
struct Gathered {
    bench: Bench,
    plain: Tally,
    beside: Option<Beside>,
    fuzzed: Option<Fuzzed>,
}

impl Gathered {
    /// Whether one more traced run is wanted after this number of them.
    fn wants_more(&self, number: u32, inquiry: &Inquiry) -> bool {
        let is_left = number < inquiry.most(self.bench.traced);
        is_left && !self.bench.is_enough() && self.says_something()
    }

    /// Whether it passes or fails at all.
    fn says_something(&self) -> bool {
        self.bench.traced.runs() > 0 || self.bench.neither < MOST_WITHOUT
    }

    fn depends_on_order(&self) -> bool {
        let alone = self.bench.traced.and(self.plain);
        self.beside.is_some_and(|beside| beside.differs(alone))
    }
}

impl Session {
    /// Runs a test with tracing until there are enough traces, or until the user interrupts it: then the result is
    /// what is known so far.
    pub fn trace(mut self, inquiry: &Inquiry) -> Result<Traces, RunError> {
        let mut gathered = Gathered::default();
        let is_interrupted = match self.trace_test(inquiry, &mut gathered) {
            Ok(()) => false,
            Err(Halt::Interrupted) => {
                self.fleet.kill_all();
                if gathered.bench.traced.runs() == 0 {
                    return Err(RunError::Interrupted);
                }
                true
            }
            Err(Halt::Error(error)) => return Err(error),
        };
        let varies_hash_seed = self.wish.project.hash_seed().is_some();
        let Gathered {
            bench,
            plain,
            beside,
            fuzzed,
        } = gathered;
        let root = self.home_path(self.listing_place().as_str());
        Ok(Traces {
            root: root.into(),
            passing: bench.passing(),
            neither: bench.neither,
            cut: bench.cut,
            traced: bench.traced,
            plain,
            is_enough: bench.is_enough(),
            is_interrupted,
            varies_hash_seed,
            beside,
            fuzzed,
            failures: bench.into_failures().map_err(|halt| match halt {
                Halt::Interrupted => RunError::Interrupted,
                Halt::Error(error) => error,
            })?,
        })
    }

    fn trace_test(&mut self, inquiry: &Inquiry, gathered: &mut Gathered) -> Result<(), Halt> {
        self.move_in();
        let first = self.open_lane()?;
        let test = self.tests.iter().map(|test| &test.id);
        let test = test.clone().find(|id| id.name() == inquiry.test).cloned();
        let Some(test) = test else {
            let name = inquiry.test.clone();
            return Err(Halt::Error(RunError::NoSuchTest { name }));
        };
        self.leave(Some(first.vm))?;
        let folder = self.fleet.folder().join("traces");
        fs::create_dir_all(&folder).map_err(StartError::Scratch)?;
        let alone = [test.clone()];
        let mut workspace = None;
        let (mut number, mut is_told) = (0, false);
        let wanted = |number: u32| inquiry.plain_runs.min(number.div_ceil(2));
        while gathered.wants_more(number, inquiry) && !is_told {
            number += 1;
            let (trial, vm_trace) =
                self.run_varied(&alone, &mut workspace, number, Probe::Traced)?;
            let trace = folder.join(format!("{number}.trace"));
            // A VM that ended before the test began has written none.
            let is_there = fs::rename(&vm_trace, &trace).is_ok();
            let bench = &mut gathered.bench;
            bench.take(&trial, is_there.then_some(trace), inquiry.keep.as_deref())?;
            if number == STEADY.min(inquiry.runs) {
                gathered.beside = self.look_beside(&test, inquiry, bench, &mut workspace)?;
                if gathered.depends_on_order() {
                    // It may be tracing, and not the other tests, that changes how it ends alone.
                    let plain = self.run_plain(&test, &mut workspace, number, wanted(number))?;
                    gathered.plain = plain;
                    is_told = gathered.depends_on_order();
                }
            }
        }
        if gathered.plain.runs() == 0 && gathered.says_something() {
            gathered.plain = self.run_plain(&test, &mut workspace, number, wanted(number))?;
        }
        // Tracing may hide a race that runs without it have shown: delays bring it back.
        let bench = &mut gathered.bench;
        let never_fails = !is_told && bench.traced.hits == 0 && bench.traced.misses > 0;
        if never_fails && inquiry.fuzz != FuzzWish::No {
            gathered.fuzzed = Some(self.fuzz(&test, inquiry, bench, &mut workspace)?);
        }
        Ok(())
    }

    /// Runs a test without tracing, `runs` times after `before` runs with it, and returns how many runs failed (hits)
    /// and passed.
    fn run_plain(
        &mut self,
        test: &TestId,
        workspace: &mut Option<Workspace>,
        before: u32,
        runs: u32,
    ) -> Result<Tally, Halt> {
        let mut plain = Tally::default();
        for number in before + 1..=before + runs {
            let alone = std::slice::from_ref(test);
            let (trial, _) = self.run_varied(alone, workspace, number, Probe::Plain)?;
            plain.hits += u32::from(trial.outcome.is_failure());
            plain.misses += u32::from(trial.outcome.is_pass());
        }
        Ok(plain)
    }

    /// Runs tests in a new interpreter; the trial of the last, and where its trace is if it was traced.
    pub(crate) fn run_varied(
        &mut self,
        order: &[TestId],
        workspace: &mut Option<Workspace>,
        number: u32,
        probe: Probe<'_>,
    ) -> Result<(Trial, Utf8PathBuf), Halt> {
        let place = match workspace.take() {
            Some(workspace) => Some(workspace),
            None => self.new_workspace()?,
        };
        let project = self.project_in(place.as_ref());
        let mut setup = self.wish.project.setup(self.listed());
        // Settings that make a run equal to the first one are not wanted here.
        setup.replay.clear();
        let setup = setup.moved(self.listing_place(), &self.place(place.as_ref()));
        let few = project.start_among(&setup, &[], order);
        let start = few.unwrap_or_else(|| project.start(true, &[]));
        let start = match probe {
            Probe::Plain => start,
            Probe::Traced => traced(start, &self.place(place.as_ref()), None),
            Probe::Delayed(delays) => {
                traced(start, &self.place(place.as_ref()), Some(delays.into()))
            }
        };
        let (vm, said) = self.start_varied(&project, &start, order, number)?;
        if let Some(output) = said {
            let how = "a new interpreter did not list the test".to_owned();
            let framework = self.wish.project.framework();
            return Err(Halt::Error(RunError::EndedEarly {
                framework,
                how,
                output,
            }));
        }
        let mut lane = Lane::new(vm, place, None);
        lane.mark_once()?;
        let manner = Manner {
            is_brief: false,
            setting: if order.len() > 1 {
                Setting::Ordered
            } else {
                Setting::Alone
            },
            between: None,
            is_apart: false,
        };
        let mut lanes = [lane];
        let trials = self.run_each(&mut lanes, &[order.to_vec()], manner)?;
        let [lane] = lanes;
        self.leave(Some(vm))?;
        if let Some(mut place) = lane.workspace {
            let restored = place.restore().map_err(StartError::Scratch)?;
            // A workspace that had to be made anew may differ in ways that nobody sees.
            *workspace = (!restored.is_rebuilt).then_some(place);
        }
        let trial = trials.into_iter().flatten().next_back();
        let trial = trial.expect("a test that was run has a trial");
        let file = self.fleet.folder().join(format!("{}.trace", vm.0));
        Ok((trial, file))
    }

    /// Starts an interpreter with a hash seed of its own; what it said if it does not list these tests. If
    /// its seed gives their names to other tests, another interpreter has the seed of the first.
    fn start_varied(
        &mut self,
        project: &Project,
        start: &Command,
        order: &[TestId],
        number: u32,
    ) -> Result<(VmId, Option<String>), Halt> {
        let process = project.process(&self.fleet.folder(), start);
        let mut process = process.map_err(StartError::Scratch)?;
        project.vary_hash_seed(&mut process, number);
        let vm = self.fleet.spawn(process, Some(start.clone()))?;
        let said = self.await_tests(order, None, vm)?;
        let is_other = |test: &TestId| self.is_other_test(test, vm, Rung::Fresh);
        if !order.iter().any(is_other) {
            return Ok((vm, said));
        }
        self.leave(Some(vm))?;
        let process = project.process(&self.fleet.folder(), start);
        let process = process.map_err(StartError::Scratch)?;
        let vm = self.fleet.spawn(process, Some(start.clone()))?;
        let said = self.await_tests(order, None, vm)?;
        Ok((vm, said))
    }
}

/// This start of a VM, with the code of a folder traced.
fn traced(start: Command, folder: &Utf8Path, delays: Option<WireDelays>) -> Command {
    match start {
        Command::Start {
            args, guest, watch, ..
        } => Command::Start {
            args,
            guest,
            watch,
            trace: Some(folder.to_string()),
            delays,
        },
        Command::Collect { .. }
        | Command::Run { .. }
        | Command::Rerun { .. }
        | Command::Twice { .. }
        | Command::Go {}
        | Command::Mark {}
        | Command::Compare { .. }
        | Command::Locate { .. }
        | Command::Fork { .. }
        | Command::Finish {} => start,
    }
}
