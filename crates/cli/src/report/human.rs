//! The report for a person: what was flaky first, real failures last, with pytest's own text.

use std::fmt::Write;

use console::{Style, style};
use unflake_core::cost::{Costs, Spent};
use unflake_core::event::Ending;
use unflake_core::nio::Setting;
use unflake_core::trial::{Birth, Rung, Trial};
use unflake_core::verdict::{Finding, Verdict};

use super::{Report, changes, describe_note, order, plural, seconds};
use crate::printable::{printable, printable_lines};
use crate::quarantine::describe;

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
    let findings = report.findings_by_weight();
    let is_flaky = |finding: &&&Finding| finding.verdict.is_flaky();
    for finding in findings.iter().filter(is_flaky) {
        write_finding(&mut text, report, finding);
    }
    write_costs(&mut text, report.costs);
    for finding in findings.iter().filter(|finding| !is_flaky(finding)) {
        write_finding(&mut text, report, finding);
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
    text.push_str(&conclusion(report));
    text
}

fn write_finding(text: &mut String, report: &Report, finding: &Finding) {
    text.push('\n');
    let label = finding.verdict.label().to_uppercase();
    let label = colour(finding.verdict).apply_to(format!("{label:<10}"));
    let name = style(printable(finding.test.name())).bold();
    let _ = writeln!(text, "{label} {name}");
    let _ = writeln!(text, "           {}", finding.verdict.meaning());
    if let Some(quarantined) = report.quarantine.of(&finding.test) {
        let title = style("quarantined").yellow();
        let words = printable(&describe(quarantined));
        let _ = writeln!(text, "           {title} {words}");
    }
    if finding.is_latent {
        let line =
            "latent: it takes tests of two classes in one JVM, and each class has its own here";
        let _ = writeln!(text, "           {line}");
    }
    let mut first = None;
    for trial in &finding.trials {
        let is_first = matches!(trial.rung, Rung::Once(setting) if !matches!(setting, Setting::Plain | Setting::Alone | Setting::Ordered));
        if is_first {
            first = Some(trial);
        } else {
            write_trial(text, first.take(), trial);
        }
    }
    write_reasons(text, report, finding);
    write_commands(text, report, finding);
    write_failure(text, finding);
}

/// What the finding has to do with: changes, other tests, files, and what was seen to help.
fn write_reasons(text: &mut String, report: &Report, finding: &Finding) {
    let changes = finding.comparison.iter().flat_map(changes::describe);
    for (place, line) in changes.enumerate() {
        let title = if place == 0 { "changes:" } else { "        " };
        write_titled(text, title, &line);
    }
    for (title, line) in order::describe(finding) {
        write_titled(text, &format!("{title}:"), &line);
    }
    if !finding.left_behind.is_empty() {
        let files = printable(&finding.left_behind.join(", "));
        write_titled(text, "it changed:", &cut(&files, 200));
    }
    if finding.verdict.depends_on_order() && finding.dependence.is_none() {
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

/// How to see it again, with unflake and without.
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

/// The first failure in its own words, unless it is forgiven.
fn write_failure(text: &mut String, finding: &Finding) {
    let mut failed = finding.trials.iter();
    let first = failed.find(|trial| trial.outcome.is_failure());
    if !finding.verdict.is_flaky()
        && let Some(first) = first
    {
        if matches!(first.rung, Rung::Again(_)) {
            let title = style("the second run:").dim();
            let _ = writeln!(text, "           {title}");
        }
        write_block(text, &first.account.text);
        write_block(text, &first.account.output);
    }
}

fn write_titled(text: &mut String, title: &str, line: &str) {
    let title = style(title).dim();
    let _ = writeln!(text, "           {title} {}", printable(line));
}

/// So many leftovers are shown; JSON has all.
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
    let message = cut(&printable(&trial.account.message), 70);
    let line = format!(
        "           {rung:<12} {before}{outcome} {:>7}  {place:<9} {message}",
        seconds(trial.duration),
    );
    let _ = writeln!(text, "{}", line.trim_end());
}

fn write_block(text: &mut String, block: &str) {
    for line in printable_lines(block.trim_end()).lines() {
        let line = format!("    {line}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

fn write_costs(text: &mut String, costs: Costs) {
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
    let even = |name: &str, fresh: Spent| {
        let ratio = costs.break_even(fresh)?;
        Some(format!("{ratio:.1} for {name}"))
    };
    let even = [
        even("a fork", costs.fork),
        even("a new process", costs.exec),
    ];
    let even: Vec<String> = even.into_iter().flatten().collect();
    if !even.is_empty() {
        let even = even.join(", ");
        let _ = writeln!(
            text,
            "        same-VM reruns for the same time (N_E): {even}"
        );
    }
}

/// The last line: what happened, in numbers.
fn conclusion(report: &Report) -> String {
    let counts = report.counts();
    let kinds = [
        (
            counts.collection_errors,
            "collection error",
            Style::new().red().bold(),
        ),
        (counts.unmatched, "unmatched", Style::new().red().bold()),
        (counts.broken, "broken", Style::new().red().bold()),
        (
            counts.unexamined,
            "failed, unexamined",
            Style::new().red().bold(),
        ),
        (counts.unclear, "unclear", Style::new().red().bold()),
        (counts.nio, "NIO", Style::new().red().bold()),
        (
            counts.nio_after_others,
            "NIO after others",
            Style::new().red().bold(),
        ),
        (counts.victim, "victim", Style::new().red().bold()),
        (
            counts.non_deterministic,
            "non-deterministic",
            Style::new().yellow().bold(),
        ),
        (counts.brittle, "brittle", Style::new().red().bold()),
        (
            counts.pre_existing,
            "pre-existing",
            Style::new().red().bold(),
        ),
        (counts.quarantined, "quarantined", Style::new().yellow()),
        (counts.flaky, "flaky", Style::new().yellow().bold()),
        (counts.passed, "passed", Style::new().green()),
        (counts.skipped, "skipped", Style::new().dim()),
        (counts.xfailed, "xfailed", Style::new().dim()),
        (counts.xpassed, "xpassed", Style::new().dim()),
        (counts.not_run, "not run", Style::new().yellow()),
    ];
    let parts: Vec<String> = kinds
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, name, style)| {
            let name = if *name == "collection error" {
                plural(*count, "collection error", "collection errors")
            } else {
                format!("{count} {name}")
            };
            style.apply_to(name).to_string()
        })
        .collect();
    let how = match &report.ending {
        Some(Ending::Completed) | None => String::new(),
        Some(Ending::Interrupted) => " (interrupted)".to_owned(),
        Some(Ending::OutOfTime) => " (the time was over before all had run)".to_owned(),
        Some(Ending::CutShort { reason }) => {
            format!("\nERROR {}", printable_lines(reason))
        }
        Some(Ending::Stopped { reason }) => format!(" (pytest: {})", printable(reason)),
        Some(Ending::Quit { test, reason }) => {
            let test = printable(test.name());
            format!(
                " ({test} ended the session with pytest.exit: {})",
                printable(reason)
            )
        }
    };
    let tests = plural(counts.tests, "test", "tests");
    format!(
        "{tests} in {}: {}{how}",
        seconds(report.elapsed),
        parts.join(", ")
    )
}

fn colour(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Flaky(_) => Style::new().yellow().bold(),
        Verdict::Nio(_)
        | Verdict::NioAfterOthers
        | Verdict::Victim
        | Verdict::NonDeterministic
        | Verdict::Brittle
        | Verdict::PreExisting
        | Verdict::Broken(_)
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
    use crate::report::sample;

    #[test]
    fn the_whole_report_reads_well() {
        insta::assert_snapshot!(super::write(&sample::report()));
    }
}
