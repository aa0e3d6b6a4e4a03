//! `unflake next --run`: runs the most telling test, writes down how it ended, and chooses anew.

use std::io::Write;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use anyhow::Context;
use console::style;
use unflake_core::event::Event;
use unflake_core::quantify::rerun_order::{Candidate, RerunOrder, rank};
use unflake_core::reported::junit_name;
use unflake_core::test::{Test, TestId};
use unflake_core::trial::Trial;
use unflake_driver::lab::run_error::RunError;
use unflake_driver::lab::session::{Session, Wish};
use unflake_driver::vm::interrupter::Interrupter;
use unflake_history::book::Entry;

use super::next::to_candidate;
use super::question::Question;
use super::table;
use crate::Exit;
use crate::flags::args::{AgainstArgs, LadderArgs, ProjectArgs, RunArgs, When};
use crate::flags::history::NextArgs;
use crate::history::own_files::OwnFiles;
use crate::history::recorder::Recorder;
use crate::settings::Settings;
use crate::view::explain::Trouble;
use crate::view::printable::printable;
use crate::view::report::seconds;
use crate::view::stdout::print;

type Current = Arc<Mutex<Option<Interrupter>>>;

pub(super) fn run(
    args: &NextArgs,
    question: Question,
    entries: &[Entry],
    order: RerunOrder,
) -> anyhow::Result<Exit> {
    let wishes = to_wishes(args)?;
    let store = camino::Utf8PathBuf::from(question.store.place());
    let (most, period) = (question.args.top, question.periods.current.period);
    // Others may write while we run; we open the history for each outcome.
    drop(question);
    let current = listen()?;
    let mut runnable: Vec<(&Wish, TestId, Candidate)> = Vec::new();
    for wish in &wishes {
        let listed = list(wish, &current)?;
        let own = entries
            .iter()
            .filter_map(|entry| Some((wish, find(entry, &listed)?, to_candidate(entry, period))));
        runnable.extend(own);
    }
    if runnable.is_empty() {
        return Err(Trouble::NothingToRun.into());
    }
    let begun = Instant::now();
    let (mut runs, mut failures) = (0, 0);
    let is_enough = |runs: usize| {
        let is_late = args.budget.is_some_and(|budget| begun.elapsed() >= budget);
        is_late || (args.budget.is_none() && most > 0 && runs >= most)
    };
    while !is_enough(runs) {
        let candidates: Vec<Candidate> = runnable.iter().map(|(.., one)| *one).collect();
        let (place, _) = rank(&candidates, order)[0];
        let (wish, test, candidate) = &mut runnable[place];
        let Some(trial) = run_once(wish, test, &store, &current)? else {
            return Ok(Exit::Interrupted);
        };
        let failed = trial.outcome.is_failure();
        runs += 1;
        failures += usize::from(failed);
        if failed || trial.outcome.is_pass() {
            candidate.add(failed);
        }
        // Without the start of the VM, which is the same for every test.
        candidate.seconds = trial.duration.as_secs_f64();
        show(&trial, candidate)?;
    }
    print(&format!(
        "{} runs, {} failed",
        table::count(runs as u64),
        table::count(failures as u64)
    ))?;
    Ok(if failures > 0 {
        Exit::Problems
    } else {
        Exit::Clean
    })
}

/// Has Ctrl-C interrupt what is current.
fn listen() -> anyhow::Result<Current> {
    let current: Current = Arc::default();
    let handler = Arc::clone(&current);
    ctrlc::set_handler(move || {
        let current = handler.lock().expect("nobody panics with it");
        if let Some(interrupter) = current.as_ref() {
            interrupter.interrupt();
        }
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(current)
}

/// Runs of one test without reruns, for each part of the project.
fn to_wishes(args: &NextArgs) -> anyhow::Result<Vec<Wish>> {
    let run_args = RunArgs {
        project: ProjectArgs {
            framework: None,
            python: args.python.clone(),
            config: args.question.config.clone(),
            framework_args: args.framework_args.clone(),
        },
        immediate: Some(0),
        end: Some(0),
        ladder: LadderArgs {
            fresh: Some(0),
            ..LadderArgs::default()
        },
        against: AgainstArgs {
            intersect: Some(When::Never),
            ..AgainstArgs::default()
        },
        jobs: Some(1),
        ..RunArgs::default()
    };
    Ok(Settings::for_run(&run_args)?.wishes)
}

fn list(wish: &Wish, current: &Current) -> anyhow::Result<Vec<Test>> {
    let (sender, events) = channel();
    let session = Session::new(wish.clone(), sender).map_err(RunError::from)?;
    *current.lock().expect("nobody panics with it") = Some(session.interrupter());
    session.list()?;
    let mut tests = Vec::new();
    for event in events {
        if let Event::Listed(listing) = event {
            tests = listing.tests;
        }
    }
    Ok(tests)
}

/// The test of the project that an entry of the history is.
fn find(entry: &Entry, listed: &[Test]) -> Option<TestId> {
    let is_it = |test: &&Test| {
        if entry.name.is_own {
            return test.id.name() == entry.name.name && test.id.copy() == entry.name.copy;
        }
        let (class, name) = junit_name(&test.id);
        format!("{class}.{name}") == entry.name.name
    };
    listed.iter().find(is_it).map(|test| test.id.clone())
}

/// Runs a test once and writes it down; `None` if the user stops it.
fn run_once(
    wish: &Wish,
    test: &TestId,
    store: &camino::Utf8Path,
    current: &Current,
) -> anyhow::Result<Option<Trial>> {
    let wish = Wish {
        project: wish.project.clone().only(test),
        ..wish.clone()
    };
    let (sender, events) = channel();
    let folder = wish.project.folder();
    let own = OwnFiles::new(store, folder, Vec::new(), SystemTime::now());
    let mut recorder = Recorder::new(&own);
    let session = Session::new(wish, sender).map_err(RunError::from)?;
    *current.lock().expect("nobody panics with it") = Some(session.interrupter());
    match session.run() {
        Ok(()) => {}
        Err(RunError::Interrupted) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let mut found = None;
    for event in events {
        recorder.read(&event);
        if let Event::TrialEnded(trial) = event
            && trial.test == *test
        {
            found = found.or(Some(trial));
        }
    }
    let ended = SystemTime::now();
    recorder.finish()?;
    own.keep(ended)?;
    Ok(found)
}

fn show(trial: &Trial, candidate: &Candidate) -> anyhow::Result<()> {
    let label = format!("{:>9}", trial.outcome.label().to_uppercase());
    let label = if trial.outcome.is_failure() {
        style(label).red()
    } else {
        style(label).green()
    };
    let broken = candidate.belief.broken_probability();
    let (name, time) = (printable(trial.test.name()), seconds(trial.duration));
    let broken = table::percent(broken);
    let mut stderr = std::io::stderr();
    writeln!(
        stderr,
        "{} {name} [{time}] broken: {broken}",
        label.for_stderr()
    )
    .context("cannot write to standard error")
}
