//! `unflake next`: which tests to run again, the most telling first.

use std::time::Duration;

use serde::Serialize;
use unflake_core::quantify::period::Period;
use unflake_core::quantify::rerun_order::{Candidate, LEAST_SECONDS, RerunOrder, rank};
use unflake_core::quantify::sample::Sample;
use unflake_history::book::{Before, Entry};

use super::question::{Head, Question, to_json};
use super::rates::rest;
use super::unstable::to_prior;
use super::{next_run, replay, table};
use crate::Exit;
use crate::flags::history::{NextArgs, OrderArg};
use crate::view::printable::printable;
use crate::view::report::seconds as to_words;
use crate::view::stdout::print;

/// What a run is taken to cost where nobody has measured it: a test is quick until it was seen to be slow,
/// else one that is known to be quick would be run over and over before any other had its first turn.
const UNKNOWN_SECONDS: f64 = LEAST_SECONDS;

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    head: Head,
    order: &'static str,
    tests: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    test: String,
    copy: u32,
    /// By `binomial` the negative logarithm of the result's probability, by `information` nats a second.
    urgency: f64,
    /// How likely it is that it is broken now.
    broken_probability: f64,
    failures: u64,
    runs: u64,
    stable_rate: Option<f64>,
    seconds: Option<f64>,
}

pub(crate) fn next(args: &NextArgs) -> anyhow::Result<Exit> {
    let question = Question::open(&args.question)?;
    let mut entries = question.entries(Before::Sum)?;
    let order = to_order(args, &entries);
    if args.replay {
        return replay::replay(args, &question, &entries);
    }
    question.add_durations(&mut entries)?;
    if args.run {
        return next_run::run(args, question, &entries, order);
    }
    // A test that does not run any more may be gone.
    entries.retain(Entry::is_current);
    let period = question.periods.current.period;
    let candidates: Vec<Candidate> = entries
        .iter()
        .map(|entry| to_candidate(entry, period))
        .collect();
    let ranked = choose(&candidates, order, args.budget);
    let to_row =
        |(place, urgency): &(usize, f64)| to_row(&entries[*place], &candidates[*place], *urgency);
    let shown = &ranked[..question.shown(ranked.len())];
    let name = match args.order {
        OrderArg::Binomial => "binomial",
        OrderArg::Information => "information",
    };
    if question.is_json() {
        let answer = Answer {
            head: question.head("unflake.next/2"),
            order: name,
            tests: shown.iter().map(to_row).collect(),
        };
        print(&to_json(&answer))?;
    } else {
        let cells: Vec<Vec<String>> = shown.iter().map(|one| to_cells(&to_row(one))).collect();
        let mut text = question.opening();
        let told = format!("what to run next (--order {name})\n\n");
        text += &told;
        let head = ["broken?", "failed/runs", "was", "takes", "test"];
        text += &table::write(&head, &cells);
        text += &rest(ranked.len(), shown.len());
        print(&text)?;
    }
    Ok(Exit::Clean)
}

fn to_order(args: &NextArgs, entries: &[Entry]) -> RerunOrder {
    match args.order {
        OrderArg::Binomial => RerunOrder::Binomial(to_prior(args.prior, entries)),
        OrderArg::Information => RerunOrder::Information,
    }
}

/// A test as the orders see it.
pub(super) fn to_candidate(entry: &Entry, period: Period) -> Candidate {
    let seconds = entry.seconds.unwrap_or(UNKNOWN_SECONDS);
    Candidate::new(&entry.course, (period.first, period.last), seconds)
}

/// The places of the tests to run, with their urgencies; only as many as fit into the budget.
fn choose(
    candidates: &[Candidate],
    order: RerunOrder,
    budget: Option<Duration>,
) -> Vec<(usize, f64)> {
    let mut ranked = rank(candidates, order);
    if let Some(budget) = budget {
        let mut left = budget.as_secs_f64();
        ranked.retain(|(place, _)| {
            let fits = candidates[*place].seconds <= left;
            if fits {
                left -= candidates[*place].seconds;
            }
            fits
        });
    }
    ranked
}

fn to_row(entry: &Entry, candidate: &Candidate, urgency: f64) -> Row {
    Row {
        test: entry.name.name.clone(),
        copy: entry.name.copy,
        urgency,
        broken_probability: candidate.belief.broken_probability(),
        failures: candidate.current.failures(),
        runs: candidate.current.runs(),
        stable_rate: entry.course.baseline.rate(),
        seconds: entry.seconds,
    }
}

fn to_cells(row: &Row) -> Vec<String> {
    let unknown = || "–".to_owned();
    let sample = Sample::new(row.failures, row.runs);
    let takes = row.seconds.map(Duration::from_secs_f64);
    vec![
        table::percent(row.broken_probability),
        format!(
            "{}/{}",
            table::count(sample.failures()),
            table::count(sample.runs())
        ),
        row.stable_rate.map_or_else(unknown, table::percent),
        takes.map_or_else(unknown, to_words),
        printable(&row.test),
    ]
}
