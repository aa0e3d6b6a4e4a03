//! Which failures are the same failure: messages without what varies from run to run.

/// A failure message without its numbers, addresses and spaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signature(String);

impl Signature {
    /// The signature of a failure message.
    pub fn of(message: &str) -> Self {
        let first = message.lines().next().unwrap_or_default();
        // A long list of numbers is cut anywhere, also in the middle of one.
        let first = first.replace(',', " ").replace("...", " ");
        let mut words: Vec<String> = first.split_whitespace().map(without_numbers).collect();
        words.dedup_by(|one, before| one == "#" && before == "#");
        Self(words.join(" "))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A word with each of its numbers, also hexadecimal ones, replaced by `#`.
fn without_numbers(word: &str) -> String {
    let mut text = String::new();
    let mut rest = word.chars().peekable();
    while let Some(one) = rest.next() {
        if !one.is_ascii_digit() {
            text.push(one);
            continue;
        }
        let is_hexadecimal = one == '0' && rest.peek() == Some(&'x');
        if is_hexadecimal {
            rest.next();
        }
        let belongs = |next: &char| match *next {
            '.' | '_' | '-' | '+' | 'e' => !is_hexadecimal || *next == 'e',
            next if is_hexadecimal => next.is_ascii_hexdigit(),
            next => next.is_ascii_digit(),
        };
        while rest.next_if(belongs).is_some() {}
        text.push('#');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_addresses_do_not_tell_failures_apart() {
        let one = Signature::of("assert 0.31 == 12  <object at 0x7f0a>\n more");
        let two = Signature::of("assert 0.5e-3 == 7 <object at 0x55>");
        assert_eq!(one, two);
        assert_eq!(one.as_str(), "assert # == # <object at #>");
        assert_ne!(one, Signature::of("TimeoutError: 12"));
        let cut = [
            "assert [0.094, 0.155... 0.718, 0.327] == [0.39]",
            "assert [0.5, 0.1..., 0.7, 3] == [0]",
            "assert [0.04, 0.2, 0... 0.082, 0.874] == [0.04]",
            "assert [0.04, 0.082,...6, 0.2, 0.874] == [3]",
        ];
        for other in &cut[1..] {
            assert_eq!(Signature::of(cut[0]), Signature::of(other));
        }
    }
}
