//! Text of other people on a terminal: test names and messages are hostile input.

/// `text` on one line, with control characters shown as escapes instead of obeyed.
pub(crate) fn printable(text: &str) -> String {
    escape(text, char::is_control)
}

/// `text` with its lines kept, and all other control characters shown as escapes.
pub(crate) fn printable_lines(text: &str) -> String {
    escape(text, |character| {
        character.is_control() && !matches!(character, '\n' | '\t')
    })
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        // Marks that reverse the direction of writing can make one name look like another.
        if is_escaped(character)
            || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            safe.extend(character.escape_default());
        } else {
            safe.push(character);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_can_move_the_cursor_or_break_the_line() {
        assert_eq!(printable("a\nb\x1b[2Jc"), "a\\nb\\u{1b}[2Jc");
        assert_eq!(printable("é[x y]::漢"), "é[x y]::漢");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(printable_lines("a\n\tb\r\x07"), "a\n\tb\\r\\u{7}");
    }
}
