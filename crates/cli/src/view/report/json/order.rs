//! What is known about a test that depends on order, in JSON.

use serde::Serialize;
use unflake_core::latent::Latent;
use unflake_core::order::answers::Ends;
use unflake_core::order::{Dependence, Role};
use unflake_core::state::{Cause, Shown};
use unflake_core::test::TestId;

#[derive(Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each documented"
)]
pub(super) struct JsonOrder<'a> {
    role: &'static str,
    alone: JsonEnds,
    culprits: Vec<JsonCulprit<'a>>,
    cleaners: Vec<&'a str>,
    by_import: bool,
    needs_suite: bool,
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
pub(super) struct JsonCause<'a> {
    shown: Vec<JsonPiece<'a>>,
    joint: bool,
    suspects: Vec<JsonPiece<'a>>,
    changed: usize,
    unseen: &'a [String],
    fix: Option<JsonFix<'a>>,
}

#[derive(Serialize)]
struct JsonFix<'a> {
    file: &'a str,
    diff: &'a str,
}

#[derive(Serialize)]
struct JsonPiece<'a> {
    kind: &'a str,
    path: &'a str,
    before: Option<&'a str>,
    after: Option<&'a str>,
    owner: Option<&'a str>,
    mock: bool,
    file: Option<&'a str>,
    line: Option<u32>,
    function: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct JsonLatent<'a> {
    kind: &'a str,
    path: &'a str,
    before: Option<&'a str>,
    after: Option<&'a str>,
    tests: Vec<&'a str>,
    readers: &'a [String],
}

pub(super) fn to_json_latent(latent: &Latent) -> JsonLatent<'_> {
    JsonLatent {
        kind: &latent.piece.kind,
        path: &latent.piece.path,
        before: latent.piece.before.as_deref(),
        after: latent.piece.after.as_deref(),
        tests: latent.tests.iter().map(TestId::name).collect(),
        readers: &latent.readers,
    }
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
        by_import: dependence.by_import,
        needs_suite: dependence.needs_suite,
        complete: diagnosis.is_complete,
        cut: dependence.is_cut,
        runs: dependence.runs,
        seconds: super::round(dependence.spent),
    }
}

pub(super) fn to_json_cause(cause: &Cause) -> JsonCause<'_> {
    JsonCause {
        shown: cause.shown.iter().map(to_json_piece).collect(),
        joint: cause.is_joint,
        suspects: cause.suspects.iter().map(to_json_piece).collect(),
        changed: cause.changed,
        unseen: &cause.unseen,
        fix: cause.fix.as_ref().map(|fix| JsonFix {
            file: &fix.file,
            diff: &fix.diff,
        }),
    }
}

fn to_json_piece(shown: &Shown) -> JsonPiece<'_> {
    let (piece, place) = (&shown.piece, shown.place.as_ref());
    JsonPiece {
        kind: &piece.kind,
        path: &piece.path,
        before: piece.before.as_deref(),
        after: piece.after.as_deref(),
        owner: piece.owner.as_deref(),
        mock: piece.is_mock,
        file: place.map(|place| place.file.as_str()),
        line: place.map(|place| place.line),
        function: place.map(|place| place.function.as_str()),
    }
}

fn to_json_ends(ends: Ends) -> JsonEnds {
    JsonEnds {
        passed: ends.passed,
        failed: ends.failed,
    }
}
