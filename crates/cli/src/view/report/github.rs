//! What GitHub Actions shows by itself: annotations at the tests, and the step summary.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};

use camino::Utf8Path;
use unflake_core::policy::Policy;
use unflake_core::verdict::Finding;

use super::{Report, markdown, order, whose};
use crate::quarantine::{describe, is_yours};

/// Writes annotations to `stderr` and the summary to the file that GitHub names, when run there.
pub(crate) fn write(report: &Report, policy: Policy, stderr: &mut impl Write) -> io::Result<()> {
    if env::var("GITHUB_ACTIONS").as_deref() != Ok("true") {
        return Ok(());
    }
    for annotation in annotations(report, policy) {
        writeln!(stderr, "{annotation}")?;
    }
    if let Ok(path) = env::var("GITHUB_STEP_SUMMARY") {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all(markdown::write(report).as_bytes())?;
    }
    Ok(())
}

fn annotations(report: &Report, policy: Policy) -> Vec<String> {
    let findings = report.findings_by_weight().into_iter();
    let mut lines: Vec<String> = findings
        .map(|finding| annotate(report, policy, finding))
        .collect();
    for error in &report.collection_errors {
        let title = property("collection error");
        let message = data(&format!("{}\n{}", error.place, error.text));
        lines.push(format!("::error title={title}::{message}"));
    }
    for (case, why) in &report.unmatched {
        let message = data(&format!("{case}: {why}"));
        lines.push(format!("::error title=unmatched failure::{message}"));
    }
    for error in &report.session_errors {
        lines.push(format!("::error title=test session::{}", data(error)));
    }
    lines
}

fn annotate(report: &Report, policy: Policy, finding: &Finding) -> String {
    let quarantined = report.quarantine.of(&finding.test);
    let level = if quarantined.is_some() && !is_yours(finding) {
        "notice"
    } else if policy.forgives(finding) {
        "warning"
    } else {
        "error"
    };
    let place = report.test(&finding.test).map_or_else(String::new, |test| {
        let file = in_workspace(report, &test.file);
        format!("file={},line={},", property(&file), test.line)
    });
    let title = property(&format!("{}: {}", finding.verdict.label(), finding.test));
    let message = finding
        .trials
        .first()
        .map_or("", |trial| &trial.account.message);
    let mut lines: Vec<String> = whose::answer(finding).into_iter().collect();
    lines.extend([finding.verdict.meaning().to_owned(), message.to_owned()]);
    lines.extend(quarantined.map(|one| format!("quarantined {}", describe(one))));
    lines.extend(whose::settle(finding));
    lines.extend(
        finding
            .blame
            .iter()
            .flat_map(|blame| whose::evidence(blame)),
    );
    lines.extend(order::describe_lines(finding));
    let message = data(&lines.join("\n"));
    format!("::{level} {place}title={title}::{message}")
}

/// A file's path from the root of the repository, which is what GitHub wants.
fn in_workspace(report: &Report, file: &str) -> String {
    let root = report.listing.as_ref().map_or("", |listing| &listing.root);
    let whole = Utf8Path::new(root).join(file);
    let workspace = env::var("GITHUB_WORKSPACE").unwrap_or_default();
    let short = whole.strip_prefix(&workspace);
    short.map_or_else(|_| file.to_owned(), ToString::to_string)
}

fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_name_cannot_forge_another_command() {
        assert_eq!(
            property("a::b,c\n::error::x"),
            "a%3A%3Ab%2Cc%0A%3A%3Aerror%3A%3Ax"
        );
        assert_eq!(data("50%\r\n"), "50%25%0D%0A");
    }
}
