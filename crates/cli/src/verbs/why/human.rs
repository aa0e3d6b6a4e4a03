//! The answer of `unflake why` for people.

use std::fs;

use camino::Utf8Path;
use console::style;
use unflake_core::sequential::Tally;
use unflake_core::why::difference::{Difference, Spot, Spread};
use unflake_core::why::predicate::{Claim, Held};
use unflake_core::why::trace::Kind;

use crate::verbs::why::steady::{after_others, changed_by_tracing, never_failed};
use crate::verbs::why::words::{counts, sentence, time};
use crate::verbs::why::{Answer, Explained, Ranked};
use crate::view::printable::printable;
use crate::view::report::plural;

/// The lines of source that are shown before a line, and after it.
const AROUND: usize = 1;
/// The most calls that are named of those that vary by themselves.
const MOST_SOURCES: usize = 5;
/// The most further calls that are named of two threads that race.
const MOST_ALIKE: usize = 2;
/// A note for differences that may be mere chance.
const TOO_FEW_RUNS: &str = "There were too few passing or failing runs to tell cause from chance: even the \
                            first places may be chance.";
/// The smallest difference of times that is shown, in microseconds.
const TOLD_TIME: f64 = 1000.0;

pub(super) fn write(answer: &Answer) -> String {
    let mut lines = vec![headline(answer)];
    if answer.depends_on_order() {
        lines.extend(after_others(answer));
    } else if answer.traced.hits == 0 {
        lines.extend(never_failed(answer));
    } else if answer.is_changed_by_tracing() {
        lines.extend([String::new(), changed_by_tracing(answer)]);
    }
    let never_passed = answer.traced.misses + answer.passing == 0;
    let is_compared = answer.has_failed() && !(never_passed && answer.is_changed_by_tracing());
    if !is_compared {
        lines.extend(footnotes(answer));
    } else if never_passed {
        lines.push(String::new());
        let why = "It never passed, so there is nothing to compare: this is not a flaky test here.";
        lines.push(why.to_owned());
    } else {
        let groups = answer.failures.len();
        for (at, failures) in answer.failures.iter().enumerate() {
            let what = printable(failures.message.lines().next().unwrap_or_default());
            if groups > 1 {
                let runs = plural(failures.runs as usize, "run", "runs");
                let which = format!("Failure {} of {groups}, in {runs}: {what}", at + 1);
                lines.extend([String::new(), which]);
            } else if !what.is_empty() {
                let what = style(what).red();
                lines.extend([String::new(), format!("It fails with: {what}")]);
            }
            lines.extend(explained(answer, failures));
            if groups > 1 && !failures.is_enough {
                lines.extend([String::new(), TOO_FEW_RUNS.to_owned()]);
            }
        }
        lines.extend(footnotes(answer));
    }
    lines.join("\n")
}

fn headline(answer: &Answer) -> String {
    let Tally { hits, .. } = answer.traced;
    let runs = plural(answer.traced.runs() as usize, "traced run", "traced runs");
    match &answer.test {
        Some(test) => format!(
            "{} failed in {hits} of {runs}",
            style(printable(test)).bold()
        ),
        None => format!("{hits} of {runs} failed"),
    }
}

fn explained(answer: &Answer, failures: &Explained) -> Vec<String> {
    let mut lines = Vec::new();
    match &failures.ranked {
        Ranked::Ours {
            shown,
            total,
            sources,
        } => {
            if shown.is_empty() {
                let nothing = if failures.is_enough {
                    "No call differs between its passing and failing runs. unflake sees calls only: not \
                     what the code does between two calls, and not what installed packages do by \
                     themselves."
                } else {
                    "No call differs clearly between so few passing and failing runs."
                };
                lines.extend([String::new(), nothing.to_owned()]);
                if answer.cut > 0 {
                    let lost = "An interpreter that is killed cannot record its last calls: they are not \
                                seen either.";
                    lines.push(lost.to_owned());
                }
            }
            for (at, difference) in shown.iter().enumerate() {
                lines.push(String::new());
                lines.extend(one(at + 1, difference, answer, failures.runs));
            }
            if *total > shown.len() {
                let more = total - shown.len();
                let more = plural(more, "more place differs", "more places differ");
                lines.extend([String::new(), format!("{more} (--top {total} shows all)")]);
            }
            // A difference without a category is an effect of the failure, and not its cause.
            if shown.iter().all(|one| one.category.is_none()) {
                lines.extend(vary_by_themselves(sources));
            }
        }
        Ranked::Paper {
            shown,
            total,
            ledger,
        } => {
            let told = shown.iter().map(|(label, predicate)| {
                let spot = ledger.spot(&predicate.place);
                let (place, thread) = (spot.site.to_string(), printable(&spot.thread));
                let held = |held: Held| format!("{}/{}", held.yes, held.yes + held.no);
                format!(
                    "{}  {}:{thread}:{}  {:?}  passing {}  failing {}",
                    label.name(),
                    printable(&place),
                    spot.sequence,
                    predicate.claim,
                    held(predicate.passing),
                    held(predicate.failing),
                )
            });
            lines.extend(told);
            lines.push(format!("{} of {total} predicates", shown.len()));
        }
    }
    lines
}

/// The calls whose results vary from run to run by themselves: no single one explains the failure, but several may.
fn vary_by_themselves(sources: &[Spot]) -> Vec<String> {
    if sources.is_empty() {
        return Vec::new();
    }
    let what =
        "These calls return different values from run to run, and may cause the failure together:";
    let mut lines = vec![String::new(), what.to_owned()];
    let told = sources.iter().take(MOST_SOURCES).map(|spot| {
        let place = printable(&spot.site.to_string());
        format!("   {place}: `{}`", printable(&spot.site.callee))
    });
    lines.extend(told);
    if sources.len() > MOST_SOURCES {
        lines.push(format!("   and {} more", sources.len() - MOST_SOURCES));
    }
    lines
}

/// One difference, with its source and its values.
fn one(number: usize, difference: &Difference, answer: &Answer, failing: u32) -> Vec<String> {
    let spot = &difference.spot;
    let place = printable(&spot.site.to_string());
    let mut lines = vec![
        format!(
            "{number}. {}: {}",
            style(place).bold(),
            sentence(difference)
        ),
        format!("   {}", counts(difference, answer.passing, failing)),
    ];
    if let Some(source) = difference.follows {
        // The cause is worth a look, not its consequence: a line or two are enough.
        lines.push(format!(
            "   it may be a mere consequence of {source}: both differ in the same runs"
        ));
        return lines;
    }
    if let Some(root) = &answer.root {
        lines.extend(source(root, &spot.site.file, spot.site.line));
        if let Some(other) = &difference.other {
            lines.push("     ...".to_owned());
            lines.extend(source(root, &other.site.file, other.site.line));
        }
        if let Some(also) = &difference.also {
            for spot in [Some(&also.spot), also.other.as_ref()]
                .into_iter()
                .flatten()
            {
                lines.push("     ...".to_owned());
                lines.extend(source(root, &spot.site.file, spot.site.line));
            }
        }
    }
    if has_values(difference) {
        let [passing_values, failing_values] = &difference.values;
        let [passing_spread, failing_spread] = &difference.spread;
        lines.extend(values("passing runs", passing_values, passing_spread));
        lines.extend(values("failing runs", failing_values, failing_spread));
    }
    if let [Some(usual), Some(odd)] = difference.times
        && (usual - odd).abs() >= TOLD_TIME
        && has_times(difference)
    {
        let (usual, odd) = (time(usual), time(odd));
        lines.push(format!(
            "   it takes {usual} in passing and {odd} in failing runs (medians)"
        ));
    }
    lines.extend(belongs(difference));
    if let Some(category) = difference.category {
        let remedy = category.remedy();
        let category = style(category).yellow();
        lines.push(format!(
            "   category: {category}; what usually helps: {remedy}"
        ));
    }
    lines
}

/// The other parts of the same finding, and their places.
fn belongs(difference: &Difference) -> Vec<String> {
    let mut lines = Vec::new();
    let place = |spot: &Spot| printable(&spot.site.to_string());
    let call = |spot: &Spot| format!("{} `{}`", place(spot), printable(&spot.site.callee));
    if let Some(origin) = &difference.origin {
        let place = place(origin);
        lines.push(format!(
            "   it comes from the order in which {place} goes through a set"
        ));
    }
    if let Some(wait) = &difference.wait {
        lines.push(format!(
            "   the wait before it was too short: {}",
            call(wait)
        ));
    }
    let is_other = |spot: &&Spot| Some(*spot) != difference.wait.as_ref();
    let alike: Vec<&Spot> = difference.alike.iter().filter(is_other).collect();
    let (shown, rest) = alike.split_at(alike.len().min(MOST_ALIKE));
    if !shown.is_empty() {
        let shown: Vec<String> = shown.iter().map(|spot| call(spot)).collect();
        let more = match rest.len() {
            0 => String::new(),
            more => format!(", and {}", plural(more, "other call", "other calls")),
        };
        let shown = shown.join(", ");
        lines.push(format!(
            "   the same two threads also meet in another order at {shown}{more}"
        ));
    }
    lines
}

/// Whether it matters what the call returned.
fn has_values(difference: &Difference) -> bool {
    let is_time = matches!(difference.claim, Claim::Slow(_) | Claim::Fast(_));
    let is_same = difference.values[0] == difference.values[1];
    let is_left_over = difference.spot.site.kind == Kind::Leftover;
    !is_left_over && difference.other.is_none() && !(is_time && is_same)
}

/// Whether it matters how long the call took: not if it only goes around what took so long.
fn has_times(difference: &Difference) -> bool {
    let is_time = matches!(difference.claim, Claim::Slow(_) | Claim::Fast(_));
    is_time || difference.spot.site.kind != Kind::Plain
}

/// The values that a call returned on one side: the most frequent ones, and whether there are more.
fn values(title: &str, values: &[String], spread: &Spread) -> Option<String> {
    if values.is_empty() {
        return None;
    }
    let shown: Vec<String> = values.iter().map(|value| printable(value)).collect();
    let shown = shown.join(", ");
    Some(match spread.range {
        Some((least, most)) if spread.distinct > values.len() => {
            format!("   {title}: {least} to {most} ({shown}, …)")
        }
        Some(_) | None if spread.distinct > values.len() => {
            format!("   {title}: {shown}, and others")
        }
        Some(_) | None => format!("   {title}: {shown}"),
    })
}

/// The lines around a call. A file that cannot be read has none.
pub(super) fn source(root: &Utf8Path, file: &str, line: u32) -> Vec<String> {
    let Ok(file) = fs::read_to_string(root.join(file)) else {
        return Vec::new();
    };
    let line = line as usize;
    let first = line.saturating_sub(AROUND).max(1);
    let lines = file.lines().enumerate().skip(first - 1);
    let lines = lines.take(line + AROUND + 1 - first).map(|(at, text)| {
        let is_meant = at + 1 == line;
        let mark = if is_meant { ">" } else { " " };
        let text = format!("   {mark} {:>4} | {}", at + 1, printable(text));
        let text = style(text.trim_end());
        if is_meant { text } else { text.dim() }.to_string()
    });
    lines.collect()
}

/// Notes on how the runs were made, and on how far they can be trusted.
fn footnotes(answer: &Answer) -> Vec<String> {
    let mut notes = vec![String::new()];
    if answer.is_interrupted {
        notes.push("It was interrupted: this is what was known by then.".to_owned());
    }
    match answer.varies_hash_seed {
        Some(true) => notes.push(
            "Each run had an interpreter of its own, with another hash seed, fresh files and an empty \
             temporary folder."
                .to_owned(),
        ),
        Some(false) => notes.push(
            "Each run had an interpreter of its own, with fresh files and an empty temporary folder; \
             PYTHONHASHSEED is fixed by the environment, so the order of sets was the same in all."
                .to_owned(),
        ),
        None => {}
    }
    if answer.plain.runs() > 0 {
        let Tally { hits, .. } = answer.plain;
        notes.push(format!(
            "Without tracing it failed in {hits} of {}; with tracing in {} of {}.",
            plural(answer.plain.runs() as usize, "run", "runs"),
            answer.traced.hits,
            answer.traced.runs()
        ));
    }
    // Of several failures each has its own note.
    if !answer.is_enough && answer.failures.len() == 1 {
        notes.push(TOO_FEW_RUNS.to_owned());
    }
    if answer.cut > 0 {
        let traces = plural(answer.cut as usize, "trace was", "traces were");
        notes.push(format!("{traces} cut off or lost."));
    }
    if answer.neither > 0 {
        let runs = plural(answer.neither as usize, "run", "runs");
        notes.push(format!("{runs} neither passed nor failed."));
    }
    notes
}

#[cfg(test)]
mod tests {
    use unflake_driver::why::after_others::Beside;

    use super::*;

    #[test]
    fn many_values_are_told_as_a_range_or_as_many() {
        let told = |texts: &[&str], distinct: usize, range: Option<(f64, f64)>| {
            let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
            values("failing runs", &texts, &Spread { distinct, range })
        };
        let range = told(&["0.5", "0.25"], 9, Some((0.125, 0.75)));
        let expected = "   failing runs: 0.125 to 0.75 (0.5, 0.25, …)";
        assert_eq!(range.as_deref(), Some(expected));
        let others = told(&["'a'", "'b'"], 3, None);
        assert_eq!(
            others.as_deref(),
            Some("   failing runs: 'a', 'b', and others")
        );
        let one = told(&["7"], 1, Some((7.0, 7.0)));
        assert_eq!(one.as_deref(), Some("   failing runs: 7"));
        assert_eq!(told(&[], 0, None), None);
    }

    fn tally(hits: u32, misses: u32) -> Tally {
        Tally { hits, misses }
    }

    /// The answer about a test of which nothing is known but the counts: its failures and passes with tracing and
    /// without, and the number of passing traces.
    fn answer(traced: Tally, plain: Tally, passing: u32) -> Answer {
        let failures = Explained {
            message: "assert False".to_owned(),
            runs: traced.hits,
            is_enough: false,
            ranked: Ranked::Ours {
                shown: Vec::new(),
                sources: Vec::new(),
                total: 0,
            },
        };
        Answer {
            test: Some("test_a.py::test".to_owned()),
            root: None,
            passing,
            neither: 0,
            cut: 0,
            traced,
            plain,
            is_enough: false,
            is_interrupted: false,
            varies_hash_seed: Some(true),
            beside: None,
            fuzzed: None,
            failures: if traced.hits > 0 {
                vec![failures]
            } else {
                Vec::new()
            },
        }
    }

    #[test]
    fn a_test_that_tracing_makes_fail_is_not_said_to_fail_always() {
        let told = write(&answer(tally(15, 0), tally(2, 6), 0));
        assert!(told.contains("With tracing it always fails, without it only in 2 of 8 runs"));
        assert!(!told.contains("never passed"));
        let told = write(&answer(tally(0, 15), tally(2, 6), 15));
        assert!(told.contains("With tracing it always passes, without it only in 6 of 8 runs"));
        assert!(!told.contains("With 95 %"));
        assert!(write(&answer(tally(15, 0), tally(8, 0), 0)).contains("never passed"));
    }

    #[test]
    fn other_tests_are_not_blamed_for_what_tracing_does() {
        let mut answer = answer(tally(15, 0), tally(2, 6), 4);
        answer.beside = Some(Beside {
            tests: 7,
            tally: tally(0, 4),
        });
        assert!(!answer.depends_on_order());
        let told = write(&answer);
        assert!(
            told.contains("runs that are compared below are those after the 7 tests before it")
        );
        answer.plain = tally(8, 0);
        assert!(answer.depends_on_order());
    }

    #[test]
    fn a_test_that_is_skipped_has_no_failure_rate() {
        let mut answer = answer(tally(0, 0), tally(0, 0), 0);
        answer.neither = 5;
        let told = write(&answer);
        assert!(told.contains("never ran to an end") && !told.contains('%'));
    }

    #[test]
    fn nothing_is_called_chance_where_nothing_is_told() {
        let told = write(&answer(tally(0, 100), tally(0, 10), 100));
        assert!(told.contains("With 95 % confidence") && !told.contains("may be chance"));
        assert!(write(&answer(tally(3, 7), tally(0, 0), 7)).contains("may be chance"));
    }
}
