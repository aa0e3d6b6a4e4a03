//! `unflake list`: the tests as the framework finds them, one a line.

use std::io::Write;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use serde::Serialize;
use unflake_core::event::{Event, Listing};
use unflake_driver::lab::run_error::RunError;
use unflake_driver::lab::session::Session;
use unflake_driver::vm::interrupter::Interrupter;

use crate::Exit;
use crate::flags::args::{ListArgs, ListFormat};
use crate::settings::Settings;
use crate::view::printable::{printable, printable_lines};
use crate::view::stdout::print;

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
    let wishes = Settings::for_list(&args.project)?;
    let (sender, events) = channel::<Event>();
    let current = Arc::new(Mutex::new(None::<Interrupter>));
    let stopped = Arc::clone(&current);
    let stop = move || {
        if let Some(interrupter) = &*stopped.lock().expect("nobody panics with it") {
            interrupter.interrupt();
        }
    };
    ctrlc::set_handler(stop).context("cannot listen for Ctrl-C")?;
    for wish in wishes {
        let session = Session::new(wish, sender.clone()).map_err(RunError::from)?;
        *current.lock().expect("nobody panics with it") = Some(session.interrupter());
        session.list()?;
    }
    drop(sender);

    let mut exit = Exit::Clean;
    let mut listed: Option<Listing> = None;
    for event in events {
        match event {
            Event::Listed(listing) => match &mut listed {
                Some(listed) => listed.tests.extend(listing.tests),
                None => listed = Some(listing),
            },
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
            | Event::Blaming { .. }
            | Event::Detected { .. }
            | Event::CulpritFound { .. }
            | Event::Latent(_)
            | Event::SessionFailed { .. }
            | Event::Judged(_)
            | Event::Ended(_) => {}
        }
    }
    let Some(listing) = listed else {
        return Ok(exit);
    };
    let text = match args.format {
        ListFormat::Human => {
            let names = listing.tests.iter().map(|test| printable(test.id.name()));
            names.collect::<Vec<_>>().join("\n")
        }
        ListFormat::Json => to_json(&listing),
    };
    if !text.is_empty() {
        print(&text)?;
    }
    Ok(exit)
}

fn to_json(listing: &Listing) -> String {
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
