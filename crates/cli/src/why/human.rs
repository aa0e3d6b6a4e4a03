//! The answer of `unflake why` for people.

use std::fmt::Write;
use std::fs;

use camino::Utf8Path;
use unflake_core::sequential::Tally;
use unflake_core::why::ranking::{Difference, Spot};
use unflake_core::why::trace::Kind;

use crate::printable::{printable, printable_lines};
use crate::report::plural;
use crate::why::words::{counts, sentence, time};
use crate::why::{Answer, Explained, Ranked};

/// So many lines of source are shown before and after one.
const AROUND: usize = 1;

pub(super) fn write(answer: &Answer) -> String {
    let mut text = headline(answer);
    if answer.traced.hits == 0 {
        return text + &never_failed(answer.traced.misses);
    }
    if answer.traced.misses == 0 {
        text +=
            "\nIt never passed, so there is nothing to compare: this is not a flaky test here.\n";
        return text;
    }
    let is_one = answer.failures.len() == 1;
    for (at, failures) in answer.failures.iter().enumerate() {
        if !is_one {
            let runs = plural(failures.runs as usize, "run", "runs");
            let what = printable(failures.message.lines().next().unwrap_or_default());
            write!(
                text,
                "\nFailure {} of {}, in {runs}: {what}\n",
                at + 1,
                answer.failures.len()
            )
            .expect("a String takes everything");
        } else if !failures.message.is_empty() {
            let what = printable_lines(&failures.message);
            let what = what.lines().next().unwrap_or_default().to_owned();
            text += &format!("\nIt fails with: {what}\n");
        }
        text += &explained(answer, failures);
    }
    text + &footnotes(answer)
}

fn headline(answer: &Answer) -> String {
    let Tally { hits, .. } = answer.traced;
    let runs = plural(answer.traced.runs() as usize, "traced run", "traced runs");
    match &answer.test {
        Some(test) => format!("{} failed in {hits} of {runs}\n", printable(test)),
        None => format!("{hits} of {runs} are failing ones\n"),
    }
}

/// How rare a failure must be that was not seen: the upper bound of its rate at 95 % confidence.
fn never_failed(runs: u32) -> String {
    let bound = 100.0 * rarest(runs);
    format!(
        "\nWhat does not happen cannot be explained. With 95 % confidence it fails alone in less than \
         {bound:.1} % of runs.\n\
         What to try: more runs (--runs), the tests that run before it (`unflake order TEST`), or a \
         machine as busy as the one on which it failed.\n"
    )
}

/// The rate at which so many runs without a failure have a probability of 5 %.
pub(super) fn rarest(runs: u32) -> f64 {
    1.0 - 0.05_f64.powf(1.0 / f64::from(runs.max(1)))
}

fn explained(answer: &Answer, failures: &Explained) -> String {
    let mut text = String::new();
    match &failures.ranked {
        Ranked::Ours { shown, total } => {
            if shown.is_empty() {
                text += "\nNo call differs between its passing and failing runs.\n\
                         What is made of a call's result without another call is not seen, nor what \
                         installed packages do by themselves.\n";
            }
            for (at, difference) in shown.iter().enumerate() {
                text += &one(at + 1, difference, answer, failures.runs);
            }
            if *total > shown.len() {
                let more = plural(
                    total - shown.len(),
                    "more place differs",
                    "more places differ",
                );
                text += &format!("\n{more} (--top {total} shows all)\n");
            }
        }
        Ranked::Paper {
            shown,
            total,
            ledger,
        } => {
            text += "\n";
            for (label, predicate) in shown {
                let spot = ledger.spot(&predicate.place);
                text += &format!(
                    "{}  {}:{}:{}  {:?}  passing {}/{}  failing {}/{}\n",
                    label.name(),
                    printable(&spot.site.to_string()),
                    printable(&spot.thread),
                    spot.sequence,
                    predicate.claim,
                    predicate.passing.yes,
                    predicate.passing.yes + predicate.passing.no,
                    predicate.failing.yes,
                    predicate.failing.yes + predicate.failing.no,
                );
            }
            text += &format!("{} of {} predicates\n", shown.len(), total);
        }
    }
    text
}

/// One difference, with its source and its values.
fn one(number: usize, difference: &Difference, answer: &Answer, failing: u32) -> String {
    let spot = &difference.spot;
    let what = sentence(difference);
    let many = counts(difference, answer.passing, failing);
    let mut text = format!(
        "\n{number}. {}: {what}\n",
        printable(&spot.site.to_string())
    );
    text += &format!("   {many}\n");
    if let Some(root) = &answer.root {
        text += &source(root, spot);
        if let Some(other) = &difference.other {
            text += &source(root, other);
        }
    }
    let [passing_values, failing_values] = &difference.values;
    if spot.site.kind != Kind::Leftover && difference.other.is_none() {
        text += &values("passing runs", passing_values);
        text += &values("failing runs", failing_values);
    }
    if let [Some(usual), Some(odd)] = difference.times
        && (usual - odd).abs() >= 1000.0
    {
        let (usual, odd) = (time(usual), time(odd));
        text += &format!("   it takes {usual} in passing and {odd} in failing runs (medians)\n");
    }
    if let Some(category) = difference.category {
        let remedy = category.remedy();
        text += &format!("   category: {category}; what usually helps: {remedy}\n");
    }
    text
}

fn values(title: &str, values: &[String]) -> String {
    if values.is_empty() {
        return String::new();
    }
    let shown = values.iter().map(|value| printable(value));
    format!("   {title}: {}\n", shown.collect::<Vec<_>>().join(", "))
}

/// The lines around a call. A file that cannot be read has none.
fn source(root: &Utf8Path, spot: &Spot) -> String {
    let Ok(file) = fs::read_to_string(root.join(&spot.site.file)) else {
        return String::new();
    };
    let line = spot.site.line as usize;
    let first = line.saturating_sub(AROUND).max(1);
    let lines = file.lines().enumerate().skip(first - 1);
    let lines = lines.take(line + AROUND + 1 - first).map(|(at, text)| {
        let mark = if at + 1 == line { ">" } else { " " };
        format!("   {mark} {:>4} | {}\n", at + 1, printable(text))
    });
    lines.collect()
}

/// How the runs were made, and how far they can be trusted.
fn footnotes(answer: &Answer) -> String {
    let mut notes = Vec::new();
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
    if !answer.is_enough {
        notes.push(
            "There were too few passing or failing runs to tell chance from cause: take the first \
             places with a grain of salt."
                .to_owned(),
        );
    }
    if answer.cut > 0 {
        let traces = plural(answer.cut as usize, "trace was", "traces were");
        notes.push(format!("{traces} cut off or lost."));
    }
    if answer.neither > 0 {
        let runs = plural(answer.neither as usize, "run", "runs");
        notes.push(format!("{runs} did neither pass nor fail."));
    }
    if notes.is_empty() {
        return String::new();
    }
    format!("\n{}\n", notes.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rarest_failure_follows_the_rule_of_three() {
        // By hand: 1 - 0.05^(1/100) = 0.02951.
        assert!((rarest(100) - 0.029_51).abs() < 1e-5);
        assert!((rarest(1) - 0.95).abs() < 1e-12);
    }
}
