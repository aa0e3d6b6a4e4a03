//! What delays have shown, for people and as JSON.

use serde_json::{Value, json};
use unflake_core::sequential::Tally;
use unflake_core::why::difference::{Difference, Spot};
use unflake_core::why::fuzz::{Culprits, Moment, Point};
use unflake_driver::why::delays::Fuzzed;

use crate::verbs::why::human::source;
use crate::verbs::why::json::spot;
use crate::verbs::why::words::{thread, time};
use crate::verbs::why::{Answer, Ranked};
use crate::view::printable::printable;
use crate::view::report::plural;

/// The delays that make the test fail, and the two places that race.
pub(super) fn tell(fuzzed: &Fuzzed, answer: &Answer) -> Vec<String> {
    let runs = plural(fuzzed.runs as usize, "run", "runs");
    let points = plural(fuzzed.points, "place", "places");
    let Some(culprits) = &fuzzed.culprits else {
        let what = format!(
            "Delays made no difference either: {runs} with delays of threads and tasks at {points}."
        );
        return vec![what];
    };
    let Culprits { delays, tally, .. } = culprits;
    let Tally { hits, .. } = *tally;
    let length = time(f64::from(delays.milliseconds) * 1000.0);
    let count = plural(delays.points.len(), "delay", "delays");
    let mut lines = vec![
        String::new(),
        format!(
            "It fails in {hits} of {} with {count} of {length}, and in none of {} without:",
            plural(tally.runs() as usize, "run", "runs"),
            fuzzed.without.runs()
        ),
    ];
    for point in &delays.points {
        lines.push(format!("   {}", place(point)));
        let root = answer.root.iter();
        lines.extend(root.flat_map(|root| source(root, &point.file, point.line)));
    }
    if !culprits.is_fewest {
        lines.push(
            "   Fewer delays may be enough: no runs were left to try that (--runs).".to_owned(),
        );
    }
    if let Some((one, other)) = race(answer) {
        let call = |spot: &Spot| {
            let site = &spot.site;
            format!(
                "`{}` in {}",
                printable(&site.callee),
                printable(&site.to_string())
            )
        };
        lines.push(format!(
            "The two places that race: {} and {}.",
            call(&one),
            call(&other)
        ));
    }
    lines.push(format!(
        "(Found in {runs} with delays at {points}, by --seed {}.)",
        fuzzed.seed
    ));
    lines
}

/// The two places of the strongest difference in the order of threads.
fn race(answer: &Answer) -> Option<(Spot, Spot)> {
    let failures = answer.failures.first()?;
    let Ranked::Ours { shown, .. } = &failures.ranked else {
        return None;
    };
    let pair = |one: &Difference| Some((one.spot.clone(), one.other.clone()?));
    shown.iter().find_map(pair)
}

fn place(point: &Point) -> String {
    let callee = printable(&point.callee);
    let when = match point.moment {
        Moment::Before => format!("before `{callee}`"),
        Moment::After => format!("after `{callee}`"),
        Moment::Entry => format!("when the thread begins with `{callee}`"),
    };
    let thread = thread(&point.thread).map_or_else(String::new, |thread| format!(", in {thread}"));
    format!("{}:{}: {when}{thread}", printable(&point.file), point.line)
}

pub(super) fn json(fuzzed: &Fuzzed, answer: &Answer) -> Value {
    let tally = |tally: Tally| json!({"failed": tally.hits, "passed": tally.misses});
    let point = |point: &Point| {
        json!({
            "thread": point.thread,
            "file": point.file,
            "line": point.line,
            "column": point.column,
            "when": point.moment.label(),
            "callee": point.callee,
        })
    };
    let culprits = fuzzed.culprits.as_ref().map(|culprits| {
        json!({
            "milliseconds": culprits.delays.milliseconds,
            "delays": culprits.delays.points.iter().map(point).collect::<Vec<Value>>(),
            "with": tally(culprits.tally),
            "without": tally(fuzzed.without),
            "fewest": culprits.is_fewest,
        })
    });
    let race = race(answer).map(|(one, other)| json!([spot(&one), spot(&other)]));
    json!({
        "seed": fuzzed.seed,
        "runs": fuzzed.runs,
        "places": fuzzed.points,
        "found": culprits,
        "race": race,
    })
}
