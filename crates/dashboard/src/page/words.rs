//! Numbers and times as people read them, and text that other people wrote.

use jiff::Timestamp;

/// `3.2 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= 10.0 {
        format!("{percent:.0} %")
    } else if percent >= 0.1 {
        format!("{percent:.1} %")
    } else {
        "< 0.1 %".to_owned()
    }
}

/// `3.2 %`, or a dash.
pub(crate) fn percent_or_dash(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), percent)
}

/// `12 345`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            // A narrow space that does not break.
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// `1 test`, `2 tests`.
pub(crate) fn plural(number: usize, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{} {noun}", count(number as u64))
}

/// `2026-11-18 02:25` in UTC.
pub(crate) fn moment(time: i64) -> String {
    let Ok(time) = Timestamp::from_millisecond(time) else {
        return format!("{time} ms");
    };
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

/// `02:25` in UTC.
pub(crate) fn clock(time: i64) -> String {
    let Ok(time) = Timestamp::from_millisecond(time) else {
        return String::new();
    };
    time.strftime("%H:%M").to_string()
}

/// `12 ms`, `3.4 s`.
pub(crate) fn seconds(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1000.0)
    } else if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{:.1} min", seconds / 60.0)
    }
}

/// Text that begins with a capital letter, as a heading does.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// A revision as people write it.
pub(crate) fn short(revision: &str) -> String {
    let is_hash = revision.len() >= 20
        && revision
            .chars()
            .all(|one| one.is_ascii_hexdigit() || one == '+');
    if is_hash {
        let changed = if revision.ends_with('+') { "+" } else { "" };
        return format!("{}{changed}", &revision[..10]);
    }
    revision.to_owned()
}

/// Text in markup that is written by hand. Nothing in it can become a tag, leave an attribute, or turn the
/// direction of what follows.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::new();
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other if is_invisible(other) => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

/// Text for a page whose template escapes it: control characters and turned directions are made visible.
pub(crate) fn visible(text: &str) -> String {
    if !text.contains(is_invisible) {
        return text.to_owned();
    }
    let show = |one: char| if is_invisible(one) { '\u{fffd}' } else { one };
    text.chars().map(show).collect()
}

fn is_invisible(character: char) -> bool {
    let is_turning = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    is_turning || (character.is_control() && character != '\n' && character != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(12), "12");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.032), "3.2 %");
        assert_eq!(percent(0.5), "50 %");
        assert_eq!(percent(0.0004), "< 0.1 %");
        assert_eq!(moment(0), "1970-01-01 00:00");
        assert_eq!(
            short("0123456789abcdef0123456789abcdef01234567+"),
            "0123456789+"
        );
        assert_eq!(short("CXP102051/27_R20A07"), "CXP102051/27_R20A07");
    }

    #[test]
    fn what_others_wrote_stays_text() {
        let hostile = "<script>'\"&\u{1b}[31m\u{202e}x";
        let safe = escape(hostile);
        assert!(
            !safe.contains(['<', '>', '"', '\'', '\u{1b}', '\u{202e}']),
            "{safe}"
        );
        assert!(!visible(hostile).contains(['\u{1b}', '\u{202e}']));
    }
}
