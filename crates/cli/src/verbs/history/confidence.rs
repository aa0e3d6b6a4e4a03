//! `unflake confidence`: how many runs it takes to trust a test, and how far its runs let us.

use serde::Serialize;
use unflake_core::chart::Chart;
use unflake_core::quantify::curve::{cumulative, share};
use unflake_core::quantify::needed::{Aim, confidence as reached, runs, runs_by_wilson};
use unflake_core::quantify::normal::cumulative as level_of;
use unflake_core::quantify::sample::to_float;
use unflake_history::book::{Before, Entry};

use super::question::{Head, Question, plot, to_json};
use super::rates::{JsonLine, rest, to_data};
use super::table;
use crate::Exit;
use crate::flags::history::ConfidenceArgs;
use crate::view::printable::printable;
use crate::view::stdout::print;

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    head: Head,
    z: f64,
    margin: f64,
    summary: Summary,
    tests: Vec<Row>,
    plot: Vec<JsonLine>,
}

#[derive(Serialize)]
struct Summary {
    tests: usize,
    without_baseline: usize,
    /// The share of tests with a baseline that have been run often enough by Eq. 7, and by Wilson's interval.
    enough: f64,
    enough_by_wilson: f64,
    runs_still_needed: f64,
}

#[derive(Clone, Serialize)]
struct Row {
    test: String,
    copy: u32,
    stable_rate: Option<f64>,
    runs: u64,
    needed: Option<f64>,
    needed_by_wilson: Option<f64>,
    confidence: Option<f64>,
    reached_on: Option<i32>,
}

pub(crate) fn confidence(args: &ConfidenceArgs) -> anyhow::Result<Exit> {
    let question = Question::open(&args.question)?;
    let mut entries = question.entries(Before::Sum)?;
    entries.retain(Entry::is_current);
    let aim = if args.paper {
        Aim::PAPER
    } else {
        Aim::at(question.level, args.margin)
    };
    let mut rows: Vec<Row> = entries.iter().map(|entry| examine(entry, aim)).collect();
    let days: Vec<i32> = rows.iter().filter_map(|row| row.reached_on).collect();
    let known = rows.iter().filter(|row| row.stable_rate.is_some()).count();
    let period = question.periods.current.period;
    let title = format!(
        "Tests run often enough for {}",
        table::percent(level_of(aim.z))
    );
    let chart = Chart {
        title,
        across: "days since the period began".to_owned(),
        up: "share of tests".to_owned(),
        lines: vec![cumulative("enough runs", period, &days, known)],
        marks: Vec::new(),
        is_share: true,
    };
    let plot = plot(&chart, args.svg.as_deref())?;
    let summary = summarize(&rows, known);
    // Those that lack most come first.
    let lack = |row: &Row| row.needed.unwrap_or(0.0) - to_float(row.runs);
    rows.sort_by(|one, other| lack(other).total_cmp(&lack(one)));
    let shown = &rows[..question.shown(rows.len())];
    if question.is_json() {
        let answer = Answer {
            head: question.head("unflake.confidence/1"),
            z: aim.z,
            margin: aim.margin,
            summary,
            tests: shown.to_vec(),
            plot: to_data(&chart),
        };
        print(&to_json(&answer))?;
    } else {
        print(&write(&question, &summary, shown, rows.len(), &plot))?;
    }
    Ok(Exit::Clean)
}

fn examine(entry: &Entry, aim: Aim) -> Row {
    let stable = entry.course.baseline.rate();
    let current = entry.course.current().runs();
    let needed = stable.map(|rate| runs(rate, aim));
    let mut so_far = 0;
    let day = needed.and_then(|needed| {
        let enough = entry.course.days.iter().find(|day| {
            so_far += u64::from(day.runs);
            to_float(so_far) >= needed
        });
        enough.map(|day| day.day)
    });
    Row {
        test: entry.name.name.clone(),
        copy: entry.name.copy,
        stable_rate: stable,
        runs: current,
        needed,
        needed_by_wilson: stable.map(|rate| runs_by_wilson(rate, aim)),
        confidence: stable.map(|rate| reached(current, rate, aim.margin)),
        reached_on: day,
    }
}

fn summarize(rows: &[Row], known: usize) -> Summary {
    let enough = rows.iter().filter(|row| row.reached_on.is_some()).count();
    let by_wilson = rows.iter().filter(|row| {
        let needed = row.needed_by_wilson;
        needed.is_some_and(|needed| to_float(row.runs) >= needed)
    });
    let lack = rows.iter().filter_map(|row| {
        let needed = row.needed_by_wilson?;
        Some((needed.ceil() - to_float(row.runs)).max(0.0))
    });
    Summary {
        tests: rows.len(),
        without_baseline: rows.len() - known,
        enough: share(enough, known),
        enough_by_wilson: share(by_wilson.count(), known),
        runs_still_needed: lack.sum(),
    }
}

fn write(question: &Question, summary: &Summary, shown: &[Row], all: usize, plot: &str) -> String {
    let mut text = question.opening();
    text += plot;
    let told = format!(
        "\n\n{} of {} tests have been run often enough by Eq. 7, {} by Wilson's interval",
        table::percent(summary.enough),
        table::count((summary.tests - summary.without_baseline) as u64),
        table::percent(summary.enough_by_wilson),
    );
    text += &told;
    if summary.without_baseline > 0 {
        let new = table::count(summary.without_baseline as u64);
        let told = format!("; {new} have no baseline");
        text += &told;
    }
    text += "\n\n";
    let number = |value: Option<f64>| {
        value.map_or_else(|| "–".to_owned(), |value| format!("{:.0}", value.ceil()))
    };
    let percent = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), table::percent);
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|row| {
            vec![
                percent(row.stable_rate),
                table::count(row.runs),
                number(row.needed),
                number(row.needed_by_wilson),
                percent(row.confidence),
                printable(&row.test),
            ]
        })
        .collect();
    let head = [
        "stable",
        "runs",
        "needed",
        "by Wilson",
        "confidence",
        "test",
    ];
    text += &table::write(&head, &rows);
    text + &rest(all, shown.len())
}
