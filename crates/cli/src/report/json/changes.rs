//! The part of the JSON report that says how a failure stands to the latest changes.

use std::borrow::Cow;

use serde::Serialize;
use unflake_core::comparison::{AtBase, Comparison};
use unflake_core::intersect::{How, Touch, Unknown};

use crate::report::changes::describe_unknown;
use unflake_history::dates;

#[derive(Serialize)]
pub(super) struct JsonChanges<'a> {
    base: &'a str,
    base_is: &'a str,
    changed_files: usize,
    touches: Vec<JsonTouch<'a>>,
    unknown: Vec<JsonUnknown>,
    at_base: &'static str,
    at_base_detail: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct JsonTouch<'a> {
    file: &'a str,
    change: &'static str,
    function: Option<&'a str>,
    lines: Vec<[u32; 2]>,
    how: &'static str,
    copy: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonUnknown {
    kind: &'static str,
    why: String,
}

pub(super) fn to_json_changes(comparison: &Comparison) -> JsonChanges<'_> {
    let (at_base, at_base_detail) = match &comparison.at_base {
        AtBase::Passed => ("passed", None),
        AtBase::PassedBefore { time } => {
            let day = dates::to_text(dates::day_of(*time));
            let detail = format!("on {day}, by the history");
            ("passed", Some(Cow::Owned(detail)))
        }
        AtBase::FailsAlike => ("fails-alike", None),
        AtBase::FailsOtherwise { message } => ("fails-otherwise", Some(message.into())),
        AtBase::NotRun { why } => ("not-run", Some(why.into())),
        AtBase::NotChecked { why } => ("not-checked", Some(why.into())),
    };
    let intersection = &comparison.intersection;
    JsonChanges {
        base: &comparison.base.commit,
        base_is: &comparison.base.what,
        changed_files: comparison.changed_files,
        touches: intersection.touches.iter().map(to_json_touch).collect(),
        unknown: intersection.unknowns.iter().map(to_json_unknown).collect(),
        at_base,
        at_base_detail,
    }
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
        Unknown::Missed(_) => "missed",
        Unknown::AnotherFailure => "another-failure",
        Unknown::NotWatched => "not-watched",
    };
    JsonUnknown {
        kind,
        why: describe_unknown(unknown),
    }
}
