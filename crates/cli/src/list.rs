//! `unflake list`: the tests as the framework finds them, one a line.

use std::io::Write;
use std::sync::mpsc::channel;

use anyhow::Context;
use serde::Serialize;
use unflake_core::event::Event;
use unflake_driver::run_error::RunError;
use unflake_driver::session::Session;

use crate::Exit;
use crate::args::{ListArgs, ListFormat};
use crate::printable::{printable, printable_lines};
use crate::settings::Settings;

#[derive(Serialize)]
struct JsonList<'a> {
    schema: &'static str,
    framework: &'a str,
    language: &'a str,
    root: &'a str,
    tests: Vec<JsonListed<'a>>,
}

#[derive(Serialize)]
struct JsonListed<'a> {
    id: &'a str,
    copy: u32,
    file: &'a str,
    line: u32,
}

pub(crate) fn list(args: &ListArgs) -> anyhow::Result<Exit> {
    let wish = Settings::for_list(&args.project)?;
    let (sender, events) = channel::<Event>();
    let session = Session::new(wish, sender).map_err(RunError::from)?;
    let interrupter = session.interrupter();
    ctrlc::set_handler(move || interrupter.interrupt()).context("cannot listen for Ctrl-C")?;
    session.list()?;

    let mut stdout = std::io::stdout().lock();
    let mut exit = Exit::Clean;
    for event in events {
        match event {
            Event::Listed(listing) => {
                let text = match args.format {
                    ListFormat::Human => {
                        let names = listing.tests.iter().map(|test| printable(test.id.name()));
                        names.collect::<Vec<_>>().join("\n")
                    }
                    ListFormat::Json => to_json(&listing),
                };
                if !text.is_empty() {
                    writeln!(stdout, "{text}").context("cannot write the list")?;
                }
            }
            Event::CollectionFailed(error) => {
                let mut stderr = std::io::stderr();
                let place = printable(&error.place);
                let text = printable_lines(&error.text);
                writeln!(stderr, "ERROR collecting {place}\n{text}").context("cannot write")?;
                exit = Exit::Problems;
            }
            Event::VmStarted { .. }
            | Event::Noted(_)
            | Event::TrialStarted { .. }
            | Event::Prepared { .. }
            | Event::Unmatched { .. }
            | Event::TrialEnded(_)
            | Event::SuiteEnded { .. }
            | Event::Searching { .. }
            | Event::Detected { .. }
            | Event::Latent(_)
            | Event::SessionFailed { .. }
            | Event::Judged(_)
            | Event::Ended(_) => {}
        }
    }
    Ok(exit)
}

fn to_json(listing: &unflake_core::event::Listing) -> String {
    let tests = listing.tests.iter().map(|test| JsonListed {
        id: test.id.name(),
        copy: test.id.copy(),
        file: &test.file,
        line: test.line,
    });
    let list = JsonList {
        schema: "unflake.list/1",
        framework: &listing.framework,
        language: &listing.language,
        root: &listing.root,
        tests: tests.collect(),
    };
    serde_json::to_string_pretty(&list).expect("a list holds only text and numbers")
}
