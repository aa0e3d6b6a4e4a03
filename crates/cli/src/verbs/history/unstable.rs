//! `unflake unstable`: which tests fail more often than they used to, and since when.

use serde::Serialize;
use unflake_core::chart::Chart;
use unflake_core::quantify::change_point::ChangePoint;
use unflake_core::quantify::curve::{cumulative, difference, share};
use unflake_core::quantify::prior::Prior;
use unflake_core::quantify::sample::Sample;
use unflake_core::quantify::unstable::{Course, Instability, Mode, examine, when};
use unflake_history::book::{Before, Entry};
use unflake_history::dates;

use super::question::{Head, Question, plot, to_json};
use super::rates::{JsonLine, rest, to_data};
use super::table;
use crate::Exit;
use crate::flags::history::{ModeArg, PriorArg, UnstableArgs};
use crate::view::printable::printable;
use crate::view::stdout::print;

/// A day in milliseconds.
const DAY: i64 = 86_400_000;

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    head: Head,
    mode: &'static str,
    summary: Summary,
    tests: Vec<Row>,
    plot: Vec<JsonLine>,
}

#[derive(Serialize)]
struct Summary {
    tests: usize,
    without_baseline: usize,
    failed: usize,
    unstable: usize,
    /// Of the tests that failed and have a baseline, the share that need not be looked into (RQ4).
    saved: f64,
    /// How many these are.
    #[serde(skip)]
    judged: usize,
}

#[derive(Serialize)]
struct Row {
    test: String,
    copy: u32,
    p_value: f64,
    flagged: String,
    failures: u64,
    runs: u64,
    stable_failures: u64,
    stable_runs: u64,
    change: Option<Change>,
}

/// When the rate changed.
#[derive(Serialize)]
struct Change {
    day: String,
    earliest: String,
    latest: String,
    before: f64,
    after: f64,
    /// The revisions that first ran between `earliest` and `latest`.
    revisions: Vec<String>,
}

pub(crate) fn to_prior(prior: PriorArg, entries: &[Entry]) -> Prior {
    match prior {
        PriorArg::None => Prior::None,
        PriorArg::Jeffreys => Prior::Jeffreys,
        PriorArg::Pooled => {
            let samples = entries.iter().map(|entry| entry.course.baseline);
            let all = samples.fold(Sample::default(), Sample::plus);
            Prior::Pooled {
                rate: all.rate().unwrap_or(0.0),
            }
        }
    }
}

pub(crate) fn unstable(args: &UnstableArgs) -> anyhow::Result<Exit> {
    let question = Question::open(&args.question)?;
    let mut entries = question.entries(Before::Days)?;
    let mode = match args.mode {
        ModeArg::Paper => Mode::Paper(to_prior(args.prior, &entries)),
        ModeArg::Fdr => Mode::Fdr,
        ModeArg::Sequential => Mode::Sequential,
    };
    let courses: Vec<Course> = entries
        .iter_mut()
        .map(|entry| std::mem::replace(&mut entry.course, empty()))
        .collect();
    let found = examine(&courses, mode, question.level);
    let chart = to_chart(&question, &courses, &found);
    let plot = plot(&chart, args.svg.as_deref())?;
    let mut flagged: Vec<usize> = (0..found.len())
        .filter(|at| found[*at].flagged.is_some())
        .collect();
    flagged.sort_by(|one, other| found[*one].p_value.total_cmp(&found[*other].p_value));
    let summary = summarize(&courses, &found);
    let shown = &flagged[..question.shown(flagged.len())];
    let mut rows: Vec<Row> = Vec::new();
    let mut changes: Vec<Option<ChangePoint>> = Vec::new();
    for at in shown {
        let (row, change) = to_row(&entries[*at], &courses[*at], found[*at], &question);
        rows.push(row);
        changes.push(change);
    }
    add_revisions(&question, &mut rows, &changes)?;
    let mode = match args.mode {
        ModeArg::Paper => "paper",
        ModeArg::Fdr => "fdr",
        ModeArg::Sequential => "sequential",
    };
    let exit = if flagged.is_empty() {
        Exit::Clean
    } else {
        Exit::Problems
    };
    if question.is_json() {
        let answer = Answer {
            head: question.head("unflake.unstable/1"),
            mode,
            summary,
            tests: rows,
            plot: to_data(&chart),
        };
        print(&to_json(&answer))?;
    } else {
        print(&write(&question, &summary, &rows, mode, &plot))?;
    }
    Ok(exit)
}

fn empty() -> Course {
    Course {
        baseline: Sample::default(),
        days: Vec::new(),
    }
}

/// Fig. 6, 7 and 8 of Rehman 2019 in one.
fn to_chart(question: &Question, courses: &[Course], found: &[Instability]) -> Chart {
    let period = question.periods.current.period;
    let first_failure = |course: &Course| {
        course
            .days
            .iter()
            .find(|day| day.failures > 0)
            .map(|day| day.day)
    };
    let failed: Vec<i32> = courses.iter().filter_map(first_failure).collect();
    let flagged: Vec<i32> = found.iter().filter_map(|one| one.flagged).collect();
    let total = courses
        .iter()
        .filter(|course| !course.days.is_empty())
        .count();
    let failed = cumulative("failed", period, &failed, total);
    let flagged = cumulative("unstable", period, &flagged, total);
    let saved = difference("saved", &failed, &flagged);
    Chart {
        title: "Tests that failed, and that became unstable".to_owned(),
        across: "days since the period began".to_owned(),
        up: "share of tests".to_owned(),
        lines: vec![failed, flagged, saved],
        marks: Vec::new(),
        is_share: true,
    }
}

fn summarize(courses: &[Course], found: &[Instability]) -> Summary {
    let both = courses.iter().zip(found);
    let ran = both.filter(|(course, _)| !course.days.is_empty());
    let is_new = |course: &Course| course.baseline.runs() == 0;
    let has_failed = |course: &Course| course.current().failures() > 0;
    // A failure without a baseline may well need a look.
    let judged = ran
        .clone()
        .filter(|(course, _)| has_failed(course) && !is_new(course));
    let stable = judged.clone().filter(|(_, one)| one.flagged.is_none());
    Summary {
        tests: ran.clone().count(),
        without_baseline: ran.clone().filter(|(course, _)| is_new(course)).count(),
        failed: ran.filter(|(course, _)| has_failed(course)).count(),
        unstable: found.iter().filter(|one| one.flagged.is_some()).count(),
        saved: share(stable.count(), judged.clone().count()),
        judged: judged.count(),
    }
}

fn to_row(
    entry: &Entry,
    course: &Course,
    found: Instability,
    question: &Question,
) -> (Row, Option<ChangePoint>) {
    let flagged = found.flagged.unwrap_or_default();
    let change = when(course, &entry.before, flagged, question.level);
    let current = course.current();
    let named = change.map(|change| Change {
        day: dates::to_text(change.day),
        earliest: dates::to_text(change.earliest),
        latest: dates::to_text(change.latest),
        before: change.before.rate().unwrap_or(0.0),
        after: change.after.rate().unwrap_or(0.0),
        revisions: Vec::new(),
    });
    let row = Row {
        test: entry.name.name.clone(),
        copy: entry.name.copy,
        p_value: found.p_value,
        flagged: dates::to_text(flagged),
        failures: current.failures(),
        runs: current.runs(),
        stable_failures: course.baseline.failures(),
        stable_runs: course.baseline.runs(),
        change: named,
    };
    (row, change)
}

/// Names the revisions that first ran while each test changed.
fn add_revisions(
    question: &Question,
    rows: &mut [Row],
    changes: &[Option<ChangePoint>],
) -> anyhow::Result<()> {
    let known = || changes.iter().flatten();
    let (Some(first), Some(last)) = (
        known().map(|change| change.earliest).min(),
        known().map(|change| change.latest).max(),
    ) else {
        return Ok(());
    };
    let (from, to) = (i64::from(first) * DAY, i64::from(last + 1) * DAY - 1);
    let revisions = question
        .store
        .revisions(&question.periods.current.streams, from, to)?;
    for (row, change) in rows.iter_mut().zip(changes) {
        if let (Some(named), Some(change)) = (&mut row.change, change) {
            let span = i64::from(change.earliest) * DAY..i64::from(change.latest + 1) * DAY;
            let during = revisions.iter().filter(|(_, time)| span.contains(time));
            named.revisions = during.map(|(revision, _)| revision.clone()).collect();
        }
    }
    Ok(())
}

fn write(question: &Question, summary: &Summary, rows: &[Row], mode: &str, plot: &str) -> String {
    let mut text = question.opening();
    text += plot;
    let told = format!(
        "\n\n{} of {} tests failed, {} became unstable (--mode {mode})",
        table::count(summary.failed as u64),
        table::count(summary.tests as u64),
        table::count(summary.unstable as u64),
    );
    text += &told;
    if summary.judged > 0 {
        let saved = table::percent(summary.saved);
        let whose = if summary.judged == summary.failed {
            "those that failed"
        } else {
            "those that failed and have a baseline"
        };
        let told = format!(": by that rule {saved} of {whose} need no look");
        text += &told;
    }
    if summary.without_baseline > 0 {
        let new = table::count(summary.without_baseline as u64);
        let told = format!("; {new} have no baseline, and nothing is said of them");
        text += &told;
    }
    text += "\n";
    if rows.is_empty() {
        return text;
    }
    let cells: Vec<Vec<String>> = rows.iter().map(to_cells).collect();
    let head = ["p", "was", "failed/runs", "flagged", "changed", "test"];
    text += "\n";
    text += &table::write(&head, &cells);
    text + &rest(summary.unstable, rows.len())
}

fn to_cells(row: &Row) -> Vec<String> {
    let stable = Sample::new(row.stable_failures, row.stable_runs);
    let between = row.change.as_ref().map_or_else(
        || "–".to_owned(),
        |change| {
            let revisions = match change.revisions.as_slice() {
                [] => String::new(),
                [one] => format!(" ({})", short(one)),
                [first, .., last] => format!(" ({}..{})", short(first), short(last)),
            };
            if change.earliest == change.latest {
                format!("{}{revisions}", change.day)
            } else {
                format!("{} – {}{revisions}", change.earliest, change.latest)
            }
        },
    );
    vec![
        table::p_value(row.p_value),
        stable.rate().map_or_else(|| "–".to_owned(), table::percent),
        format!("{}/{}", table::count(row.failures), table::count(row.runs)),
        row.flagged.clone(),
        between,
        printable(&row.test),
    ]
}

fn short(revision: &str) -> String {
    printable(&revision.chars().take(10).collect::<String>())
}
