//! `unflake why`: has a test traced until it has passed and failed often enough, and says what differs.

mod delays;
mod human;
mod json;
mod keeping;
mod steady;
mod words;

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use anyhow::Context;
use camino::Utf8PathBuf;
use indicatif::{ProgressBar, ProgressStyle};
use unflake_core::event::Event;
use unflake_core::sequential::Tally;
use unflake_core::why::category::Category;
use unflake_core::why::difference::{Difference, Spot};
use unflake_core::why::enough::is_enough;
use unflake_core::why::ledger::{Ledger, Side};
use unflake_core::why::paper::Label;
use unflake_core::why::predicate::Predicate;
use unflake_driver::lab::run_error::RunError;
use unflake_driver::lab::session::Session;
use unflake_driver::why::after_others::Beside;
use unflake_driver::why::delays::Fuzzed;
use unflake_driver::why::gather::{Failures, read_folders};
use unflake_driver::why::inquiry::{FuzzWish, Inquiry, Traces};

use crate::Exit;
use crate::flags::args::ListFormat;
use crate::flags::why::{RankArg, WhyArgs};
use crate::settings::Settings;
use crate::view::stdout::print;

/// The answer about a test.
struct Answer {
    /// `None` if traces were made elsewhere.
    test: Option<String>,
    /// The folder with the sources, if they are here.
    root: Option<Utf8PathBuf>,
    passing: u32,
    neither: u32,
    cut: u32,
    /// The number of traced runs that failed (hits) and passed.
    traced: Tally,
    /// The number of runs without tracing that failed (hits) and passed.
    plain: Tally,
    is_enough: bool,
    is_interrupted: bool,
    /// `None` if traces were made elsewhere.
    varies_hash_seed: Option<bool>,
    /// Its outcomes after the tests that stand before it, if that was tried.
    beside: Option<Beside>,
    /// The results of runs with delays, if there were any.
    fuzzed: Option<Fuzzed>,
    failures: Vec<Explained>,
}

impl Answer {
    /// Whether a run failed, with or without delays.
    fn has_failed(&self) -> bool {
        let fuzzed = self.fuzzed.as_ref();
        self.traced.hits > 0
            || self.plain.hits > 0
            || self.depends_on_order()
            || fuzzed.is_some_and(|fuzzed| fuzzed.culprits.is_some())
    }

    /// Whether it ends in another way after other tests than alone.
    fn depends_on_order(&self) -> bool {
        let alone = self.traced.and(self.plain);
        self.beside.is_some_and(|beside| beside.differs(alone))
    }

    /// Whether it always ends in the same way with tracing, and sometimes in the other way without.
    fn is_changed_by_tracing(&self) -> bool {
        self.traced.is_steady()
            && self.traced.runs() > 0
            && !self.traced.and(self.plain).is_steady()
    }
}

/// Failing runs that failed in the same way, and why.
struct Explained {
    message: String,
    runs: u32,
    /// Whether there were enough of them, and of passing ones, to tell chance from cause.
    is_enough: bool,
    ranked: Ranked,
}

/// The differences, in one of two orders.
enum Ranked {
    Ours {
        shown: Vec<Difference>,
        /// Calls that return something else from run to run by themselves.
        sources: Vec<Spot>,
        /// The number of differences in all.
        total: usize,
    },
    Paper {
        shown: Vec<(Label, Predicate)>,
        total: usize,
        ledger: Box<Ledger>,
    },
}

pub(crate) fn why(args: &WhyArgs) -> anyhow::Result<Exit> {
    let answer = if args.traces.is_empty() {
        investigate(args)?
    } else {
        compare(args)?
    };
    keeping::keep(args, &answer);
    let text = match args.format {
        ListFormat::Human => human::write(&answer),
        ListFormat::Json => json::write(&answer),
    };
    print(&text)?;
    Ok(if answer.is_interrupted {
        Exit::Interrupted
    } else if answer.has_failed() {
        Exit::Problems
    } else {
        Exit::Clean
    })
}

/// Runs the test.
fn investigate(args: &WhyArgs) -> anyhow::Result<Answer> {
    let mut wish = Settings::for_tracing(&args.project)?;
    wish.plan.timeout = args.timeout;
    let test = args.test.clone().unwrap_or_default();
    let inquiry = Inquiry {
        test: test.clone(),
        runs: args.runs,
        plain_runs: args.plain_runs,
        keep: args.keep.clone(),
        fuzz: match (args.fuzz, args.no_fuzz) {
            (true, _) => FuzzWish::Yes,
            (false, true) => FuzzWish::No,
            (false, false) => FuzzWish::IfNeeded,
        },
        seed: args.seed,
    };
    let (sender, events) = channel::<Event>();
    let session = Session::new(wish, sender).map_err(RunError::from)?;
    let interrupter = session.interrupter();
    ctrlc::set_handler(move || interrupter.interrupt()).context("cannot listen for Ctrl-C")?;
    let runs = u64::from(args.runs);
    let progress = thread::spawn(move || show_progress(&events, runs));
    let traces = session.trace(&inquiry);
    // The session is gone, and with it the sender: the thread ends by itself.
    drop(progress.join());
    let Traces {
        root,
        passing,
        neither,
        failures,
        cut,
        traced,
        plain,
        is_enough,
        is_interrupted,
        varies_hash_seed,
        beside,
        fuzzed,
    } = traces?;
    // Runs after other tests and runs with delays come after all others.
    let is_apart = beside.is_some_and(|beside| beside.differs(traced))
        || (fuzzed.as_ref()).is_some_and(|fuzzed| fuzzed.culprits.is_some());
    let mut answer = Answer {
        test: Some(test),
        root: Some(root),
        passing,
        neither,
        cut,
        traced,
        plain,
        is_enough,
        is_interrupted,
        varies_hash_seed: Some(varies_hash_seed),
        beside,
        fuzzed,
        failures: failures
            .into_iter()
            .map(|mut failures| {
                failures.ledger.is_apart = is_apart;
                explain(failures, args)
            })
            .collect(),
    };
    if answer.depends_on_order() {
        blame_order(&mut answer);
    }
    Ok(answer)
}

/// Calls every difference a matter of the order of tests: passing and failing runs differ in what ran before.
fn blame_order(answer: &mut Answer) {
    for failures in &mut answer.failures {
        if let Ranked::Ours { shown, .. } = &mut failures.ranked {
            for difference in shown {
                difference.category = Some(Category::TestOrder);
            }
        }
    }
}

/// Reads traces that were made elsewhere.
fn compare(args: &WhyArgs) -> anyhow::Result<Answer> {
    let (ledger, cut) = read_folders(&args.traces[0], &args.traces[1])?;
    let (passing, failing) = (ledger.runs(Side::Passing), ledger.runs(Side::Failing));
    let is_enough = is_enough(passing, failing, ledger.epochs());
    let failures = Failures {
        message: String::new(),
        runs: failing,
        ledger,
    };
    Ok(Answer {
        test: None,
        root: None,
        passing,
        neither: 0,
        cut,
        traced: Tally {
            hits: failing,
            misses: passing,
        },
        plain: Tally::default(),
        is_enough,
        is_interrupted: false,
        varies_hash_seed: None,
        beside: None,
        fuzzed: None,
        failures: vec![explain(failures, args)],
    })
}

fn explain(failures: Failures, args: &WhyArgs) -> Explained {
    let Failures {
        message,
        runs,
        ledger,
    } = failures;
    let (passing, failing) = (ledger.runs(Side::Passing), ledger.runs(Side::Failing));
    let is_enough = is_enough(passing, failing, ledger.epochs());
    let ranked = match args.rank {
        RankArg::Ours => {
            let mut shown = ledger.rank(&args.method);
            let total = shown.len();
            shown.truncate(args.top);
            let sources = ledger.varying_sources();
            Ranked::Ours {
                shown,
                total,
                sources,
            }
        }
        RankArg::Paper => {
            let mut shown = ledger.rank_as_paper(&args.method);
            let total = shown.len();
            shown.truncate(args.top);
            let ledger = Box::new(ledger);
            Ranked::Paper {
                shown,
                total,
                ledger,
            }
        }
    };
    Explained {
        message,
        runs,
        is_enough,
        ranked,
    }
}

/// Counts runs on a terminal while they are made.
fn show_progress(events: &Receiver<Event>, runs: u64) {
    let bar = if std::io::stderr().is_terminal() {
        ProgressBar::new(runs)
    } else {
        ProgressBar::hidden()
    };
    let style = ProgressStyle::with_template("{bar:30} {pos} of at most {len} runs: {wide_msg}");
    bar.set_style(style.expect("a fixed template"));
    let (mut passed, mut failed) = (0, 0);
    for event in events {
        if let Event::TrialEnded(trial) = event {
            passed += u32::from(trial.outcome.is_pass());
            failed += u32::from(trial.outcome.is_failure());
            bar.inc(1);
            // Runs without tracing and with delays come on top.
            bar.set_length(runs.max(bar.position()));
            bar.set_message(format!("{passed} passed, {failed} failed"));
        }
    }
    bar.finish_and_clear();
}
