//! The answer of `git diff --raw -z -p -U0`, read while it comes: which files differ, and in which
//! lines. The text of the lines is passed over, so that the largest diff takes no memory.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use unflake_core::change::Lines;

/// A file in a diff.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its mode at the base, in octal digits; zeros if it was not there.
    pub(crate) old_mode: String,
    /// Its mode in the work tree; zeros if it is not there.
    pub(crate) new_mode: String,
    /// Git's letter: `A`dded, `D`eleted, `M`odified, `T`ype changed, `U`nmerged.
    pub(crate) status: u8,
    /// Whether the patch has a part about it. A file that is only younger than the index knows is listed, and has no
    /// patch.
    pub(crate) has_patch: bool,
    /// The lines that differ, as `ChangedFile::lines` has them.
    pub(crate) lines: Vec<Lines>,
}

/// All files of a diff by their names, which need not be UTF-8.
pub(crate) type Entries = BTreeMap<Vec<u8>, Entry>;

/// Reads a diff to its end. What is not one is invalid data.
pub(crate) fn read_patch(stdout: &mut impl BufRead) -> io::Result<Entries> {
    let mut entries = read_list(stdout)?;
    let mut name = Vec::new();
    let mut line = Vec::new();
    while read_part(stdout, b'\n', &mut line)? {
        if let Some(names) = line.strip_prefix(b"diff --git ") {
            name = read_name(names)?;
        } else if let Some(entry) = entries.get_mut(&name) {
            entry.has_patch = true;
            if line.starts_with(b"@@ ") {
                let hunk = Hunk::parse(&line)?;
                hunk.skip(stdout)?;
                hunk.add_to(&mut entry.lines);
            }
        } else if !line.starts_with(b"* Unmerged path ") {
            return Err(odd(&line));
        }
    }
    Ok(entries)
}

/// The list before the patch: `:old new hash hash status`, then the name, with a NUL after each, and
/// one more NUL where the patch begins.
fn read_list(stdout: &mut impl BufRead) -> io::Result<Entries> {
    let mut entries = Entries::new();
    let mut part = Vec::new();
    while read_part(stdout, 0, &mut part)? && !part.is_empty() {
        let text = str::from_utf8(&part).map_err(|_| odd(&part))?;
        let fields: Vec<&str> = text.split(' ').collect();
        let [old, new, _, _, status] = fields[..] else {
            return Err(odd(&part));
        };
        let (Some(old), Some(&status)) = (old.strip_prefix(':'), status.as_bytes().first()) else {
            return Err(odd(&part));
        };
        let entry = Entry {
            old_mode: old.to_owned(),
            new_mode: new.to_owned(),
            status,
            has_patch: false,
            lines: Vec::new(),
        };
        let mut name = Vec::new();
        if !read_part(stdout, 0, &mut name)? {
            return Err(odd(&part));
        }
        // An unmerged file may come twice: as such, and as it lies in the work tree.
        entries.insert(name, entry);
    }
    Ok(entries)
}

/// The next part, without its end; false if there is none.
fn read_part(stdout: &mut impl BufRead, end: u8, part: &mut Vec<u8>) -> io::Result<bool> {
    part.clear();
    let count = stdout.read_until(end, part)?;
    if part.last() == Some(&end) {
        part.pop();
    }
    Ok(count > 0)
}

/// The file of `a/NAME b/NAME`. Renames are off, so that both halves are the same.
fn read_name(names: &[u8]) -> io::Result<Vec<u8>> {
    let second = names.get(names.len() / 2 + 1..).unwrap_or_default();
    let plain = match second.strip_prefix(b"\"") {
        Some(quoted) => unquote(quoted).ok_or_else(|| odd(names))?,
        None => second.to_vec(),
    };
    let name = plain.strip_prefix(b"b/").ok_or_else(|| odd(names))?;
    Ok(name.to_vec())
}

/// A name as C writes a string, after its first quote. `None` if it is none.
fn unquote(quoted: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::new();
    let mut bytes = quoted.iter().copied();
    loop {
        match bytes.next()? {
            b'"' => return Some(name),
            b'\\' => name.push(match bytes.next()? {
                b'a' => 7,
                b'b' => 8,
                b't' => b'\t',
                b'n' => b'\n',
                b'v' => 11,
                b'f' => 12,
                b'r' => b'\r',
                digit @ b'0'..=b'3' => {
                    let rest = [bytes.next()?, bytes.next()?];
                    let octal = |value: u8, digit: u8| value * 8 + (digit & 7);
                    rest.into_iter().fold(digit & 7, octal)
                }
                other => other,
            }),
            byte => name.push(byte),
        }
    }
}

/// `@@ -first,count +first,count @@`; a count of one is left out.
struct Hunk {
    removed: u32,
    first: u32,
    added: u32,
}

impl Hunk {
    fn parse(line: &[u8]) -> io::Result<Self> {
        let text = String::from_utf8_lossy(line);
        let mut words = text.split(' ').skip(1);
        let mut side = |sign: char| {
            let numbers = words.next()?.strip_prefix(sign)?;
            let (first, count) = numbers.split_once(',').unwrap_or((numbers, "1"));
            Some((first.parse().ok()?, count.parse().ok()?))
        };
        let sides: Option<((u32, u32), (u32, u32))> = side('-').zip(side('+'));
        let ((_, removed), (first, added)) = sides.ok_or_else(|| odd(line))?;
        Ok(Self {
            removed,
            first,
            added,
        })
    }

    /// Passes over the hunk's own lines, which may look like anything.
    fn skip(&self, stdout: &mut impl BufRead) -> io::Result<()> {
        let mut left = u64::from(self.removed) + u64::from(self.added);
        while left > 0 {
            match stdout.fill_buf()?.first() {
                // "\ No newline at end of file" is about a line, and is none.
                Some(b'\\') => {}
                Some(_) => left -= 1,
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
            stdout.skip_until(b'\n')?;
        }
        Ok(())
    }

    fn add_to(&self, lines: &mut Vec<Lines>) {
        // For a deletion git's number is the line before it, 0 if there is none.
        let first = self.first.max(1);
        let last = first + self.added.saturating_sub(1);
        // Deletions before and after the first line are both that line.
        if lines.last().is_none_or(|before| before.last < first) {
            lines.push(Lines { first, last });
        }
    }
}

fn odd(part: &[u8]) -> io::Error {
    let text = String::from_utf8_lossy(part).into_owned();
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(hunks: &str) -> Vec<(u32, u32)> {
        let list = ":100644 100644 0 0 M\0f\0\0diff --git a/f b/f\nindex 0..1 100644\n";
        let patch = format!("{list}--- a/f\n+++ b/f\n{hunks}");
        let entries = read_patch(&mut patch.as_bytes()).unwrap();
        let lines = &entries[&b"f"[..]].lines;
        lines.iter().map(|it| (it.first, it.last)).collect()
    }

    #[test]
    fn a_deletion_is_the_line_before_it() {
        assert_eq!(lines_of("@@ -5,2 +4,0 @@ def f():\n-a\n-b\n"), [(4, 4)]);
        assert_eq!(lines_of("@@ -1 +0,0 @@\n-a\n"), [(1, 1)]);
    }

    #[test]
    fn deletions_on_both_sides_of_the_first_line_are_that_line_once() {
        assert_eq!(lines_of("@@ -1 +0,0 @@\n-a\n@@ -3 +1,0 @@\n-c\n"), [(1, 1)]);
    }

    #[test]
    fn lines_that_look_like_a_patch_are_lines() {
        let text = "@@ -1,2 +1,3 @@\n-- a/g\n-@@ -1 +1 @@\n+diff --git a/g b/g\n+++ b/g\n+\n\
                    @@ -9 +10 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n";
        assert_eq!(lines_of(text), [(1, 3), (10, 10)]);
    }

    #[test]
    fn a_patch_that_ends_within_a_hunk_is_an_error() {
        let patch = ":100644 100644 0 0 M\0f\0\0diff --git a/f b/f\n@@ -1,2 +1,2 @@\n-a\n";
        let error = read_patch(&mut patch.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_no_patch_is_invalid() {
        for answer in [
            "nonsense",
            ":1 2 3\0f\0",
            ":1 2 3 4 M\0",
            "\0what\n",
            "\0diff --git x\n",
            "\0diff --git \n",
        ] {
            let error = read_patch(&mut answer.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{answer:?}");
        }
    }

    #[test]
    fn names_are_quoted_as_c_does() {
        let name = |names: &str| read_name(names.as_bytes()).unwrap();
        assert_eq!(name("a/x y b/x y"), b"x y");
        assert_eq!(name("a/b b/b b/b b/b"), b"b b/b");
        assert_eq!(
            name(r#""a/\"\\\t\n\001\377" "b/\"\\\t\n\001\377""#),
            b"\"\\\t\n\x01\xff"
        );
    }
}
