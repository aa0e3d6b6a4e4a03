//! Python functions by their indentation, as far as a small edit needs them.
//!
//! Code that does not look as expected is no function to edit: the answer is then `None`, and nothing is suggested.

/// A function in a source; lines are counted from 0.
pub(super) struct Function<'a> {
    lines: Vec<&'a str>,
    /// The line with `def`.
    head: usize,
    /// Its first line of its own.
    body: usize,
    /// The line after its last one.
    end: usize,
}

impl<'a> Function<'a> {
    /// The innermost function around a line.
    pub(super) fn around(source: &'a str, line: usize) -> Option<Self> {
        let lines: Vec<&str> = source.lines().collect();
        let mut limit = indent_of(lines.get(line)?);
        for head in (0..line).rev() {
            let text = lines[head];
            if is_blank(text) || indent_of(text) >= limit {
                continue;
            }
            if is_head(text) {
                return Self::at(lines, head).filter(|one| one.body <= line && line < one.end);
            }
            limit = indent_of(text);
        }
        None
    }

    /// The only function of this name.
    pub(super) fn named(source: &'a str, name: &str) -> Option<Self> {
        let lines: Vec<&str> = source.lines().collect();
        let starts = |text: &str| {
            let text = text.trim_start();
            let text = text.strip_prefix("async ").unwrap_or(text);
            let rest = text
                .strip_prefix("def ")
                .and_then(|text| text.strip_prefix(name));
            rest.is_some_and(|rest| rest.starts_with('('))
        };
        let mut heads = (0..lines.len()).filter(|at| starts(lines[*at]));
        let head = heads.next()?;
        if heads.next().is_some() {
            return None;
        }
        Self::at(lines, head)
    }

    fn at(lines: Vec<&'a str>, head: usize) -> Option<Self> {
        let closed = (head..lines.len()).find(|at| lines[*at].trim_end().ends_with(':'))?;
        let body = (closed + 1..lines.len()).find(|at| !is_blank(lines[*at]))?;
        let depth = indent_of(lines[head]);
        let is_out = |at: &usize| !is_blank(lines[*at]) && indent_of(lines[*at]) <= depth;
        let end = (body..lines.len()).find(is_out).unwrap_or(lines.len());
        let end = (body..end).rev().find(|at| !is_blank(lines[*at]))? + 1;
        Some(Self {
            lines,
            head,
            body,
            end,
        })
    }

    pub(super) fn line(&self, at: usize) -> &'a str {
        self.lines[at]
    }

    /// The lines of the body by their numbers.
    pub(super) fn body(&self) -> impl DoubleEndedIterator<Item = (usize, &'a str)> {
        (self.body..self.end).map(|at| (at, self.lines[at]))
    }

    /// The indentation of its statements.
    pub(super) fn indent(&self) -> usize {
        indent_of(self.lines[self.body])
    }

    /// The parameter of this name, with what it is annotated with and its default.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let head = self.lines[self.head..self.body].join(" ");
        let inside = head.split_once('(').map_or("", |(_, inside)| inside);
        // A default may be a call: only what stands where a parameter does counts.
        let mut depth = 0_u32;
        let mut word = String::new();
        let mut words = Vec::new();
        for letter in inside.chars() {
            match letter {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' if depth > 0 => depth -= 1,
                ',' | ')' if depth == 0 => words.push(std::mem::take(&mut word)),
                _ if depth == 0 => word.push(letter),
                _ => {}
            }
        }
        let mut words = words.into_iter();
        words.find(|word| word.split([':', '=']).next().map(str::trim) == Some(name))
    }

    /// The line after the block in which a line of the body stands.
    pub(super) fn block_end(&self, line: usize) -> usize {
        let depth = indent_of(self.lines[line]);
        let is_out = |at: &usize| !is_blank(self.lines[*at]) && indent_of(self.lines[*at]) < depth;
        let end = (line..self.end).find(is_out).unwrap_or(self.end);
        let last = (line..end).rev().find(|at| !is_blank(self.lines[*at]));
        last.map_or(end, |last| last + 1)
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn is_head(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("def ") || line.starts_with("async def ")
}

/// The spaces before a line. Where tabs are used nothing is as deep as anything else.
pub(super) fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// `name = expression`, if a statement of one line is that.
pub(super) fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, expression) = line.trim().split_once(" = ")?;
    (is_name(name) && is_whole(expression)).then_some((name, expression))
}

/// Whether all that a text opens is closed in it, so that it is no part of a longer statement.
pub(super) fn is_whole(text: &str) -> bool {
    let count = |letters: &[char]| text.chars().filter(|one| letters.contains(one)).count();
    let is_even = count(&['(', '[', '{']) == count(&[')', ']', '}']);
    is_even && !text.ends_with('\\') && !text.contains("\"\"\"") && !text.contains("'''")
}

pub(super) fn is_name(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    !text.is_empty()
        && text.chars().all(is_letter)
        && !text.starts_with(|letter: char| letter.is_ascii_digit())
}
