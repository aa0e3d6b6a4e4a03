//! A failure in a line for people: its kind and its message without what differs from run to run.

/// The most characters that a summary has.
const LONGEST: usize = 200;

/// The kind of a failure and the first line of its message, with numbers, addresses, quoted ids and
/// temporary names replaced by `#`.
///
/// Two failures with the same summary look alike; they need not have the same cause. Histories keep this text, and
/// group old failures with new ones by it: it stays as it is.
pub(super) fn summarize(kind: &str, message: &str) -> String {
    let line = message.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or_default().trim();
    let text = if kind.is_empty() || line.starts_with(kind) {
        line.to_owned()
    } else {
        format!("{kind}: {line}")
    };
    let mut found = String::new();
    for word in text.split_inclusive(|one: char| !one.is_alphanumeric() && one != '_') {
        let (body, end) = split_end(word);
        found.push_str(if varies(body) { "#" } else { body });
        found.push_str(end);
    }
    // Numbers with dots, colons and dashes between them are one thing: a time, a version, an address.
    for joint in ["#.#", "#:#", "#-#"] {
        while found.contains(joint) {
            found = found.replace(joint, "#");
        }
    }
    found.chars().take(LONGEST).collect()
}

/// A word, and the character that ended it.
fn split_end(word: &str) -> (&str, &str) {
    let last = word.chars().next_back();
    match last.filter(|one| !one.is_alphanumeric() && *one != '_') {
        Some(last) => word.split_at(word.len() - last.len_utf8()),
        None => (word, ""),
    }
}

/// Whether a word is a number, an address, or letters and digits mixed as ids are.
fn varies(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let is_hex = word.len() >= 8 && word.chars().all(|one| one.is_ascii_hexdigit());
    digits > 0 && (is_hex || word.starts_with(|one: char| one.is_ascii_digit()) || digits >= 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_left_out() {
        for (one, other) in [
            ("assert 3 == 4", "assert 17 == 4"),
            (
                "<Cart at 0x7f3a2b1c9d10> is empty",
                "<Cart at 0x7f11aa1c9d10> is empty",
            ),
            (
                "no reply from 127.0.0.1:40213",
                "no reply from 127.0.0.1:51999",
            ),
            ("late: 2026-11-16T04:21:41.2", "late: 2025-01-02T14:01:11.7"),
            ("key 5f2b9c1de0aa77 missing", "key 00aa771122ffee missing"),
        ] {
            assert_eq!(summarize("", one), summarize("", other));
        }
    }

    #[test]
    fn what_is_the_same_stays() {
        assert_eq!(
            summarize("KeyError", "'user_name2' in utf8\nmore"),
            "KeyError: 'user_name2' in utf8"
        );
        assert_eq!(
            summarize("ValueError", "ValueError: bad"),
            "ValueError: bad"
        );
        assert_ne!(summarize("", "no route"), summarize("", "no reply"));
        assert_eq!(summarize("", "\n\n"), "");
        assert_eq!(summarize("", &"x".repeat(9999)).len(), 200);
    }
}
