//! A text of any length, of which only the start and the end are kept.

/// The most bytes of a text that are kept.
pub(super) const TEXT_LIMIT: usize = 64 * 1024;

/// How much may gather before the middle is dropped: dropping is a copy, so it is not done each time.
const ROOM: usize = 4 * TEXT_LIMIT;

/// A text that is read piece by piece and never takes more than a little memory.
#[derive(Default)]
pub(super) struct Excerpt {
    kept: String,
    /// How many characters were dropped from the middle.
    dropped: usize,
}

impl Excerpt {
    /// Appends `piece`.
    pub(super) fn push(&mut self, piece: &str) {
        self.kept.push_str(piece);
        if self.kept.len() > ROOM {
            self.drop_middle();
        }
    }

    /// Starts a new line, unless the text is empty or at the start of a line.
    pub(super) fn break_line(&mut self) {
        if !self.kept.is_empty() && !self.kept.ends_with('\n') {
            self.push("\n");
        }
    }

    /// Whether the text holds nothing but white space.
    pub(super) fn is_blank(&self) -> bool {
        self.kept.trim().is_empty()
    }

    /// The text: whole, or cut in the middle and saying so.
    pub(super) fn into_string(mut self) -> String {
        if self.kept.len() > TEXT_LIMIT {
            self.drop_middle();
        }
        if self.dropped == 0 {
            return self.kept;
        }
        let (head, tail) = self.kept.split_at(head_length(&self.kept));
        let dropped = self.dropped;
        format!("{head}\n[… {dropped} characters left out …]\n{tail}")
    }

    /// The text as above, or nothing if it is blank: white space indents the elements of a report.
    pub(super) fn into_text(self) -> String {
        if self.is_blank() {
            return String::new();
        }
        self.into_string()
    }

    fn drop_middle(&mut self) {
        let start = head_length(&self.kept);
        let mut end = self.kept.len().saturating_sub(TEXT_LIMIT / 2).max(start);
        while !self.kept.is_char_boundary(end) {
            end += 1;
        }
        self.dropped += self.kept[start..end].chars().count();
        self.kept.drain(start..end);
    }
}

/// Where the kept start of `text` ends; the same each time, because the start never changes.
fn head_length(text: &str) -> usize {
    let mut length = text.len().min(TEXT_LIMIT / 2);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(pieces: &[&str]) -> String {
        let mut excerpt = Excerpt::default();
        for piece in pieces {
            excerpt.push(piece);
        }
        excerpt.into_string()
    }

    #[test]
    fn a_text_up_to_the_limit_is_whole() {
        let text = "é".repeat(TEXT_LIMIT / 2);
        assert_eq!(excerpt(&[&text]), text);
        assert_eq!(excerpt(&["a", "", "b"]), "ab");
    }

    #[test]
    fn a_longer_text_loses_its_middle_and_says_how_much() {
        let half = TEXT_LIMIT / 2;
        let text = format!("{}{}{}", "a".repeat(half), "é".repeat(7), "z".repeat(half));
        let expected = format!(
            "{}\n[… 7 characters left out …]\n{}",
            "a".repeat(half),
            "z".repeat(half)
        );
        assert_eq!(excerpt(&[&text]), expected);
    }

    #[test]
    fn the_pieces_do_not_matter() {
        let text = "0123456789é".repeat(50_000);
        let whole = excerpt(&[&text]);
        let pieces: Vec<String> = text.chars().map(String::from).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        assert_eq!(excerpt(&pieces), whole);
        assert!(whole.len() < TEXT_LIMIT + 100);
    }

    #[test]
    fn memory_stays_small_while_a_flood_is_read() {
        let mut flood = Excerpt::default();
        for _ in 0..1000 {
            flood.push(&"x".repeat(10_000));
            assert!(flood.kept.len() <= ROOM);
        }
        let text = flood.into_string();
        assert!(text.contains("[… 9934464 characters left out …]"));
    }
}
