//! The binary `unflake`: flags and config in, reports and an exit code out.

mod config;
mod flags;
mod history;
mod quarantine;
mod settings;
mod verbs;
mod view;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::flags::args::{Args, Verb};

/// The meaning of the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// Nothing is wrong.
    Clean = 0,
    /// Real failures, or findings that the chosen policy does not forgive.
    Problems = 1,
    /// Bad usage or configuration.
    Usage = 2,
    /// The suite could not be run.
    CannotRun = 3,
    /// A bug in unflake.
    OurBug = 70,
    /// Interrupted by the user.
    Interrupted = 130,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match args.verb {
        Verb::Run(run_args) => verbs::run::run(&run_args),
        Verb::Triage(triage_args) => verbs::triage::triage(&triage_args),
        Verb::Nio(nio_args) => verbs::nio::nio(&nio_args),
        Verb::Order(order_args) => verbs::order::order(&order_args),
        Verb::Why(why_args) => verbs::why::why(&why_args),
        Verb::List(list_args) => verbs::list::list(&list_args),
        Verb::History(verb) => verbs::history::answer(&verb),
        Verb::Serve(serve_args) => verbs::serve::serve(&serve_args),
        Verb::Token(token_args) => verbs::serve::token(&token_args),
    };
    let exit = result.unwrap_or_else(|error| {
        let (text, exit) = view::explain::explain(&error);
        // With standard error gone there is no way left to say it; the exit code still does.
        drop(writeln!(std::io::stderr(), "{text}"));
        exit
    });
    ExitCode::from(exit as u8)
}
