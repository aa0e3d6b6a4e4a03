//! Small drawings of a test: its last runs as a strip, and its rate as a line.

use std::fmt::Write;

use unflake_core::chart::{Chart, Line};
use unflake_core::quantify::curve::share;
use unflake_core::quantify::sample::Day;

use crate::board::one_test::{DayShown, OneTest, Shown};
use crate::page::words;

/// Over so many days a rate is taken together: single days have few runs.
const WINDOW: usize = 7;

/// The last runs as a strip, the oldest on the left. Failures are taller, so that grey suffices.
pub(crate) fn strip(runs: &[Shown]) -> String {
    let width = 6;
    let total = runs.len().max(1) * width;
    let failed = runs.iter().filter(|run| to_bar(run).0 == "fail").count();
    let mut svg = format!(
        "<svg class=\"strip\" viewBox=\"0 0 {total} 40\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"the last {} runs, the oldest first; {failed} failed\">",
        runs.len()
    );
    for (place, run) in runs.iter().rev().enumerate() {
        let (class, y, height) = to_bar(run);
        let rerun = if run.attempt == 1 { "" } else { " rerun" };
        // Writing into a string cannot fail.
        let _ = write!(
            svg,
            "<rect class=\"{class}{rerun}\" x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{height}\"><title>{}</title></rect>",
            place * width,
            width - 1,
            words::escape(&describe(run))
        );
    }
    svg.push_str("</svg>");
    svg
}

/// The class, the top and the height of a run's bar.
fn to_bar(run: &Shown) -> (&'static str, u32, u32) {
    match run.outcome.as_str() {
        "passed" | "xpassed" => ("pass", 20, 20),
        "failed" | "error" | "timeout" | "crashed" => ("fail", 0, 40),
        _ => ("skip", 32, 8),
    }
}

fn describe(run: &Shown) -> String {
    let mut text = format!("{}: {}", words::moment(run.time), run.outcome);
    if run.attempt > 1 {
        let _ = write!(text, " (rerun {})", run.attempt - 1);
    }
    for part in [&run.environment, &run.job, &run.revision] {
        if !part.is_empty() {
            let _ = write!(text, ", {part}");
        }
    }
    text
}

/// The share of failures over the days, with the day on which it changed.
pub(crate) fn rate_chart(test: &OneTest) -> Option<Chart> {
    let first = test.days.first()?.number;
    let rolling = |count: fn(&DayShown) -> u32| {
        let windows = (0..test.days.len()).map(move |at| {
            let from = (at + 1).saturating_sub(WINDOW);
            let window = &test.days[from..=at];
            let runs: u32 = window.iter().map(|day| day.runs).sum();
            let found: u32 = window.iter().map(count).sum();
            let x = f64::from(test.days[at].number - first);
            (x, share(found as usize, runs as usize))
        });
        windows.collect::<Vec<(f64, f64)>>()
    };
    let marks = test.change.iter().map(|change| {
        let at = f64::from(change.number - first);
        (at, format!("changed {}", change.day))
    });
    Some(Chart {
        title: format!("Share of runs that failed, over {WINDOW} days with runs"),
        across: format!("days since {}", test.days[0].day),
        up: "share of runs".to_owned(),
        lines: vec![
            Line {
                name: "failed".to_owned(),
                points: rolling(|day| day.failures),
            },
            Line {
                name: "flaky".to_owned(),
                points: rolling(|day| day.flaky_failures),
            },
        ],
        marks: marks.collect(),
        is_share: true,
    })
}

/// The days of a test as a line of bars: as tall as the share of failures.
pub(crate) fn spark(days: &[Day]) -> String {
    let width = 5;
    let shown = &days[days.len().saturating_sub(14)..];
    let mut svg = format!(
        "<svg class=\"spark\" viewBox=\"0 0 {} 20\" role=\"img\" aria-label=\"share of failures by day\">",
        14 * width
    );
    for (place, day) in shown.iter().enumerate() {
        let rate = share(day.failures as usize, day.runs as usize);
        let height = if day.failures == 0 {
            1.5
        } else {
            2.0 + rate * 18.0
        };
        let class = if day.failures == 0 { "pass" } else { "fail" };
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{}\" y=\"{:.1}\" width=\"{}\" height=\"{height:.1}\"><title>{}: {} of {} failed</title></rect>",
            place * width,
            20.0 - height,
            width - 1,
            unflake_history::dates::to_text(day.day),
            day.failures,
            day.runs
        );
    }
    svg.push_str("</svg>");
    svg
}
