//! The binary `unflake`: flags and config in, reports and an exit code out.

mod args;
mod config;
mod console;
mod experiment_args;
mod explain;
mod history;
mod history_args;
mod list;
mod nio;
mod order;
mod printable;
mod quarantine;
mod repeat;
mod report;
mod run;
mod serve;
mod serve_args;
mod settings;
mod stdout;
mod triage;
mod why;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Verb};

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
        Verb::Run(run_args) => run::run(&run_args),
        Verb::Triage(triage_args) => triage::triage(&triage_args),
        Verb::Nio(nio_args) => nio::nio(&nio_args),
        Verb::Order(order_args) => order::order(&order_args),
        Verb::Why(why_args) => why::why(&why_args),
        Verb::List(list_args) => list::list(&list_args),
        Verb::History(verb) => history::answer(&verb),
        Verb::Serve(serve_args) => serve::serve(&serve_args),
        Verb::Token(token_args) => serve::token(&token_args),
    };
    let exit = result.unwrap_or_else(|error| {
        let (text, exit) = explain::explain(&error);
        // With standard error gone there is no way left to say it; the exit code still does.
        drop(writeln!(std::io::stderr(), "{text}"));
        exit
    });
    ExitCode::from(exit as u8)
}
