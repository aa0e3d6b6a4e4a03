//! The part of the JSON report that says whose failure it is.

use serde::Serialize;
use unflake_core::blame::{Base, Blame};
use unflake_core::intersect::{How, Touch, Unknown};
use unflake_core::sequential::Tally;
use unflake_core::verdict::Finding;

use crate::view::report::whose::{MOST, answer, describe_touch, describe_unknown, settle};

#[derive(Serialize)]
pub(super) struct JsonWhose<'a> {
    answer: &'static str,
    because: &'static str,
    sentence: String,
    base: Option<JsonBase<'a>>,
    changed_files: usize,
    here: JsonRuns,
    at_base: JsonRuns,
    at_base_otherwise: Option<&'a str>,
    touches: Vec<JsonTouch<'a>>,
    /// The number of all touches; the first ten stand above.
    touched: usize,
    unknowns: Vec<JsonUnknown>,
    polluters: Vec<&'a str>,
    settle: Option<String>,
}

#[derive(Serialize)]
struct JsonBase<'a> {
    commit: Option<&'a str>,
    what: &'a str,
}

#[derive(Serialize)]
struct JsonRuns {
    runs: u32,
    failed: u32,
}

#[derive(Serialize)]
struct JsonTouch<'a> {
    file: &'a str,
    change: &'static str,
    function: Option<&'a str>,
    lines: Vec<[u32; 2]>,
    how: &'static str,
    sentence: String,
    copy: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonUnknown {
    kind: &'static str,
    why: String,
}

pub(super) fn to_json_whose(finding: &Finding) -> Option<JsonWhose<'_>> {
    let blame: &Blame = finding.blame.as_deref()?;
    let runs = |tally: Tally| JsonRuns {
        runs: tally.runs(),
        failed: tally.hits,
    };
    let intersection = &blame.intersection;
    Some(JsonWhose {
        answer: blame.whose.label(),
        because: blame.whose.because(),
        sentence: answer(finding).unwrap_or_default(),
        base: blame.base.as_ref().map(|base: &Base| JsonBase {
            commit: base.commit.as_deref(),
            what: &base.what,
        }),
        changed_files: blame.changed_files,
        here: runs(blame.here),
        at_base: runs(blame.at_base),
        at_base_otherwise: blame.otherwise.as_deref(),
        touches: intersection
            .touches
            .iter()
            .take(MOST)
            .map(to_json_touch)
            .collect(),
        touched: intersection.touches.len(),
        unknowns: intersection
            .unknowns
            .iter()
            .take(MOST)
            .map(to_json_unknown)
            .collect(),
        polluters: blame
            .polluters
            .iter()
            .map(unflake_core::test::TestId::name)
            .collect(),
        settle: settle(finding),
    })
}

fn to_json_touch(touch: &Touch) -> JsonTouch<'_> {
    let (how, copy) = match &touch.how {
        How::Ran => ("ran", None),
        How::Imported => ("imported", None),
        How::Read => ("read", None),
        How::LookedAt => ("looked-at", None),
        How::Listed => ("listed", None),
        How::Sought => ("sought", None),
        How::Copy { path } => ("copy", Some(path.as_str())),
        How::CannotRuleOut => ("cannot-rule-out", None),
    };
    JsonTouch {
        file: &touch.path,
        change: touch.kind.label(),
        function: touch.function.as_deref(),
        lines: touch
            .lines
            .iter()
            .map(|lines| [lines.first, lines.last])
            .collect(),
        how,
        sentence: describe_touch(touch),
        copy,
    }
}

fn to_json_unknown(unknown: &Unknown) -> JsonUnknown {
    let kind = match unknown {
        Unknown::Process(_) => "process",
        Unknown::NativeSource { .. } => "native-source",
        Unknown::NativeReader { .. } => "native-reader",
        Unknown::Generated(_) => "generated",
        Unknown::Hidden(_) => "hidden",
        Unknown::Repository => "repository",
        Unknown::Service(_) => "service",
        Unknown::Outside(_) => "outside",
        Unknown::Missed(_) => "missed",
        Unknown::Unwatched { .. } => "unwatched",
        Unknown::LeftBehind { .. } => "left-behind",
        Unknown::AnotherFailure => "another-failure",
        Unknown::NotWatched => "not-watched",
    };
    JsonUnknown {
        kind,
        why: describe_unknown(unknown),
    }
}
