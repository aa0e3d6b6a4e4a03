//! The end of the report for a person: the flaky tests by name, and what happened in numbers.

use console::Style;
use unflake_core::event::Ending;

use super::{Report, plural, seconds};
use crate::view::printable::{printable, printable_lines};

/// The last line: what happened, in numbers.
pub(super) fn write(report: &Report) -> String {
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
        Some(Ending::OutOfTime) => " (the time ran out before all tests had run)".to_owned(),
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
    let whose = counts.describe_whose();
    let whose = whose.map_or_else(String::new, |whose| format!("\nof the failures: {whose}"));
    format!(
        "{}{tests} in {}: {}{how}{whose}",
        flaky_ids(report),
        seconds(report.elapsed),
        parts.join(", ")
    )
}

/// The flaky tests by their ids, one a line, to be copied.
fn flaky_ids(report: &Report) -> String {
    let flaky = report.findings.iter().filter(|one| one.verdict.is_flaky());
    let ids: Vec<String> = flaky.map(|one| printable(one.test.name())).collect();
    if ids.is_empty() {
        return String::new();
    }
    format!("flaky:\n  {}\n", ids.join("\n  "))
}
