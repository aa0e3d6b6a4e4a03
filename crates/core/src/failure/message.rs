//! Messages without what varies from run to run: the plain form, where only the message is known, and the shape,
//! where the functions on the way to the failure are known too.

/// The character that replaces what varies.
const GAP: char = '#';

/// Characters that paths and addresses are made of.
const IN_PATHS: &str = "_.-+~%@:$/\\";

/// Characters between two gaps that make them one: of times, versions, lists and ranges.
const JOINTS: &str = ".,:-+_ …";

/// The parts of a UUID by their lengths.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// The first line that says something.
pub(super) fn first_line(message: &str) -> &str {
    let line = message.lines().find(|line| !line.trim().is_empty());
    line.unwrap_or_default().trim()
}

/// A line without numbers, addresses, paths, UUIDs, times, and words in which letters and digits are mixed as in ids.
///
/// Of a quoted text, each word that has a digit is left out; words without any stay.
pub(super) fn plain(line: &str) -> String {
    let line = without_paths(&without_uuids(line));
    let quoted = quoted_ranges(&line);
    let mut found = String::new();
    let mut at = 0;
    for word in line.split_inclusive(|one: char| !one.is_alphanumeric()) {
        let body = word.trim_end_matches(|one: char| !one.is_alphanumeric());
        let is_quoted = quoted.iter().any(|range| range.contains(&at));
        push_word(&mut found, body, is_quoted);
        found.push_str(&word[body.len()..]);
        at += word.len();
    }
    let words: Vec<&str> = found.split_whitespace().collect();
    join_gaps(&words.join(" "))
}

/// The words of a line, without quoted texts, without what is in brackets, and without words that have digits.
pub(super) fn shape(line: &str) -> String {
    let mut line = without_paths(&without_uuids(line));
    // The last range comes first: so the places of the ranges before it stay right.
    for range in quoted_ranges(&line).into_iter().rev() {
        line.replace_range(range, " ");
    }
    for (open, close) in [('[', ']'), ('{', '}'), ('<', '>')] {
        line = without_brackets(&line, open, close);
    }
    let is_part = |one: char| one.is_alphanumeric() || one == '_';
    let words = line.split(|one: char| !is_part(one));
    let words = words.filter(|word| !word.is_empty() && !has_digit(word) && !is_hex(word));
    words.collect::<Vec<_>>().join(" ")
}

fn has_digit(word: &str) -> bool {
    word.chars().any(char::is_numeric)
}

/// Whether a word is a hexadecimal id: a short one has a digit, a long one need not.
fn is_hex(word: &str) -> bool {
    let is_long_enough = word.len() >= 8 || word.len() >= 6 && has_digit(word);
    is_long_enough && word.chars().all(|one| one.is_ascii_hexdigit())
}

/// Whether a word that has a digit is a number or an id as a whole, and not a name that ends in a number.
fn is_id(word: &str) -> bool {
    let digits: Vec<bool> = word.chars().map(char::is_numeric).collect();
    let changes = digits.windows(2).filter(|two| two[0] != two[1]).count();
    let count = digits.iter().filter(|is_digit| **is_digit).count();
    digits.first() == Some(&true) || count >= 4 || digits.len() >= 5 && changes >= 2
}

fn push_word(found: &mut String, word: &str, is_quoted: bool) {
    if is_hex(word) || has_digit(word) && (is_quoted || is_id(word)) {
        found.push(GAP);
        return;
    }
    for one in word.chars() {
        if !one.is_numeric() {
            found.push(one);
        } else if !found.ends_with(GAP) {
            found.push(GAP);
        }
    }
}

/// Makes one gap of several with nothing but joints between them, and takes a sign or a point before a gap away.
fn join_gaps(text: &str) -> String {
    let mut found = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(GAP) {
        let is_joint = |one: char| JOINTS.contains(one);
        let is_next = found.ends_with(GAP) && before.chars().all(is_joint);
        if !is_next {
            let before_sign = before.trim_end_matches(['-', '+', '.']);
            let is_sign = !before_sign.ends_with(|one: char| one.is_alphanumeric() || one == '_');
            found.push_str(if is_sign { before_sign } else { before });
            found.push(GAP);
        }
        rest = after;
    }
    // A list that is cut ends anywhere.
    let cut = rest.trim_start_matches("...");
    found.push_str(if found.is_empty() { rest } else { cut });
    found
}

/// A text with each path or URL in it replaced by a gap. A path has a slash, or begins with a drive.
fn without_paths(text: &str) -> String {
    let is_part = |one: char| one.is_alphanumeric() || IN_PATHS.contains(one);
    let mut found = String::new();
    for piece in text.split_inclusive(|one: char| !is_part(one)) {
        let run = piece.trim_end_matches(|one: char| !is_part(one));
        let is_root = |run: &str| run.len() > 1 && run.starts_with(['/', '.', '~']);
        let has_slash = run.contains('/') && (run.contains(char::is_alphanumeric) || is_root(run));
        let is_path = has_slash || run.get(1..3) == Some(":\\");
        if is_path {
            found.push(GAP);
        } else {
            found.push_str(run);
        }
        found.push_str(&piece[run.len()..]);
    }
    found
}

fn without_uuids(text: &str) -> String {
    let is_part = |one: char| one.is_ascii_hexdigit() || one == '-';
    let mut found = String::new();
    for piece in text.split_inclusive(|one: char| !is_part(one)) {
        let run = piece.trim_end_matches(|one: char| !is_part(one));
        let is_uuid = run.split('-').map(str::len).eq(UUID);
        found.push_str(if is_uuid { "#" } else { run });
        found.push_str(&piece[run.len()..]);
    }
    found
}

/// Where the texts in quotes are, the quotes included. An apostrophe in a word is no quote.
fn quoted_ranges(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find(['\'', '"', '`']).map(|at| at + from) {
        let quote = &text[start..=start];
        from = start + 1;
        let before = text[..start].trim_end_matches(['b', 'B', 'f', 'r', 'u']);
        // The letters before a quote belong to it in Python, if there are at most two.
        let is_word = before.ends_with(char::is_alphanumeric) || start - before.len() > 2;
        let begin = before.len();
        if is_word {
            continue;
        }
        let ends = text[from..]
            .match_indices(quote)
            .map(|(at, _)| from + at + 1);
        let mut ends =
            ends.filter(|end| !text[*end..].starts_with(|one: char| one.is_alphanumeric()));
        if let Some(end) = ends.find(|end| !text[..end - 1].ends_with('\\')) {
            found.push(begin..end);
            from = end;
        }
    }
    found
}

/// A text without what stands between brackets. Where they do not match, because a text was cut, all from the first
/// to the last of them goes.
fn without_brackets(text: &str, open: char, close: char) -> String {
    let (Some(first), Some(last)) = (text.find(open), text.rfind(close)) else {
        return text.to_owned();
    };
    if last < first {
        return text.to_owned();
    }
    let mut found = String::new();
    let mut depth = 0_i64;
    for one in text.chars() {
        depth += i64::from(one == open);
        if depth == 0 {
            found.push(one);
        }
        depth -= i64::from(one == close);
        if depth < 0 {
            break;
        }
    }
    if depth == 0 {
        return found;
    }
    format!("{} {}", &text[..first], &text[last + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_form_has_gaps_for_what_varies() {
        for (message, expected) in [
            ("assert 3 == 4", "assert # == #"),
            ("got -0.5e-3, not .5", "got #, not #"),
            ("<Cart at 0x7f3a2b1c9d10> is empty", "<Cart at #> is empty"),
            ("no reply from 127.0.0.1:40213", "no reply from #"),
            ("late: 2026-11-16T04:21:41.2Z", "late: #"),
            ("key 5f2b9c missing", "key # missing"),
            ("key a91c0d missing", "key # missing"),
            ("user17 and utf8", "user# and utf#"),
            ("no 'user17' here", "no '#' here"),
            ("no 'user' here", "no 'user' here"),
            ("no 'user17 or user' here", "no '# or user' here"),
            ("row 0aeb7b52-dead-beef-face-abcdefabcdef", "row #"),
            ("no file '/data/a/x.json'", "no file '#'"),
            ("no file C:\\data\\x.json", "no file #"),
            (
                "GET http://localhost:8000/items?id=7 failed",
                "GET #?id=# failed",
            ),
            (
                "assert [0.094, 0.155... 0.718, 0.327] == [3]",
                "assert [#] == [#]",
            ),
            ("assert [0.04, 0.082,...6, 0.2] == [0]", "assert [#] == [#]"),
            ("a / b", "a / b"),
            ("can't find it's 5", "can't find it's #"),
            ("", ""),
        ] {
            assert_eq!(plain(message), expected, "{message}");
        }
    }

    #[test]
    fn the_shape_is_the_words_that_do_not_depend_on_values() {
        for (message, expected) in [
            ("no key 'qzxw' in {'a': {1: 2}} or {3}", "no key in or"),
            ("can't open u'x' or b\"y\"", "can t open or"),
            ("expected: <3> but was: <4>", "expected but was"),
            ("<Cart at 0x7f> is [1, 2", "is"),
            ("list [[1, 2], [3...4]]] is bad", "list is bad"),
            ("user17 is not_found_2 in /tmp/x/y", "is in"),
            ("assert x_y == z", "assert x_y z"),
        ] {
            assert_eq!(shape(message), expected, "{message}");
        }
    }
}
