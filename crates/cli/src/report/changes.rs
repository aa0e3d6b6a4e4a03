//! How a failure stands to the latest changes, in words.

use camino::Utf8Path;
use unflake_core::change::Lines;
use unflake_core::comparison::{AtBase, Comparison};
use unflake_core::intersect::{How, Touch, Unknown};

use super::plural;
use unflake_history::dates;

/// One line on what was compared, then one for each change that the failing run went through, for each
/// thing that is not known, and for the base.
pub(crate) fn describe(comparison: &Comparison) -> Vec<String> {
    let base = &comparison.base;
    let commit = base.commit.get(..10).unwrap_or(&base.commit);
    let files = plural(comparison.changed_files, "file differs", "files differ");
    let mut lines = vec![format!("{files} from {commit} ({})", base.what)];
    let intersection = &comparison.intersection;
    lines.extend(intersection.touches.iter().map(describe_touch));
    let unknowns = intersection.unknowns.iter();
    lines.extend(unknowns.map(|unknown| format!("cannot tell: {}", describe_unknown(unknown))));
    if intersection.is_disjoint() {
        lines.push("it uses none of that".to_owned());
    }
    lines.push(describe_base(&comparison.at_base));
    lines
}

/// What a run did with a change: `ran shop/cart.py:12-14 (Cart.total)`.
fn describe_touch(touch: &Touch) -> String {
    let place = place(touch);
    let kind = touch.kind.label();
    match &touch.how {
        How::Imported if Utf8Path::new(&touch.path).extension() == Some("java") => {
            format!("it loaded the classes of {place}, {kind}")
        }
        How::Ran | How::Imported | How::Read => {
            let function = touch.function.as_ref();
            let function = function.map_or_else(String::new, |name| format!(" ({name})"));
            format!("it {} {place}{function}, {kind}", touch.how.label())
        }
        How::LookedAt => format!("it asked for {place}, {kind}"),
        How::Listed => format!("it listed the folder of {place}, {kind}"),
        How::Sought => format!("it tried to import {place}, {kind}"),
        How::Copy { path } => format!("it used {path}, a copy of {place}, {kind}"),
        How::CannotRuleOut => format!("any test may depend on {place}, {kind}"),
    }
}

/// How many of a file's changed places are listed.
const SHOWN: usize = 5;

/// A file with its changed lines: `shop/cart.py:12-14,20`.
fn place(touch: &Touch) -> String {
    let shown: Vec<String> = touch.lines.iter().take(SHOWN).copied().map(range).collect();
    let more = if touch.lines.len() > SHOWN {
        ",…"
    } else {
        ""
    };
    if shown.is_empty() {
        touch.path.clone()
    } else {
        format!("{}:{}{more}", touch.path, shown.join(","))
    }
}

fn range(lines: Lines) -> String {
    if lines.first == lines.last {
        lines.first.to_string()
    } else {
        format!("{}-{}", lines.first, lines.last)
    }
}

/// Why something is not known.
pub(crate) fn describe_unknown(unknown: &Unknown) -> String {
    match unknown {
        Unknown::Process(program) => {
            format!("it started `{program}`, and what that read is not known")
        }
        Unknown::NativeSource { library, path } => {
            format!("it loaded {library}, which may be made from {path}")
        }
        Unknown::NativeReader { library, path } => {
            format!("it loaded {library}, which may have looked for {path}")
        }
        Unknown::Generated(path) => {
            format!("it used {path}, which git does not track and which may be made from a change")
        }
        Unknown::Hidden(path) => {
            format!("it used {path}, which git is told not to look at and which may have changed")
        }
        Unknown::Repository => "it read the repository's own records (.git)".to_owned(),
        Unknown::Missed(what) => format!("a part of what it used was missed ({what})"),
        Unknown::AnotherFailure => {
            "while it was watched it failed in another way than in the suite".to_owned()
        }
        Unknown::NotWatched => "what it used could not be watched".to_owned(),
    }
}

/// How the test fares at the base.
fn describe_base(at_base: &AtBase) -> String {
    match at_base {
        AtBase::Passed => "it passes at the base".to_owned(),
        AtBase::PassedBefore { time } => {
            format!(
                "it passed at the base on {}, by the history",
                dates::to_text(dates::day_of(*time))
            )
        }
        AtBase::FailsAlike => "it fails at the base in the same way".to_owned(),
        AtBase::FailsOtherwise { message } => {
            format!("at the base it fails in another way: {message}")
        }
        AtBase::NotRun { why } => format!("at the base it could not be run: {why}"),
        AtBase::NotChecked { why } => format!("at the base it was not run: {why}"),
    }
}
