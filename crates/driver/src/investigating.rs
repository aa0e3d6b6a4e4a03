//! Why a test is flaky: runs it with tracing until there are enough passing and failing traces.
//!
//! Every run has an interpreter of its own, with another hash seed, fresh files and an empty temporary
//! folder: a copy of an interpreter would share what real runs do not. What the traces mean is decided in
//! `unflake_core::why`.

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::nio::Setting;
use unflake_core::sequential::Tally;
use unflake_core::test::TestId;
use unflake_core::trial::Trial;
use unflake_core::why::enough::is_enough;
use unflake_core::why::ledger::{Ledger, Side};
use unflake_core::why::signature::Signature;

use crate::lane::{Lane, Manner};
use crate::protocol::Command;
use crate::run_error::RunError;
use crate::session::{Halt, Session};
use crate::start_error::StartError;
use crate::trace_file::{TraceError, read_trace};
use crate::workspace::Workspace;

/// So many runs without tracing, at most, show how much tracing disturbs.
const PLAIN_RUNS: u32 = 10;
/// The variable that fixes Python's hash seed.
const HASH_SEED: &str = "PYTHONHASHSEED";

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Inquiry {
    /// The test, as the framework names it.
    pub test: String,
    /// How many traced runs are made at most.
    pub runs: u32,
    /// Where traces are kept; else they are forgotten.
    pub keep: Option<Utf8PathBuf>,
}

/// What the runs of a test have shown.
#[derive(Debug)]
pub struct Traces {
    /// The folder that the files of sites are relative to.
    pub root: Utf8PathBuf,
    /// How many traced runs passed.
    pub passing: u32,
    /// How many traced runs did neither pass nor fail: they were skipped, for example.
    pub neither: u32,
    /// The failing runs, by what failed; the most frequent first.
    pub failures: Vec<Failures>,
    /// How many traces were cut off or lost.
    pub cut: u32,
    /// How many traced runs failed (hits) and passed.
    pub traced: Tally,
    /// The same of runs without tracing.
    pub plain: Tally,
    /// Whether there were enough traces to tell chance from cause.
    pub is_enough: bool,
    /// Whether each run had another hash seed; else the environment fixes it.
    pub varies_hash_seed: bool,
}

/// Failing runs that failed in the same way.
#[derive(Debug)]
pub struct Failures {
    /// The message of one of them.
    pub message: String,
    /// How many there are.
    pub runs: u32,
    /// What was seen in them and in the passing runs.
    pub ledger: Ledger,
}

/// A traced run, and where its trace is.
struct Run {
    side: Side,
    message: String,
    trace: Utf8PathBuf,
}

impl Session {
    /// Runs a test with tracing until there are enough traces.
    pub fn trace(mut self, inquiry: &Inquiry) -> Result<Traces, RunError> {
        match self.trace_test(inquiry) {
            Ok(traces) => Ok(traces),
            Err(Halt::Interrupted) => {
                self.fleet.kill_all();
                Err(RunError::Interrupted)
            }
            Err(Halt::Error(error)) => Err(error),
        }
    }

    fn trace_test(&mut self, inquiry: &Inquiry) -> Result<Traces, Halt> {
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
        let mut workspace = None;
        let mut bench = Bench::default();
        let mut number = 0;
        while number < inquiry.runs && !bench.is_enough() {
            number += 1;
            let (trial, vm_trace) = self.run_varied(&test, &mut workspace, number, true)?;
            let trace = folder.join(format!("{number}.trace"));
            // A VM that ended before the test began has written none.
            let is_there = fs::rename(&vm_trace, &trace).is_ok();
            bench.take(&trial, is_there.then_some(trace), inquiry.keep.as_deref())?;
        }
        let mut plain = Tally::default();
        for _ in 0..PLAIN_RUNS.min(number.div_ceil(2)) {
            number += 1;
            let (trial, _) = self.run_varied(&test, &mut workspace, number, false)?;
            plain.hits += u32::from(trial.outcome.is_failure());
            plain.misses += u32::from(trial.outcome.is_pass());
        }
        let root = self.home_path(self.listing_place().as_str());
        bench.into_traces(plain, root.into())
    }

    /// Runs a test alone in a new interpreter; the trial, and where its trace is if it was traced.
    fn run_varied(
        &mut self,
        test: &TestId,
        workspace: &mut Option<Workspace>,
        number: u32,
        is_traced: bool,
    ) -> Result<(Trial, Utf8PathBuf), Halt> {
        let place = match workspace.take() {
            Some(workspace) => Some(workspace),
            None => self.new_workspace()?,
        };
        let project = self.project_in(place.as_ref());
        let mut setup = self.wish.project.setup(self.listed());
        // What would make a run the same as the first is just what is not wanted.
        setup.replay.clear();
        let setup = setup.moved(self.listing_place(), &self.place(place.as_ref()));
        let alone = project.start_alone(&setup, test);
        let start = alone.unwrap_or_else(|| project.start(true, &[]));
        let start = if is_traced {
            traced(start, &self.place(place.as_ref()))
        } else {
            start
        };
        let process = project.process(&self.fleet.folder(), &start);
        let mut process = process.map_err(StartError::Scratch)?;
        if varies_hash_seed() {
            process.env(HASH_SEED, number.to_string());
        }
        let vm = self.fleet.spawn(process, start)?;
        if let Some(output) = self.await_tests(std::slice::from_ref(test), None, vm)? {
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
            setting: Setting::Alone,
            between: None,
            is_apart: false,
        };
        let mut lanes = [lane];
        let trials = self.run_each(&mut lanes, &[vec![test.clone()]], manner)?;
        let [lane] = lanes;
        self.leave(Some(vm))?;
        if let Some(mut place) = lane.workspace {
            let restored = place.restore().map_err(StartError::Scratch)?;
            // One that had to be made anew may differ in ways that nobody sees.
            *workspace = (!restored.is_rebuilt).then_some(place);
        }
        let trial = trials.into_iter().flatten().next();
        let trial = trial.expect("a test that was run has a trial");
        let file = self.fleet.folder().join(format!("{}.trace", vm.0));
        Ok((trial, file))
    }
}

/// Whether runs get hash seeds from us: not where the environment fixes it for real runs too.
fn varies_hash_seed() -> bool {
    std::env::var_os(HASH_SEED).is_none_or(|seed| seed.is_empty() || seed == "random")
}

/// The same start, with code of a folder traced.
fn traced(start: Command, folder: &Utf8Path) -> Command {
    match start {
        Command::Start {
            args, guest, watch, ..
        } => Command::Start {
            args,
            guest,
            watch,
            trace: Some(folder.to_string()),
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

/// The traced runs so far.
#[derive(Default)]
struct Bench {
    runs: Vec<Run>,
    /// All of them, whatever failed.
    ledger: Ledger,
    neither: u32,
    cut: u32,
    traced: Tally,
}

impl Bench {
    fn is_enough(&self) -> bool {
        let (passing, failing) = (
            self.ledger.runs(Side::Passing),
            self.ledger.runs(Side::Failing),
        );
        is_enough(passing, failing, self.ledger.epochs())
    }

    fn take(
        &mut self,
        trial: &Trial,
        trace: Option<Utf8PathBuf>,
        keep: Option<&Utf8Path>,
    ) -> Result<(), Halt> {
        let side = if trial.outcome.is_failure() {
            Side::Failing
        } else if trial.outcome.is_pass() {
            Side::Passing
        } else {
            self.neither += 1;
            return Ok(());
        };
        match side {
            Side::Failing => self.traced.hits += 1,
            Side::Passing => self.traced.misses += 1,
        }
        let Some(trace) = trace else {
            self.cut += 1;
            return Ok(());
        };
        if let Some(keep) = keep {
            keep_trace(&trace, keep, side).map_err(StartError::Scratch)?;
        }
        // Ours, from this very run: one that cannot be read is as good as lost, and that is told.
        match read_trace(&trace) {
            Ok(recorded) => {
                self.cut += u32::from(!recorded.is_whole);
                self.ledger.add(&recorded.trace, side);
                let message = trial.account.message.clone();
                self.runs.push(Run {
                    side,
                    message,
                    trace,
                });
            }
            Err(
                TraceError::Read { .. } | TraceError::Foreign { .. } | TraceError::Broken { .. },
            ) => {
                self.cut += 1;
            }
        }
        Ok(())
    }

    fn into_traces(self, plain: Tally, root: Utf8PathBuf) -> Result<Traces, Halt> {
        let is_enough = self.is_enough();
        let passing = self.ledger.runs(Side::Passing);
        let failures = by_signature(&self.runs, self.ledger)
            .map_err(|error| Halt::from(StartError::Scratch(io::Error::other(error))))?;
        Ok(Traces {
            root,
            passing,
            neither: self.neither,
            failures,
            cut: self.cut,
            traced: self.traced,
            plain,
            is_enough,
            varies_hash_seed: varies_hash_seed(),
        })
    }
}

fn keep_trace(trace: &Utf8Path, keep: &Utf8Path, side: Side) -> io::Result<()> {
    let folder = keep.join(match side {
        Side::Passing => "passing",
        Side::Failing => "failing",
    });
    fs::create_dir_all(&folder)?;
    let name = trace.file_name().unwrap_or("trace");
    fs::copy(trace, folder.join(name)).map(drop)
}

/// Failing runs by what failed, each group with the passing runs; `all` has them together.
fn by_signature(runs: &[Run], all: Ledger) -> Result<Vec<Failures>, TraceError> {
    let mut groups: Vec<(Signature, Vec<&Run>)> = Vec::new();
    for run in runs.iter().filter(|run| run.side == Side::Failing) {
        let signature = Signature::of(&run.message);
        match groups.iter_mut().find(|(known, _)| *known == signature) {
            Some((_, group)) => group.push(run),
            None => groups.push((signature, vec![run])),
        }
    }
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.len()));
    let failures = |group: &[&Run], ledger: Ledger| Failures {
        message: group[0].message.clone(),
        runs: ledger.runs(Side::Failing),
        ledger,
    };
    if let [(_, group)] = groups.as_slice() {
        return Ok(vec![failures(group, all)]);
    }
    let passing = || runs.iter().filter(|run| run.side == Side::Passing);
    let mut found = Vec::new();
    for (_, group) in &groups {
        let mut ledger = Ledger::default();
        for run in passing().chain(group.iter().copied()) {
            ledger.add(&read_trace(&run.trace)?.trace, run.side);
        }
        found.push(failures(group, ledger));
    }
    Ok(found)
}

/// Traces that were made elsewhere: a folder of passing runs and one of failing runs.
pub fn read_folders(passing: &Utf8Path, failing: &Utf8Path) -> Result<(Ledger, u32), TraceError> {
    let mut ledger = Ledger::default();
    let mut cut = 0;
    for (folder, side) in [(passing, Side::Passing), (failing, Side::Failing)] {
        let failed = |source| TraceError::Read {
            path: folder.to_owned(),
            source,
        };
        let mut paths = Vec::new();
        for entry in folder.read_dir_utf8().map_err(failed)? {
            let path = entry.map_err(failed)?.into_path();
            if matches!(path.extension(), Some("trace" | "csv")) {
                paths.push(path);
            }
        }
        paths.sort();
        for path in paths {
            let recorded = read_trace(&path)?;
            cut += u32::from(!recorded.is_whole);
            ledger.add(&recorded.trace, side);
        }
    }
    Ok((ledger, cut))
}
