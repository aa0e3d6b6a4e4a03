//! Whose failure it is, in words: the answer, what it rests on, and what would settle it.

use camino::Utf8Path;
use unflake_core::blame::{Base, Blame, Guilt, Innocence, Open, Whose};
use unflake_core::change::Lines;
use unflake_core::intersect::{How, Touch, Unknown};
use unflake_core::sequential::Tally;
use unflake_core::verdict::{Finding, Reason, Verdict};
use unflake_history::dates;

use super::plural;

/// The most changes that are listed, and the most things that are not known.
pub(crate) const MOST: usize = 10;
/// The most columns of a message that are shown.
const LONGEST: usize = 160;

/// The answer in a sentence.
pub(crate) fn answer(finding: &Finding) -> Option<String> {
    let blame = finding.blame.as_deref()?;
    let commit = blame.base.as_ref().map_or("the base", short);
    Some(match &blame.whose {
        Whose::Yours(Guilt::NewTest) => format!("YOURS: the base, {commit}, has no such test"),
        Whose::Yours(Guilt::FailsMore) => format!(
            "YOURS: it uses what you changed, and failed {} at {commit}",
            both_sides(blame)
        ),
        Whose::Yours(Guilt::Exposed) => format!(
            "YOURS: {commit} passes in its own order and fails in the order of this run: a test was \
             added, removed or moved"
        ),
        Whose::NotYours(Innocence::AtBase) => format!(
            "NOT YOURS: it fails in the same way without your change, in {} runs at {commit} and in {} \
             here",
            often(blame.at_base),
            often(blame.here)
        ),
        Whose::NotYours(Innocence::InHistory(known)) => format!(
            "NOT YOURS: it failed in the same way in {} of {} runs at {commit} or before it, last on {}",
            known.failures,
            known.runs,
            dates::to_text(dates::day_of(known.last))
        ),
        Whose::NotYours(Innocence::Untouched) => {
            format!(
                "NOT YOURS: it failed again in a run that used nothing that changed since {commit}"
            )
        }
        Whose::NotYours(Innocence::UntouchedAtFailure) => format!(
            "NOT YOURS: when it failed, nothing that changed since {commit} had been opened; it has \
             passed since"
        ),
        Whose::NotYours(Innocence::NothingChanged) => match blame.base.as_ref() {
            Some(base) if base.commit.is_none() => {
                "NOT YOURS: nothing differs from the last run that passed".to_owned()
            }
            Some(_) | None => "NOT YOURS: this very commit was tested before".to_owned(),
        },
        Whose::NotKnown(open) => format!("NOT KNOWN WHOSE: {}", why_open(open, blame)),
    })
}

fn why_open(open: &Open, blame: &Blame) -> String {
    match open {
        Open::NoRepository if blame.base.is_some() && blame.changed_files > 0 => {
            "the base, the last run that passed, is known by the digests of its files only"
                .to_owned()
        }
        Open::NoRepository => "the project is in no git repository".to_owned(),
        Open::NoBase { why, .. } => format!("there is no base to compare with ({why})"),
        Open::NotAsked => "nothing was run at the base".to_owned(),
        Open::Budget if blame.here.runs() == 0 => "the time for it ran out".to_owned(),
        Open::Budget => format!(
            "the time for it ran out (it failed {} at the base)",
            both_sides(blame)
        ),
        Open::BaseCannotRun { why } if blame.otherwise.is_some() => {
            format!("at the base it fails in another way: {}", first_line(why))
        }
        Open::BaseCannotRun { why } => format!("at the base it cannot be run: {}", first_line(why)),
        Open::BaseTooSlow { why } => {
            format!(
                "the base could not be made ready in the time: {}",
                first_line(why)
            )
        }
        Open::EnvironmentMoved { files, why } => {
            let why = why.as_deref().map(first_line);
            let why = why.map_or_else(String::new, |why| {
                format!(" (the base has none of its own: {why})")
            });
            format!(
                "it fails at the base too, but the base ran with your environment{why}, and {} changed",
                some(files)
            )
        }
        Open::AnotherFailure { message } => format!(
            "it failed {} at the base, but some failures here are of a kind that the base never had: {}",
            both_sides(blame),
            first_line(message)
        ),
        Open::NotSettled => format!(
            "it failed {} at the base, which decides nothing",
            both_sides(blame)
        ),
        Open::TooRare { known, .. } => format!(
            "in the history it failed in {} of {} runs, and {} here do not tell whether it is still as rare",
            known.failures,
            known.runs,
            blame.here.runs()
        ),
        Open::Unseen => format!(
            "it failed {} at the base, but was not seen to use what you changed",
            both_sides(blame)
        ),
        Open::Unexamined => "it was not run again".to_owned(),
        Open::OldReport => "files have changed since the report".to_owned(),
        Open::OtherMachine => "the report is from another machine".to_owned(),
    }
}

/// The remedy if it is not known whose a failure is: what would settle it, and which flag forgives it.
pub(crate) fn settle(finding: &Finding) -> Option<String> {
    let blame = finding.blame.as_deref()?;
    let Whose::NotKnown(open) = &blame.whose else {
        return None;
    };
    let what = match open {
        Open::NoRepository => "a git repository, which tells what changed".to_owned(),
        Open::NoBase { fetch, .. } => match fetch {
            Some(fetch) => format!("`{fetch}`"),
            None => "a revision to compare with: --base REV".to_owned(),
        },
        Open::NotAsked => {
            "runs at the base: leave --check-base=never and --intersect=never out".to_owned()
        }
        Open::BaseTooSlow { .. } => {
            "more time: --blame-budget SECONDS, or [base] budget in unflake.toml".to_owned()
        }
        Open::Budget => {
            "more time: --blame-budget SECONDS, or --check-base without a limit".to_owned()
        }
        Open::BaseCannotRun { .. } => {
            "a command that makes the checkout ready: [base] setup in unflake.toml".to_owned()
        }
        Open::EnvironmentMoved { .. } => {
            "an environment of the base's own: [base] setup in unflake.toml".to_owned()
        }
        Open::AnotherFailure { .. } | Open::NotSettled | Open::Unseen => {
            "runs of the base in the history: `unflake run` on it, in CI for example".to_owned()
        }
        Open::TooRare { needs, .. } => match needs {
            Some(runs) => format!("{runs} runs here in which it does not fail"),
            None => "more runs here than unflake ever makes".to_owned(),
        },
        Open::Unexamined => reruns(finding.verdict).to_owned(),
        Open::OldReport | Open::OtherMachine => "a report of this very code and machine".to_owned(),
    };
    Some(if finding.verdict.is_flaky() {
        format!("{what}; --not-known pass forgives it")
    } else {
        what
    })
}

/// The remedy for a test that did not run again.
fn reruns(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Unexamined(Reason::TooManyFailures) => "fewer failures, or a higher --threshold",
        Verdict::Unexamined(Reason::RerunsOff) => "reruns: --immediate, --end or --fresh above 0",
        Verdict::Unexamined(Reason::Cut)
        | Verdict::Flaky(_)
        | Verdict::Nio(_)
        | Verdict::NioAfterOthers
        | Verdict::Victim
        | Verdict::NonDeterministic
        | Verdict::Brittle
        | Verdict::Broken
        | Verdict::Unclear(_) => "a run that is not cut off",
    }
}

/// The evidence in lines: what was compared, then each change that the runs used, then each thing that is not known.
pub(crate) fn evidence(blame: &Blame) -> Vec<String> {
    let Some(base) = &blame.base else {
        return Vec::new();
    };
    let commit = short(base);
    let files = plural(blame.changed_files, "file differs", "files differ");
    let mut lines = vec![match &base.commit {
        Some(_) => format!("{files} from {commit} ({})", base.what),
        None => format!("{files} from {}", base.what),
    }];
    let intersection = &blame.intersection;
    let touches: Vec<String> = intersection.touches.iter().map(describe_touch).collect();
    let unknowns = intersection.unknowns.iter();
    let unknowns = unknowns.map(|unknown| format!("cannot tell: {}", describe_unknown(unknown)));
    lines.extend(cut(touches));
    lines.extend(cut(unknowns.collect()));
    if blame.here.runs() > 0 && intersection.is_disjoint() {
        lines.push("its runs used none of these".to_owned());
    }
    if blame.here.runs() > 0 {
        lines.push(format!(
            "here, in the order of this run: failed in {} runs",
            often(blame.here)
        ));
    }
    if blame.at_base.runs() > 0 {
        lines.push(format!(
            "at the base, in its own order: failed in {} runs",
            often(blame.at_base)
        ));
    }
    if !blame.polluters.is_empty() {
        let names: Vec<String> = blame.polluters.iter().map(ToString::to_string).collect();
        lines.push(format!(
            "it fails after {}, and not otherwise",
            some(&names)
        ));
    }
    if let Some(message) = &blame.otherwise {
        lines.push(format!(
            "at the base it also failed in another way: {}",
            first_line(message)
        ));
    }
    lines
}

/// The base in few words.
fn short(base: &Base) -> &str {
    let commit = base.commit.as_deref();
    commit.map_or("the last run that passed", |commit| {
        commit.get(..10).unwrap_or(commit)
    })
}

/// The first [`MOST`] lines, and the number of the others.
fn cut(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

fn some(names: &[String]) -> String {
    let shown = names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(3) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// How often it failed here and at the base. The caller adds the name of the base.
fn both_sides(blame: &Blame) -> String {
    let (here, at_base) = (often(blame.here), often(blame.at_base));
    format!("in {here} runs here and in {at_base}")
}

fn often(tally: Tally) -> String {
    format!("{} of {}", tally.hits, tally.runs())
}

/// The first line of a text, cut to [`LONGEST`] columns.
fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    console::truncate_str(line, LONGEST, "…").into_owned()
}

/// The use that a run made of a change: `ran shop/cart.py:12-14 (Cart.total)`.
pub(crate) fn describe_touch(touch: &Touch) -> String {
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

/// The most changed places of a file that are listed.
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

fn and_others(others: usize, one: &str, more: &str) -> String {
    if others == 0 {
        return String::new();
    }
    format!(" or {}", plural(others, one, more))
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
        Unknown::Service(what) => {
            format!("it talked to {what}, which it did not start and which may run what changed")
        }
        Unknown::Outside(path) => {
            format!("at the base it read {path}, which was written since this run began")
        }
        Unknown::Missed(what) => format!("a part of what it used was missed ({what})"),
        Unknown::Unwatched { path, others } => format!(
            "it could not be seen whether it used {path}{}",
            and_others(*others, "other changed file", "other changed files")
        ),
        Unknown::LeftBehind { path, others } => format!(
            "an earlier run may have left {path}{}",
            and_others(*others, "other file", "other files")
        ),
        Unknown::AnotherFailure => {
            "while it was watched it failed in another way than in the suite".to_owned()
        }
        Unknown::NotWatched => "what it used could not be watched".to_owned(),
    }
}
