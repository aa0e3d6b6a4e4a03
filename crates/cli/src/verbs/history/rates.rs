//! `unflake rates`: how often each test flakes, and how often it did in the baseline.

use serde::Serialize;
use unflake_core::chart::{Chart, Line};
use unflake_core::quantify::curve::share;
use unflake_core::quantify::interval::{Interval, wilson};
use unflake_core::quantify::quantile::quantile;
use unflake_core::quantify::sample::Sample;
use unflake_history::book::{Before, Entry};

use super::question::{Head, Question, plot, to_json};
use super::table;
use crate::Exit;
use crate::flags::history::{RatesArgs, SortArg};
use crate::view::printable::printable;
use crate::view::stdout::print;

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    head: Head,
    summary: Summary,
    tests: Vec<Row>,
    plot: Vec<JsonLine>,
}

/// All tests together: Table 2 of Rehman 2019, and the shares of 4.1.
#[derive(Serialize)]
struct Summary {
    tests: usize,
    runs: u64,
    flaky_failures: u64,
    rate: Option<Quartiles>,
    stable_rate: Option<Quartiles>,
    never_flaky: f64,
    under_5_of_100: f64,
    over_10_of_100: f64,
}

#[derive(Serialize)]
struct Quartiles {
    first: f64,
    median: f64,
    third: f64,
}

#[derive(Serialize)]
struct Row {
    test: String,
    copy: u32,
    runs: u64,
    flaky_failures: u64,
    rate: Option<f64>,
    low: f64,
    high: f64,
    stable_runs: u64,
    stable_flaky_failures: u64,
    stable_rate: Option<f64>,
}

#[derive(Serialize)]
pub(crate) struct JsonLine {
    name: String,
    points: Vec<(f64, f64)>,
}

/// The lines of a chart as data.
pub(crate) fn to_data(chart: &Chart) -> Vec<JsonLine> {
    let line = |line: &Line| JsonLine {
        name: line.name.clone(),
        points: line.points.clone(),
    };
    chart.lines.iter().map(line).collect()
}

pub(crate) fn rates(args: &RatesArgs) -> anyhow::Result<Exit> {
    let question = Question::open(&args.question)?;
    let mut entries = question.entries(Before::Sum)?;
    let stable = sorted_rates(&entries, |entry| entry.course.baseline);
    entries.retain(Entry::is_current);
    sort(&mut entries, args.sort);
    let now = sorted_rates(&entries, Entry::flaked);
    let chart = Chart {
        title: "Tests up to a flake rate".to_owned(),
        across: "flake rate".to_owned(),
        up: "share of tests".to_owned(),
        lines: vec![
            distribution("current", &now),
            distribution("stable", &stable),
        ],
        marks: Vec::new(),
        is_share: true,
    };
    let plot = plot(&chart, args.svg.as_deref())?;
    let summary = summarize(&entries, &now, &stable);
    let shown = &entries[..question.shown(entries.len())];
    if question.is_json() {
        let answer = Answer {
            head: question.head("unflake.rates/1"),
            summary,
            tests: shown.iter().map(|entry| to_row(entry, &question)).collect(),
            plot: to_data(&chart),
        };
        print(&to_json(&answer))?;
    } else {
        print(&write(&question, &summary, shown, entries.len(), &plot))?;
    }
    Ok(Exit::Clean)
}

fn sort(entries: &mut [Entry], key: SortArg) {
    let of = |sample: Sample| (sample.rate().unwrap_or(-1.0), sample.runs());
    let higher = |one: (f64, u64), other: (f64, u64)| {
        let by_rate = other.0.total_cmp(&one.0);
        by_rate.then(other.1.cmp(&one.1))
    };
    // The sort is stable, and the entries come in the order of their names.
    match key {
        SortArg::Rate => entries.sort_by(|a, b| higher(of(a.flaked()), of(b.flaked()))),
        SortArg::Stable => {
            entries.sort_by(|a, b| higher(of(a.course.baseline), of(b.course.baseline)));
        }
        SortArg::Runs => entries.sort_by_key(|entry| std::cmp::Reverse(entry.flaked().runs())),
        SortArg::Name => {}
    }
}

fn sorted_rates(entries: &[Entry], sample: impl Fn(&Entry) -> Sample) -> Vec<f64> {
    let mut rates: Vec<f64> = entries
        .iter()
        .filter_map(|one| sample(one).rate())
        .collect();
    rates.sort_by(f64::total_cmp);
    rates
}

/// The share of tests up to each rate: Fig. 3 and 4.
fn distribution(name: &str, sorted: &[f64]) -> Line {
    let points = (0..=200).map(|at| {
        let rate = f64::from(at) / 200.0;
        let up_to = sorted.partition_point(|one| *one <= rate);
        (rate, share(up_to, sorted.len()))
    });
    Line {
        name: name.to_owned(),
        points: points.collect(),
    }
}

fn summarize(entries: &[Entry], now: &[f64], stable: &[f64]) -> Summary {
    let quartiles = |sorted: &[f64]| {
        Some(Quartiles {
            first: quantile(sorted, 0.25)?,
            median: quantile(sorted, 0.5)?,
            third: quantile(sorted, 0.75)?,
        })
    };
    let part = |is_in: &dyn Fn(f64) -> bool| {
        let count = now.iter().filter(|rate| is_in(**rate)).count();
        share(count, now.len())
    };
    let samples = entries.iter().map(Entry::flaked);
    let all = samples.fold(Sample::default(), Sample::plus);
    Summary {
        tests: entries.len(),
        runs: all.runs(),
        flaky_failures: all.failures(),
        rate: quartiles(now),
        stable_rate: quartiles(stable),
        never_flaky: part(&|rate| rate <= 0.0),
        under_5_of_100: part(&|rate| rate < 0.05),
        over_10_of_100: part(&|rate| rate > 0.1),
    }
}

fn to_row(entry: &Entry, question: &Question) -> Row {
    let (now, stable) = (entry.flaked(), entry.course.baseline);
    let Interval { low, high } = wilson(now, question.level);
    Row {
        test: entry.name.name.clone(),
        copy: entry.name.copy,
        runs: now.runs(),
        flaky_failures: now.failures(),
        rate: now.rate(),
        low,
        high,
        stable_runs: stable.runs(),
        stable_flaky_failures: stable.failures(),
        stable_rate: stable.rate(),
    }
}

fn write(
    question: &Question,
    summary: &Summary,
    shown: &[Entry],
    all: usize,
    plot: &str,
) -> String {
    let mut text = question.opening();
    let quartiles = |name: &str, found: &Option<Quartiles>| match found {
        Some(found) => vec![
            format!("{:.4}", found.first),
            format!("{:.4}", found.median),
            format!("{:.4}", found.third),
            name.to_owned(),
        ],
        None => vec![
            "–".to_owned(),
            "–".to_owned(),
            "–".to_owned(),
            name.to_owned(),
        ],
    };
    let rows = [
        quartiles("flake rate", &summary.rate),
        quartiles("stable flake rate", &summary.stable_rate),
    ];
    text += &table::write(&["1st quartile", "median", "3rd quartile", ""], &rows);
    let told = format!(
        "\n{} tests, {} runs: {} never flaked, {} flaked in fewer than 5 of 100 runs, {} in more than 10\n\n",
        table::count(summary.tests as u64),
        table::count(summary.runs),
        table::percent(summary.never_flaky),
        table::percent(summary.under_5_of_100),
        table::percent(summary.over_10_of_100),
    );
    text += &told;
    text += plot;
    text += "\n\n";
    let level = format!("{:.0} % interval", question.level.share() * 100.0);
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|entry| to_cells(entry, question))
        .collect();
    text += &table::write(&["rate", &level, "flaky/runs", "stable", "test"], &rows);
    text + &rest(all, shown.len())
}

/// How many tests are not shown.
pub(crate) fn rest(all: usize, shown: usize) -> String {
    if shown >= all {
        return String::new();
    }
    let more = table::count((all - shown) as u64);
    format!("\n{more} more; -n 0 shows all\n")
}

fn to_cells(entry: &Entry, question: &Question) -> Vec<String> {
    let (now, stable) = (entry.flaked(), entry.course.baseline);
    let rate = |sample: Sample| sample.rate().map_or_else(|| "–".to_owned(), table::percent);
    let Interval { low, high } = wilson(now, question.level);
    vec![
        rate(now),
        format!("{:.1} – {:.1}", low * 100.0, high * 100.0),
        format!(
            "{}/{}",
            table::count(now.failures()),
            table::count(now.runs())
        ),
        rate(stable),
        printable(&entry.name.name),
    ]
}
