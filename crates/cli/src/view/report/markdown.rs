//! The report as Markdown: for pull requests, and for GitHub's step summary.

use std::fmt::Write;

use unflake_core::verdict::Finding;

use super::{Report, order, plural, seconds, whose};
use crate::quarantine::describe;
use crate::view::printable::{printable, printable_lines};

/// The most characters of a failure text that a summary holds.
const TEXT_LIMIT: usize = 4000;

/// The report as Markdown.
pub(crate) fn write(report: &Report) -> String {
    let counts = report.counts();
    let title = match (counts.failures(), counts.flaky) {
        (0, 0) => "no failures".to_owned(),
        (0, flaky) => format!("{flaky} flaky"),
        (failures, 0) => plural(failures, "failure", "failures"),
        (failures, flaky) => format!("{}, {flaky} flaky", plural(failures, "failure", "failures")),
    };
    let whose = counts.describe_whose();
    let whose = whose.map_or_else(String::new, |whose| format!(" ({whose})"));
    let mut text = format!("## unflake: {title}{whose}\n\n");
    let _ = writeln!(
        text,
        "{} in {}: {} passed, {} skipped{}.\n",
        plural(counts.tests, "test", "tests"),
        seconds(report.elapsed),
        counts.passed,
        counts.skipped,
        match counts.quarantined {
            0 => String::new(),
            some => format!(", {some} quarantined"),
        }
    );
    let mut findings = report.findings_by_weight();
    findings.reverse();
    if !findings.is_empty() {
        text.push_str("| how | whose | test | what it means |\n|---|---|---|---|\n");
        for finding in &findings {
            let (verdict, mut meaning) = (
                finding.verdict.label(),
                finding.verdict.meaning().to_owned(),
            );
            if let Some(quarantined) = report.quarantine.of(&finding.test) {
                meaning = format!("{meaning}; quarantined {}", cell(&describe(quarantined)));
            }
            let blame = finding.blame.as_deref();
            let whose = blame.map_or("", |blame| blame.whose.label());
            let whose = whose.replace('-', " ");
            let _ = writeln!(
                text,
                "| **{verdict}** | **{whose}** | {} | {meaning} |",
                cell(finding.test.name())
            );
        }
        text.push('\n');
    }
    for finding in findings {
        write_finding(&mut text, report, finding);
    }
    for error in &report.collection_errors {
        let _ = writeln!(text, "**Collection error** in {}\n", cell(&error.place));
        write_block(&mut text, &error.text);
    }
    for (case, why) in &report.unmatched {
        let _ = writeln!(text, "**Unmatched** {}: {}\n", cell(case), html(why));
    }
    for error in &report.session_errors {
        text.push_str("**The test session failed**\n\n");
        write_block(&mut text, error);
    }
    text
}

fn write_finding(text: &mut String, report: &Report, finding: &Finding) {
    let _ = writeln!(
        text,
        "<details><summary>{}</summary>\n",
        html(finding.test.name())
    );
    text.push_str("| rung | outcome | time | process | message |\n|---|---|---|---|---|\n");
    let told = finding
        .trials
        .iter()
        .filter(|trial| !trial.rung.is_for_blame());
    for trial in told {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} {} | {} |",
            trial.rung.label(),
            trial.outcome.label(),
            seconds(trial.duration),
            trial.vm,
            trial.birth.label(),
            cell(&trial.account.message)
        );
    }
    let blame = finding.blame.iter();
    let changes = whose::answer(finding).into_iter();
    let changes = changes.chain(whose::settle(finding));
    let changes = changes.chain(blame.flat_map(|blame| whose::evidence(blame)));
    let changes: Vec<String> = changes.collect();
    if !changes.is_empty() {
        text.push_str("\nWhose it is:\n\n");
        for line in changes {
            let _ = writeln!(text, "- {}", cell(&line));
        }
    }
    let order = order::describe_lines(finding);
    if !order.is_empty() {
        text.push_str("\nWhat it depends on:\n\n");
        for line in order {
            let _ = writeln!(text, "- {}", cell(&line));
        }
    }
    if let Some(fix) = finding.cause.as_ref().and_then(|cause| cause.fix.as_ref()) {
        text.push_str("\nA change that was seen to help:\n\n");
        write_block(text, &fix.diff);
    }
    text.push_str("\nRepeat it:\n\n");
    write_block(text, &report.invocation.repeat(report, finding));
    let recipe = report.invocation.recipe(report, finding);
    let recipe = recipe.or_else(|| report.invocation.order_recipe(report, finding));
    if let Some(recipe) = recipe {
        text.push_str("With plain pytest:\n\n");
        write_block(text, &recipe.join("\n"));
    }
    let mut failed = finding
        .trials
        .iter()
        .filter(|trial| trial.outcome.is_failure());
    if let Some(first) = failed.next() {
        write_block(text, &first.account.text);
    }
    text.push_str("</details>\n\n");
}

/// Text in a table's cell: nothing in it can end the cell or become a tag.
fn cell(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let text = html(text).replace('|', "&#124;").replace('`', "&#96;");
    format!("<code>{text}</code>")
}

fn html(text: &str) -> String {
    printable(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A code block whose fence is longer than any run of backticks in it.
fn write_block(text: &mut String, block: &str) {
    let block = printable_lines(block.trim_end());
    if block.is_empty() {
        return;
    }
    let kept: String = block.chars().take(TEXT_LIMIT).collect();
    let longest = kept
        .split(|character| character != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = writeln!(text, "{fence}text\n{kept}\n{fence}\n");
}

#[cfg(test)]
mod tests {
    use crate::view::report::sample;

    #[test]
    fn the_whole_report_reads_well() {
        insta::assert_snapshot!(super::write(&sample::report()));
    }
}
