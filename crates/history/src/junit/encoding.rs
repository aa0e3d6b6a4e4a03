//! The encoding of a report: guessed as XML prescribes, then decoded piece by piece.
//!
//! The decoder never fails: a report is worth reading although a test wrote broken bytes into it.

use super::JunitError;

/// How the characters of a report are written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Latin1,
    Utf16LittleEndian,
    Utf16BigEndian,
}

impl Encoding {
    /// The encoding of a report that starts with `start`, and the length of its byte order mark.
    pub(super) fn guess(start: &[u8]) -> Result<(Self, usize), JunitError> {
        match start {
            [0xEF, 0xBB, 0xBF, ..] => Ok((Self::Utf8, 3)),
            [0xFF, 0xFE, ..] => Ok((Self::Utf16LittleEndian, 2)),
            [0xFE, 0xFF, ..] => Ok((Self::Utf16BigEndian, 2)),
            [b'<', 0, ..] => Ok((Self::Utf16LittleEndian, 0)),
            [0, b'<', ..] => Ok((Self::Utf16BigEndian, 0)),
            start => match declared(start) {
                Some(name) => Ok((Self::from_name(name)?, 0)),
                None => Ok((Self::Utf8, 0)),
            },
        }
    }

    fn from_name(name: String) -> Result<Self, JunitError> {
        match name.to_ascii_lowercase().as_str() {
            // Whoever reads the declaration as single bytes cannot have UTF-16 before him. .NET
            // declares it nevertheless when a report goes through a string on its way to the file.
            "utf-8" | "utf8" | "us-ascii" | "ascii" | "utf-16" | "utf-16le" | "utf-16be" => {
                Ok(Self::Utf8)
            }
            "iso-8859-1" | "latin1" | "latin-1" | "iso8859-1" | "iso_8859-1" => Ok(Self::Latin1),
            _ => Err(JunitError::Encoding { name }),
        }
    }

    /// Decodes `raw` to the end of `text`, and leaves in `raw` the start of a character whose rest is
    /// still to come. With `is_last` nothing is to come.
    pub(super) fn decode(self, raw: &mut Vec<u8>, is_last: bool, text: &mut Vec<u8>) {
        let used = match self {
            Self::Utf8 => decode_utf8(raw, is_last, text),
            Self::Latin1 => {
                for byte in raw.iter() {
                    push(char::from(*byte), text);
                }
                raw.len()
            }
            Self::Utf16LittleEndian => decode_utf16(raw, u16::from_le_bytes, is_last, text),
            Self::Utf16BigEndian => decode_utf16(raw, u16::from_be_bytes, is_last, text),
        };
        raw.drain(..used);
    }
}

/// The encoding that an XML declaration names.
fn declared(start: &[u8]) -> Option<String> {
    let start = String::from_utf8_lossy(start);
    let declaration = start.trim_start().strip_prefix("<?xml")?;
    let declaration = declaration.split_once("?>")?.0;
    let value = declaration.split_once("encoding")?.1.trim_start();
    let value = value.strip_prefix('=')?.trim_start();
    let quote = value
        .chars()
        .next()
        .filter(|quote| "'\"".contains(*quote))?;
    let (name, _) = value[1..].split_once(quote)?;
    Some(name.to_owned())
}

fn decode_utf8(raw: &[u8], is_last: bool, text: &mut Vec<u8>) -> usize {
    let mut used = 0;
    loop {
        let rest = &raw[used..];
        let Err(error) = str::from_utf8(rest) else {
            text.extend_from_slice(rest);
            return raw.len();
        };
        text.extend_from_slice(&rest[..error.valid_up_to()]);
        used += error.valid_up_to();
        match error.error_len() {
            None if !is_last => return used,
            None => used = raw.len(),
            Some(length) => used += length,
        }
        push(char::REPLACEMENT_CHARACTER, text);
    }
}

fn decode_utf16(
    raw: &[u8],
    to_unit: fn([u8; 2]) -> u16,
    is_last: bool,
    text: &mut Vec<u8>,
) -> usize {
    let mut units: Vec<u16> = raw
        .chunks_exact(2)
        .map(|pair| to_unit([pair[0], pair[1]]))
        .collect();
    let is_split = units
        .last()
        .is_some_and(|unit| (0xD800..0xDC00).contains(unit));
    if is_split && !is_last {
        units.pop();
    }
    let used = units.len() * 2;
    for character in char::decode_utf16(units) {
        push(character.unwrap_or(char::REPLACEMENT_CHARACTER), text);
    }
    if is_last { raw.len() } else { used }
}

fn push(character: char, text: &mut Vec<u8>) {
    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoding: Encoding, bytes: &[u8], step: usize) -> String {
        let (mut raw, mut text) = (Vec::new(), Vec::new());
        for chunk in bytes.chunks(step) {
            raw.extend_from_slice(chunk);
            encoding.decode(&mut raw, false, &mut text);
        }
        encoding.decode(&mut raw, true, &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn characters_survive_any_splitting_of_the_bytes() {
        let text = "aé€😀z";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for step in 1..5 {
            assert_eq!(decoded(Encoding::Utf8, text.as_bytes(), step), text);
            assert_eq!(decoded(Encoding::Utf16LittleEndian, &little, step), text);
            assert_eq!(decoded(Encoding::Utf16BigEndian, &big, step), text);
            assert_eq!(decoded(Encoding::Latin1, b"caf\xe9", step), "café");
        }
    }

    #[test]
    fn broken_bytes_are_replaced() {
        assert_eq!(
            decoded(Encoding::Utf8, b"a\xff\xc3(\xe2\x82", 3),
            "a�\u{fffd}(�"
        );
        assert_eq!(decoded(Encoding::Utf16LittleEndian, b"a\0\0\xd8", 4), "a�");
    }

    #[test]
    fn a_declaration_is_believed_where_it_can_be_true() {
        let guess = |start: &[u8]| Encoding::guess(start).unwrap();
        let latin = b"<?xml version='1.0' encoding = 'ISO-8859-1' ?><testsuite/>";
        assert_eq!(guess(latin), (Encoding::Latin1, 0));
        let dotnet = b"<?xml version=\"1.0\" encoding=\"utf-16\"?><testsuite/>";
        assert_eq!(guess(dotnet), (Encoding::Utf8, 0));
        assert_eq!(guess(b"\xef\xbb\xbf<testsuite/>"), (Encoding::Utf8, 3));
        assert_eq!(guess(b"<testsuite encoding='x'/>"), (Encoding::Utf8, 0));
        assert_eq!(guess(b"<\0t\0"), (Encoding::Utf16LittleEndian, 0));
        assert_eq!(guess(b"\xfe\xff\0<"), (Encoding::Utf16BigEndian, 2));
        assert_eq!(guess(b""), (Encoding::Utf8, 0));
    }

    #[test]
    fn an_encoding_that_we_do_not_read_is_named() {
        let error = Encoding::guess(b"<?xml version='1.0' encoding='EBCDIC-CP-US'?>").unwrap_err();
        assert!(matches!(error, JunitError::Encoding { name } if name == "EBCDIC-CP-US"));
    }
}
