//! `unflake run`: lets the driver work, shows what happens, and writes the reports.

use std::fs;
use std::io::Write;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use anyhow::Context;
use unflake_core::event::{Ending, Event};
use unflake_driver::session::Session;

use crate::Exit;
use crate::args::{Format, RunArgs};
use crate::console::Console;
use crate::repeat::Invocation;
use crate::report::{Report, github, human, json, junit, markdown};
use crate::settings::Settings;

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<Exit> {
    let started = Instant::now();
    let Settings { wish, policy } = Settings::for_run(args)?;
    let mut report = Report::new(Invocation::new(args, &wish.project.folder));
    let (sender, events) = channel::<Event>();
    let session = Session::new(wish, sender)?;
    let interrupter = session.interrupter();
    ctrlc::set_handler(move || interrupter.interrupt()).context("cannot listen for Ctrl-C")?;

    let work = thread::spawn(move || session.run());
    let mut console = Console::new();
    for event in events {
        console.show(&event);
        report.read(event);
    }
    console.close();
    match work.join() {
        Ok(result) => result?,
        Err(panic) => std::panic::resume_unwind(panic),
    }
    report.elapsed = started.elapsed();

    let exit = judge(&report, policy.is_met(&report.findings));
    write_reports(&report, args, policy, exit)?;
    Ok(exit)
}

fn judge(report: &Report, policy_is_met: bool) -> Exit {
    match &report.ending {
        Some(Ending::Interrupted) | None => Exit::Interrupted,
        Some(Ending::Quit { .. }) => Exit::CannotRun,
        Some(Ending::Completed | Ending::Stopped { .. }) => {
            if policy_is_met && report.collection_errors.is_empty() {
                Exit::Clean
            } else {
                Exit::Problems
            }
        }
    }
}

fn write_reports(
    report: &Report,
    args: &RunArgs,
    policy: unflake_core::policy::Policy,
    exit: Exit,
) -> anyhow::Result<()> {
    if let Some(file) = &args.junit {
        let xml = junit::write(report, policy).context("cannot make the JUnit report")?;
        fs::write(file, xml).with_context(|| format!("cannot write {file}"))?;
    }
    let text = match args.format {
        Format::Human => human::write(report),
        Format::Json => json::write(report, exit as u8),
        Format::Junit => junit::write(report, policy).context("cannot make the JUnit report")?,
        Format::Markdown => markdown::write(report),
    };
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{}", text.trim_end()).context("cannot write the report")?;
    github::write(report, &mut std::io::stderr()).context("cannot write GitHub's step summary")
}
