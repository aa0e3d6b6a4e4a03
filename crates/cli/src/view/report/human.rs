//! The report for a person: what was flaky first, real failures last, with pytest's own text.

use std::fmt::Write;

use console::{Style, style};
use unflake_core::cost::{Costs, Spent};
use unflake_core::nio::Setting;
use unflake_core::trial::{Birth, Rung, Trial};
use unflake_core::verdict::{Finding, Verdict};

use super::{Report, conclusion, describe_note, order, plural, seconds, whose};
use crate::quarantine::describe;
use crate::view::printable::{printable, printable_lines};

/// The whole report. It ends without a line break.
pub(crate) fn write(report: &Report) -> String {
    let mut text = String::new();
    for note in &report.notes {
        let _ = writeln!(
            text,
            "{} {}",
            style("note:").bold(),
            printable(&describe_note(note))
        );
    }
    for (finding, others) in report.incidents() {
        write_finding(&mut text, report, finding, &others);
    }
    if report.shows_costs {
        write_costs(&mut text, report);
    }
    write_latent(&mut text, report);
    for error in &report.collection_errors {
        let title = format!("ERROR collecting {}", printable(&error.place));
        let _ = writeln!(text, "\n{}", style(title).red().bold());
        write_block(&mut text, &error.text);
    }
    for (case, why) in &report.unmatched {
        let title = format!("UNMATCHED  {}", printable(case));
        let _ = writeln!(text, "\n{}", style(title).red().bold());
        let _ = writeln!(text, "           failed in the report: {}", printable(why));
    }
    for error in &report.session_errors {
        let (title, rest) = error.split_once('\n').unwrap_or((error, ""));
        let title = format!("ERROR {}", printable(title));
        let _ = writeln!(text, "\n{}", style(title).red().bold());
        write_block(&mut text, rest);
    }
    text.push('\n');
    text.push_str(&conclusion::write(report));
    text
}

fn write_finding(text: &mut String, report: &Report, finding: &Finding, others: &[&Finding]) {
    text.push('\n');
    let label = finding.verdict.label().to_uppercase();
    let label = colour(finding.verdict).apply_to(format!("{label:<10}"));
    let name = style(printable(finding.test.name())).bold();
    let _ = writeln!(text, "{label} {name}");
    if let Some(answer) = whose::answer(finding) {
        write_wrapped(text, &printable(&answer), true);
    }
    write_wrapped(text, finding.verdict.meaning(), false);
    if let Some(settle) = whose::settle(finding) {
        write_wrapped(
            text,
            &printable(&format!("what would settle it: {settle}")),
            false,
        );
    }
    if let Some(quarantined) = report.quarantine.of(&finding.test) {
        let title = style("quarantined").yellow();
        let words = printable(&describe(quarantined));
        let _ = writeln!(text, "           {title} {words}");
    }
    if finding.is_latent {
        let line =
            "latent: it needs tests of two classes in one JVM, but here each class has its own";
        let _ = writeln!(text, "           {line}");
    }
    let mut first = None;
    let told = finding
        .trials
        .iter()
        .filter(|trial| !trial.rung.is_for_blame());
    for trial in told {
        let is_first = matches!(trial.rung, Rung::Once(setting) if !matches!(setting, Setting::Plain | Setting::Alone | Setting::Ordered));
        if is_first {
            first = Some(trial);
        } else {
            write_trial(text, first.take(), trial);
        }
    }
    write_others(text, others);
    write_reasons(text, report, finding);
    write_commands(text, report, finding);
    write_failure(text, finding);
}

/// The tests that failed together with one and in the same way. Each was confirmed, and has its own answers.
fn write_others(text: &mut String, others: &[&Finding]) {
    if others.is_empty() {
        return;
    }
    let count = plural(others.len(), "more test", "more tests");
    let title = style(format!(
        "{count} failed in the same way, with the same answers:"
    ));
    let _ = writeln!(text, "           {}", title.dim());
    for other in others {
        let _ = writeln!(text, "             {}", printable(other.test.name()));
    }
}

/// The evidence of a finding: changes, other tests, files, and a change that was seen to help.
fn write_reasons(text: &mut String, report: &Report, finding: &Finding) {
    let changes = finding.blame.iter();
    let changes = changes.flat_map(|blame| whose::evidence(blame));
    for (place, line) in changes.enumerate() {
        let title = if place == 0 { "changes:" } else { "" };
        write_hanging(text, title, &printable(&line));
    }
    for (title, line) in order::describe(finding) {
        write_prose(text, &format!("{title}:"), &printable(&line));
    }
    if !finding.left_behind.is_empty() {
        let files = printable(&finding.left_behind.join(", "));
        write_titled(text, "it changed:", &cut(&files, 200));
    }
    let polluters = finding.blame.iter().flat_map(|blame| &blame.polluters);
    let is_known = finding.dependence.is_some() || polluters.count() > 0;
    if finding.verdict.depends_on_order() && !is_known {
        let command = report.invocation.order(report, finding);
        write_titled(text, "which tests does it depend on:", &command);
    }
    if let Some(fix) = finding.cause.as_ref().and_then(|cause| cause.fix.as_ref()) {
        let title = style("a change that was seen to help:").dim();
        let _ = writeln!(text, "           {title}");
        for line in printable_lines(fix.diff.trim_end()).lines() {
            let _ = writeln!(text, "             {}", line.trim_end());
        }
    }
}

/// The commands that show the finding again, with unflake and without.
fn write_commands(text: &mut String, report: &Report, finding: &Finding) {
    let invocation = &report.invocation;
    write_titled(text, "repeat:", &invocation.repeat(report, finding));
    if let Some(why) = invocation.why(finding) {
        write_titled(text, "why:", &why);
    }
    let recipes = [
        invocation.recipe(report, finding),
        invocation.order_recipe(report, finding),
    ];
    for recipe in recipes.iter().flatten() {
        let title = style("with plain pytest:").dim();
        let _ = writeln!(text, "           {title}");
        for line in recipe {
            let _ = writeln!(text, "             {}", printable(line));
        }
    }
}

/// The first failure in its own words.
fn write_failure(text: &mut String, finding: &Finding) {
    let mut failed = finding.trials.iter();
    let first = failed.find(|trial| trial.outcome.is_failure());
    if let Some(first) = first {
        if matches!(first.rung, Rung::Again(_)) {
            let title = style("the second run:").dim();
            let _ = writeln!(text, "           {title}");
        }
        write_block(text, &first.account.text);
        write_block(text, &first.account.output);
    }
}

/// The width of a line in columns, and what stands before the lines of a finding.
const WIDTH: usize = 80;
const INDENT: &str = "           ";

/// A sentence in lines of 80 columns.
fn write_wrapped(text: &mut String, sentence: &str, is_bold: bool) {
    for line in wrap(sentence, WIDTH - INDENT.len()) {
        let line = if is_bold {
            style(line).bold()
        } else {
            style(line)
        };
        let _ = writeln!(text, "{INDENT}{line}");
    }
}

/// A sentence beside the title `changes:`, or in its column if `title` is empty.
fn write_hanging(text: &mut String, title: &str, sentence: &str) {
    const TITLE: usize = "changes:".len();
    let lines = wrap(sentence, WIDTH - INDENT.len() - TITLE - 3);
    for (place, line) in lines.iter().enumerate() {
        let title = if place == 0 { title } else { "" };
        let title = style(format!("{title:<TITLE$}")).dim();
        // A line that continues the one before is indented.
        let more = if place == 0 { "" } else { "  " };
        let _ = writeln!(text, "{INDENT}{title} {more}{line}");
    }
}

/// A sentence after a title of any length.
fn write_prose(text: &mut String, title: &str, sentence: &str) {
    let lines = wrap(&format!("{title} {sentence}"), WIDTH - INDENT.len() - 2);
    for (place, line) in lines.iter().enumerate() {
        let _ = match line.strip_prefix(title).filter(|_| place == 0) {
            Some(rest) => writeln!(text, "{INDENT}{}{rest}", style(title).dim()),
            None => writeln!(text, "{INDENT}  {line}"),
        };
    }
}

/// The words of a sentence in lines of at most `width` characters. A word that is longer than a line, an id for
/// example, stays whole.
fn wrap(sentence: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in sentence.trim().split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

fn write_titled(text: &mut String, title: &str, line: &str) {
    let title = style(title).dim();
    let _ = writeln!(text, "           {title} {}", printable(line));
}

/// The most leftovers that are shown; JSON has all.
const LATENT: usize = 20;

fn write_latent(text: &mut String, report: &Report) {
    for latent in report.latent.iter().take(LATENT) {
        let piece = &latent.piece;
        let title = style(format!("{:<10}", "LATENT")).yellow().bold();
        let path = style(printable(&piece.path)).bold();
        let _ = writeln!(text, "\n{title} {path}");
        let absent = "(not there)";
        let before = piece.before.as_deref().unwrap_or(absent);
        let after = piece.after.as_deref().unwrap_or(absent);
        let change = format!("{} {before} → {after}", piece.kind);
        let _ = writeln!(text, "           {}", printable(&change));
        let left = style("left changed by:").dim();
        let tests = printable(&order::name_some(&latent.tests));
        let _ = writeln!(text, "           {left} {tests}");
        if !latent.readers.is_empty() {
            let named = style("named in:").dim();
            let _ = writeln!(
                text,
                "           {named} {}",
                printable(&latent.readers.join(", "))
            );
        }
    }
    let more = report.latent.len().saturating_sub(LATENT);
    if more > 0 {
        let _ = writeln!(
            text,
            "\n{}",
            style(format!("and {more} more in --format json")).dim()
        );
    }
}

/// One trial, or two in a row.
fn write_trial(text: &mut String, once: Option<&Trial>, trial: &Trial) {
    let outcome = |trial: &Trial| {
        let outcome = format!("{:<8}", trial.outcome.label());
        if trial.outcome.is_pass() {
            style(outcome).green()
        } else if trial.outcome.is_failure() {
            style(outcome).red()
        } else {
            style(outcome).yellow()
        }
    };
    let before = once.map_or_else(String::new, |once| format!("{} ", outcome(once)));
    let rung = once.unwrap_or(trial).rung.label();
    let outcome = outcome(trial);
    let place = match trial.birth {
        Birth::Exec => trial.vm.to_string(),
        Birth::Fork => format!("{} fork", trial.vm),
        Birth::Elsewhere => "elsewhere".to_owned(),
    };
    let line = format!(
        "{INDENT}{rung:<12} {before}{outcome} {:>7}  {place:<9} ",
        seconds(trial.duration),
    );
    // The first failure follows in its own words.
    let room = WIDTH.saturating_sub(console::measure_text_width(&line));
    let message = cut(&printable(&trial.account.message), room);
    let _ = writeln!(text, "{}", format!("{line}{message}").trim_end());
}

fn write_block(text: &mut String, block: &str) {
    for line in printable_lines(block.trim_end()).lines() {
        let line = format!("    {line}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn write_costs(text: &mut String, report: &Report) {
    let costs = report.costs;
    let kinds = [
        ("at once", costs.immediate),
        ("at the end", costs.end),
        ("in a fork", costs.fork),
        ("in a new process", costs.exec),
    ];
    let spent: Vec<String> = kinds
        .iter()
        .filter_map(|(name, spent)| {
            Some(format!("{} × {:.3}s {name}", spent.trials, spent.each()?))
        })
        .collect();
    if spent.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{} {}", style("reruns:").bold(), spent.join(", "));
    let mut lines = vec![(write_even(costs), "all reruns".to_owned())];
    for finding in &report.findings {
        let even = write_even(Costs::of(&finding.trials));
        lines.push((even, printable(finding.test.name())));
    }
    lines.retain(|(even, _)| !even.is_empty());
    if !lines.is_empty() {
        let _ = writeln!(
            text,
            "reruns in the same process that take as long as one other rerun (N_E):"
        );
    }
    for (even, whose) in lines {
        let _ = writeln!(text, "    {even}: {whose}");
    }
}

/// The number of reruns in the same VM that take as long as one in each kind of fresh VM.
fn write_even(costs: Costs) -> String {
    let even = |name: &str, fresh: Spent| {
        let ratio = costs.break_even(fresh)?;
        Some(format!("{ratio:.1} {name}"))
    };
    let even = [
        even("in a fork", costs.fork),
        even("in a new process", costs.exec),
    ];
    let even: Vec<String> = even.into_iter().flatten().collect();
    even.join(", ")
}

fn colour(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Flaky(_) => Style::new().yellow().bold(),
        Verdict::Nio(_)
        | Verdict::NioAfterOthers
        | Verdict::Victim
        | Verdict::NonDeterministic
        | Verdict::Brittle
        | Verdict::Broken
        | Verdict::Unclear(_)
        | Verdict::Unexamined(_) => Style::new().red().bold(),
    }
}

/// The first `width` characters of a line.
fn cut(line: &str, width: usize) -> String {
    console::truncate_str(line, width, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use crate::view::report::sample;

    #[test]
    fn the_whole_report_reads_well() {
        insta::assert_snapshot!(super::write(&sample::report()));
    }
}
