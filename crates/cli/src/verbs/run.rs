//! `unflake run`: lets the driver work, shows what happens, and writes the reports.

use std::fs::File;
use std::io::Write;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use camino::Utf8Path;
use unflake_core::event::{Ending, Event};
use unflake_core::policy::Policy;
use unflake_driver::git::difference::Against;
use unflake_driver::lab::run_error::RunError;
use unflake_driver::lab::session::{Session, Wish};
use unflake_driver::order::search::Ordering;
use unflake_driver::vm::interrupter::Interrupter;
use unflake_history::store::StoreError;

use crate::Exit;
use crate::flags::args::{Format, RunArgs};
use crate::history::recorder::Recorder;
use crate::quarantine::Quarantine;
use crate::settings::Settings;
use crate::view::console::Console;
use crate::view::explain::{Trouble, explain};
use crate::view::repeat::Invocation;
use crate::view::report::{Report, github, human, json, junit, markdown};
use crate::view::stdout::print;

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<Exit> {
    let quarantine = Quarantine::load(args.quarantine.as_deref(), &args.project)?;
    examine(args, quarantine, Invocation::new, Session::run)
}

/// Lets a session work, shows what happens meanwhile, and writes the reports.
pub(crate) fn examine(
    args: &RunArgs,
    quarantine: Quarantine,
    invocation: fn(&RunArgs, &Utf8Path) -> Invocation,
    work: impl Fn(Session) -> Result<(), RunError> + Clone + Send + 'static,
) -> anyhow::Result<Exit> {
    let started = Instant::now();
    let Settings {
        wishes,
        policy,
        own,
    } = Settings::for_run(args)?;
    let junit = args.result.junit.as_deref().map(create).transpose()?;
    let folder = wishes[0].project.folder().to_owned();
    let mut report = Report::new(invocation(args, &folder));
    report.notes.extend(quarantine.notes.iter().cloned());
    report.quarantine = quarantine;
    report.shows_costs = args.result.costs;
    let interrupter = Arc::new(Mutex::new(None));
    let current = Arc::clone(&interrupter);
    let stop = move || {
        let current = current.lock();
        if let Some(interrupter) = current.expect("nobody panics with it").as_ref() {
            Interrupter::interrupt(interrupter);
        }
    };
    ctrlc::set_handler(stop).context("cannot listen for Ctrl-C")?;
    let parts = wishes.len();
    let mut missing = Vec::new();
    let mut recorder = own.as_ref().map(Recorder::new);
    for wish in wishes {
        if report.ending == Some(Ending::Interrupted) {
            break;
        }
        let readers = recorder.as_ref().map(Recorder::readers);
        let wish = Wish {
            vms_before: report.next_vm(),
            against: wish.against.map(|against| Against { readers, ..against }),
            ..wish
        };
        let known = report.findings.len();
        let recorder = recorder.as_mut();
        match watch(
            wish.clone(),
            work.clone(),
            &interrupter,
            &mut report,
            recorder,
        ) {
            Ok(true) => {}
            Ok(false) => return Ok(Exit::OurBug),
            // Another part may have it.
            Err(error) if is_missing(&error) => missing.push(error),
            Err(error) => return Err(error),
        }
        if args.explain && !explain_order(args, wish, &interrupter, &mut report, known)? {
            return Ok(Exit::OurBug);
        }
    }
    let ended = SystemTime::now();
    let is_recorded = recorder.is_some_and(|recorder| is_done(recorder.finish()));
    if missing.len() == parts {
        return Err(missing.remove(0));
    }
    report.settle(parts);
    report.elapsed = started.elapsed();

    let exit = judge(&report, policy.is_met(report.counted()));
    write_stdout(&report, args.result.format, policy, exit)?;
    if let Some(mut file) = junit {
        let xml = junit::write(&report, policy).context("cannot make the JUnit report")?;
        file.write_all(xml.as_bytes())
            .context("cannot write the JUnit report")?;
    }
    github::write(&report, policy, &mut std::io::stderr())
        .context("cannot write GitHub's step summary")?;
    if let Some(own) = own.filter(|_| is_recorded) {
        // After the reports: they are left behind too.
        is_done(own.keep(ended));
    }
    Ok(exit)
}

/// Says what the history lacks, if it does: that changes nothing about the tests.
fn is_done(written: Result<(), StoreError>) -> bool {
    let Err(error) = written else {
        return true;
    };
    let error = anyhow::Error::from(error).context("these runs are not in the history");
    drop(writeln!(std::io::stderr(), "{}", explain(&error).0));
    false
}

/// Lets one session work, and reads its events. False if it broke down by a bug of ours.
fn watch(
    wish: Wish,
    work: impl FnOnce(Session) -> Result<(), RunError> + Send + 'static,
    interrupter: &Mutex<Option<Interrupter>>,
    report: &mut Report,
    mut recorder: Option<&mut Recorder>,
) -> anyhow::Result<bool> {
    let (sender, events) = channel::<Event>();
    let session = Session::new(wish, sender).map_err(RunError::from)?;
    *interrupter.lock().expect("nobody panics with it") = Some(session.interrupter());
    let work = thread::spawn(move || work(session));
    let mut console = Console::new();
    while let Ok(first) = events.recv() {
        for event in std::iter::once(first).chain(events.try_iter()) {
            console.show(&event);
            if let Some(recorder) = recorder.as_deref_mut() {
                recorder.read(&event);
            }
            report.read(event);
        }
        // Nobody reads a screen faster, and the tests can use the processor.
        thread::sleep(Duration::from_millis(5));
    }
    console.close();
    match work.join() {
        Ok(result) => result.map(|()| true).map_err(Into::into),
        // The panic has printed itself: it is our bug, and there is no report to trust.
        Err(_) => Ok(false),
    }
}

fn is_missing(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<RunError>();
    matches!(error, Some(RunError::NoSuchTest { .. }))
}

/// Looks for the tests that order-dependent failures depend on, of those that are not `known` from earlier
/// parts, and adds what is found to the report.
fn explain_order(
    args: &RunArgs,
    wish: Wish,
    interrupter: &Mutex<Option<Interrupter>>,
    report: &mut Report,
    known: usize,
) -> anyhow::Result<bool> {
    let dependent = report.findings[known..].iter();
    let dependent = dependent.filter(|finding| finding.verdict.depends_on_order());
    let tests: Vec<String> = dependent.map(|one| one.test.name().to_owned()).collect();
    if tests.is_empty() || report.ending == Some(Ending::Interrupted) {
        return Ok(true);
    }
    let ordering = Ordering {
        tests,
        ..Ordering::default()
    };
    let mut found = Report::new(Invocation::of_order(args, wish.project.folder()));
    let is_sound = watch(
        wish,
        move |session| session.order(&ordering),
        interrupter,
        &mut found,
        None,
    )?;
    for finding in &mut report.findings {
        let explained = found
            .findings
            .iter_mut()
            .find(|one| one.test == finding.test);
        if let Some(explained) = explained {
            finding.dependence = explained.dependence.take();
            finding.cause = explained.cause.take().or(finding.cause.take());
        }
    }
    report.notes.append(&mut found.notes);
    if found.ending == Some(Ending::Interrupted) {
        report.ending = found.ending;
    }
    Ok(is_sound)
}

fn judge(report: &Report, policy_is_met: bool) -> Exit {
    match &report.ending {
        Some(Ending::Interrupted) | None => Exit::Interrupted,
        Some(Ending::Quit { .. } | Ending::CutShort { .. }) => Exit::CannotRun,
        // Nothing is known of the tests that have not run.
        Some(Ending::OutOfTime) => Exit::Problems,
        // A suite that stopped early says nothing about the tests that it left out.
        Some(Ending::Stopped { .. }) if report.counts().not_run > 0 => Exit::Problems,
        Some(Ending::Completed | Ending::Stopped { .. }) => {
            let is_whole = report.collection_errors.is_empty()
                && report.session_errors.is_empty()
                && report.unmatched.is_empty();
            if policy_is_met && is_whole {
                Exit::Clean
            } else {
                Exit::Problems
            }
        }
    }
}

/// Opens a report's file before anything runs: a long run must not end without its report.
fn create(file: &Utf8Path) -> Result<File, Trouble> {
    File::create(file).map_err(|source| Trouble::ReportFile {
        file: file.to_owned(),
        source,
    })
}

fn write_stdout(report: &Report, format: Format, policy: Policy, exit: Exit) -> anyhow::Result<()> {
    let text = match format {
        Format::Human => human::write(report),
        Format::Json => json::write(report, exit as u8),
        Format::Junit => junit::write(report, policy).context("cannot make the JUnit report")?,
        Format::Markdown => markdown::write(report),
    };
    print(&text)
}
