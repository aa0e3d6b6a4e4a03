//! What is known about a test that depends on order, in JSON.

use serde::Serialize;
use unflake_core::order::answers::Ends;
use unflake_core::order::{Dependence, Role};
use unflake_core::test::TestId;

#[derive(Serialize)]
pub(super) struct JsonOrder<'a> {
    role: &'static str,
    alone: JsonEnds,
    culprits: Vec<JsonCulprit<'a>>,
    cleaners: Vec<&'a str>,
    complete: bool,
    cut: bool,
    runs: u32,
    seconds: f64,
}

#[derive(Serialize)]
struct JsonCulprit<'a> {
    tests: Vec<&'a str>,
    ordered: bool,
    ends: JsonEnds,
}

#[derive(Serialize)]
struct JsonEnds {
    passed: u32,
    failed: u32,
}

pub(super) fn to_json_order(dependence: &Dependence) -> JsonOrder<'_> {
    let diagnosis = &dependence.diagnosis;
    let culprits = diagnosis.culprits.iter().map(|culprit| JsonCulprit {
        tests: culprit.tests.iter().map(TestId::name).collect(),
        ordered: culprit.is_ordered,
        ends: to_json_ends(culprit.ends),
    });
    JsonOrder {
        role: match diagnosis.role {
            Role::Victim => "victim",
            Role::Brittle => "brittle",
            Role::Random => "random",
            Role::Broken => "broken",
            Role::Independent => "independent",
        },
        alone: to_json_ends(diagnosis.alone),
        culprits: culprits.collect(),
        cleaners: diagnosis.cleaners.iter().map(TestId::name).collect(),
        complete: diagnosis.is_complete,
        cut: dependence.is_cut,
        runs: dependence.runs,
        seconds: super::round(dependence.spent),
    }
}

fn to_json_ends(ends: Ends) -> JsonEnds {
    JsonEnds {
        passed: ends.passed,
        failed: ends.failed,
    }
}
