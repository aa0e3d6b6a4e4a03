//! The answer of `unflake why` as JSON: `unflake.why/1`, as `docs/json.md` describes it.

use serde_json::{Value, json};
use unflake_core::sequential::Tally;
use unflake_core::why::category::Category;
use unflake_core::why::difference::{Difference, Spot};

use crate::verbs::why::steady::rarest;
use crate::verbs::why::words::sentence;
use crate::verbs::why::{Answer, Explained, Ranked, delays};

pub(super) fn write(answer: &Answer) -> String {
    let tally = |tally: Tally| json!({"failed": tally.hits, "passed": tally.misses});
    let runs = answer.traced.and(answer.plain);
    let bound = (runs.hits == 0 && runs.misses > 0)
        .then(|| rarest(answer.traced.misses + answer.plain.misses));
    let failures: Vec<Value> = answer.failures.iter().map(explained).collect();
    let answer = json!({
        "schema": "unflake.why/1",
        "test": answer.test,
        "traced": tally(answer.traced),
        "plain": tally(answer.plain),
        "neither": answer.neither,
        "cut": answer.cut,
        "enough": answer.is_enough,
        "interrupted": answer.is_interrupted,
        "varied_hash_seed": answer.varies_hash_seed,
        "failure_rate_bound": bound,
        "after_others": answer.beside.map(|beside| {
            json!({
                "tests": beside.tests,
                "runs": tally(beside.tally),
                "depends": answer.depends_on_order(),
            })
        }),
        "fuzz": answer.fuzzed.as_ref().map(|fuzzed| delays::json(fuzzed, answer)),
        "failures": failures,
    });
    serde_json::to_string_pretty(&answer).expect("an answer holds only text and numbers")
}

fn explained(failures: &Explained) -> Value {
    let differences: Vec<Value> = match &failures.ranked {
        Ranked::Ours { shown, .. } => shown.iter().map(difference).collect(),
        Ranked::Paper { shown, ledger, .. } => shown
            .iter()
            .map(|(label, predicate)| {
                json!({
                    "label": label.name(),
                    "call": spot(&ledger.spot(&predicate.place)),
                    "claim": format!("{:?}", predicate.claim),
                    "passing": {"yes": predicate.passing.yes, "no": predicate.passing.no},
                    "failing": {"yes": predicate.failing.yes, "no": predicate.failing.no},
                })
            })
            .collect(),
    };
    let total = match &failures.ranked {
        Ranked::Ours { total, .. } | Ranked::Paper { total, .. } => *total,
    };
    let sources: Vec<Value> = match &failures.ranked {
        Ranked::Ours { sources, .. } => sources.iter().map(spot).collect(),
        Ranked::Paper { .. } => Vec::new(),
    };
    json!({
        "message": failures.message,
        "runs": failures.runs,
        "differences": differences,
        "total": total,
        "sources": sources,
    })
}

fn difference(difference: &Difference) -> Value {
    let [passing_values, failing_values] = &difference.values;
    let [passing_time, failing_time] = difference.times;
    let [passing_spread, failing_spread] = &difference.spread;
    json!({
        "says": sentence(difference),
        "call": spot(&difference.spot),
        "after": difference.other.as_ref().map(spot),
        "also": difference.also.as_ref().map(|also| {
            json!({"call": spot(&also.spot), "after": also.other.as_ref().map(spot)})
        }),
        "origin": difference.origin.as_ref().map(spot),
        "wait": difference.wait.as_ref().map(spot),
        "alike": difference.alike.iter().map(spot).collect::<Vec<Value>>(),
        "follows": difference.follows,
        "strength": difference.strength,
        "category": difference.category.map(Category::label),
        "remedy": difference.category.map(Category::remedy),
        "passing": {
            "yes": difference.passing.yes,
            "no": difference.passing.no,
            "values": passing_values,
            "distinct": passing_spread.distinct,
            "range": passing_spread.range,
            "median_microseconds": passing_time,
        },
        "failing": {
            "yes": difference.failing.yes,
            "no": difference.failing.no,
            "values": failing_values,
            "distinct": failing_spread.distinct,
            "range": failing_spread.range,
            "median_microseconds": failing_time,
        },
    })
}

pub(super) fn spot(spot: &Spot) -> Value {
    json!({
        "file": spot.site.file,
        "line": spot.site.line,
        "column": spot.site.column,
        "caller": spot.site.caller,
        "callee": spot.site.callee,
        "thread": spot.thread,
        "sequence": spot.sequence,
    })
}
