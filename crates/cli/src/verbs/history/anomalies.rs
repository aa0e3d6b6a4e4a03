//! `unflake anomalies`: `FlakeFinder`'s list for the morning (Rehman 2019, 5.1).

use serde::Serialize;
use unflake_core::quantify::anomaly::{Anomaly, BASELINE_DAYS, examine};
use unflake_core::quantify::period::Period;
use unflake_history::book::{Before, Entry};
use unflake_history::dates;

use super::question::{Head, Question, to_json};
use super::rates::rest;
use super::table;
use crate::Exit;
use crate::flags::history::AnomaliesArgs;
use crate::view::printable::printable;
use crate::view::stdout::print;

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    head: Head,
    day: String,
    potential_product_faults: usize,
    potential_flaky_failures: usize,
    tests: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    test: String,
    copy: u32,
    rate: f64,
    limit: f64,
    baseline_days: usize,
    magnitude: f64,
    is_anomaly: bool,
}

pub(crate) fn anomalies(args: &AnomaliesArgs) -> anyhow::Result<Exit> {
    let mut question = Question::open(&args.question)?;
    // The last day of the period, and the 30 days before it, whatever else is asked for.
    let today = question.periods.current.period.last;
    let days = Period {
        first: today - BASELINE_DAYS,
        last: today,
    };
    question.periods.current.period = days;
    question.periods.named.current.from = dates::to_text(days.first);
    let entries = question.entries(Before::Sum)?;
    let found = entries.iter().filter_map(|entry| {
        let anomaly = examine(&entry.course.days, today)?;
        Some((entry, anomaly))
    });
    let mut found: Vec<(&Entry, Anomaly)> = found.collect();
    found.sort_by(|one, other| other.1.magnitude().total_cmp(&one.1.magnitude()));
    let faults = found.iter().filter(|(_, one)| one.is_anomaly()).count();
    let shown = &found[..question.shown(found.len())];
    if question.is_json() {
        let answer = Answer {
            head: question.head("unflake.anomalies/1"),
            day: dates::to_text(today),
            potential_product_faults: faults,
            potential_flaky_failures: found.len() - faults,
            tests: shown.iter().map(to_row).collect(),
        };
        print(&to_json(&answer))?;
    } else {
        print(&write(today, faults, shown, found.len()))?;
    }
    Ok(if faults > 0 {
        Exit::Problems
    } else {
        Exit::Clean
    })
}

fn to_row((entry, anomaly): &(&Entry, Anomaly)) -> Row {
    Row {
        test: entry.name.name.clone(),
        copy: entry.name.copy,
        rate: anomaly.current,
        limit: anomaly.limit,
        baseline_days: anomaly.days,
        magnitude: anomaly.magnitude(),
        is_anomaly: anomaly.is_anomaly(),
    }
}

fn write(today: i32, faults: usize, shown: &[(&Entry, Anomaly)], all: usize) -> String {
    let day = dates::to_text(today);
    if all == 0 {
        return format!("no test failed on {day}\n");
    }
    let mut text = format!(
        "{day}: potential product faults: {}, potential flaky failures: {}\n\
         a failure stands out if its share of the day's runs is above the 95th percentile of the {BASELINE_DAYS} \
         days before\n",
        table::count(faults as u64),
        table::count((all - faults) as u64),
    );
    let parts = [
        (true, "potential product faults"),
        (false, "potential flaky failures"),
    ];
    for (is_anomaly, title) in parts {
        let of_part = shown
            .iter()
            .filter(|(_, one)| one.is_anomaly() == is_anomaly);
        let rows: Vec<Vec<String>> = of_part
            .map(|(entry, one)| {
                vec![
                    format!("{:.0} %", one.magnitude().max(0.0) * 100.0),
                    table::percent(one.current),
                    table::percent(one.limit),
                    one.days.to_string(),
                    printable(&entry.name.name),
                ]
            })
            .collect();
        if !rows.is_empty() {
            let head = ["priority", "failed", "limit", "days", title];
            text += "\n";
            text += &table::write(&head, &rows);
        }
    }
    text + &rest(all, shown.len())
}
