//! Lines that are to stand in a file, and the diff that says so.

use std::fmt::Write;

/// A block of lines that is to stand in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insertion {
    /// Before this line, from 0.
    pub at: usize,
    /// The lines.
    pub lines: Vec<String>,
}

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// An insertion as a unified diff.
pub fn to_diff(file: &str, source: &str, insertion: &Insertion) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let from = insertion.at.saturating_sub(CONTEXT);
    let to = (insertion.at + CONTEXT).min(lines.len());
    let old = to - from;
    let new = old + insertion.lines.len();
    let start = |count: usize| if count == 0 { from } else { from + 1 };
    let mut diff = format!(
        "--- a/{file}\n+++ b/{file}\n@@ -{},{old} +{},{new} @@\n",
        start(old),
        start(new)
    );
    let mut add = |mark: char, line: &str| {
        let _ = writeln!(diff, "{mark}{line}");
    };
    lines[from..insertion.at]
        .iter()
        .for_each(|line| add(' ', line));
    insertion.lines.iter().for_each(|line| add('+', line));
    lines[insertion.at..to]
        .iter()
        .for_each(|line| add(' ', line));
    diff
}

/// A source with an insertion made.
pub fn apply(source: &str, insertion: &Insertion) -> String {
    let mut lines: Vec<&str> = source.lines().collect();
    let new = insertion.lines.iter().map(String::as_str);
    lines.splice(insertion.at..insertion.at, new);
    let mut text = lines.join("\n");
    text.push('\n');
    text
}
