//! Lines that are to stand in a file, and the diff that says so.

use std::fmt::Write;

/// Lines that are to stand in a file, in place of others or between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The line before which the edit begins, from 0.
    pub at: usize,
    /// The number of lines that are removed from there on.
    pub removed: usize,
    /// The lines that come.
    pub lines: Vec<String>,
}

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// An edit as a unified diff.
pub fn to_diff(file: &str, source: &str, edit: &Edit) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let end = edit.at + edit.removed;
    let from = edit.at.saturating_sub(CONTEXT);
    let to = (end + CONTEXT).min(lines.len());
    let old = to - from;
    let new = old + edit.lines.len() - edit.removed;
    let start = |count: usize| if count == 0 { from } else { from + 1 };
    let mut diff = format!(
        "--- a/{file}\n+++ b/{file}\n@@ -{},{old} +{},{new} @@\n",
        start(old),
        start(new)
    );
    let mut add = |mark: char, lines: &[&str]| {
        for line in lines {
            // Writing to a text cannot fail.
            let _ = writeln!(diff, "{mark}{line}");
        }
    };
    let new: Vec<&str> = edit.lines.iter().map(String::as_str).collect();
    add(' ', &lines[from..edit.at]);
    add('-', &lines[edit.at..end]);
    add('+', &new);
    add(' ', &lines[end..to]);
    diff
}

/// A source with an edit made.
pub fn apply(source: &str, edit: &Edit) -> String {
    let mut lines: Vec<&str> = source.lines().collect();
    let new = edit.lines.iter().map(String::as_str);
    lines.splice(edit.at..edit.at + edit.removed, new);
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_go_and_come_make_one_hunk() {
        let source = "a\nb\nc\nd\ne\nf\n";
        let edit = Edit {
            at: 1,
            removed: 2,
            lines: vec!["B".to_owned()],
        };
        let diff = "--- a/x\n+++ b/x\n@@ -1,6 +1,5 @@\n a\n-b\n-c\n+B\n d\n e\n f\n";
        assert_eq!(to_diff("x", source, &edit), diff);
        assert_eq!(apply(source, &edit), "a\nB\nd\ne\nf\n");
    }
}
