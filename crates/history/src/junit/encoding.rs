//! The encoding of a report: guessed as XML prescribes, then decoded piece by piece.
//!
//! The decoder never fails: a report is worth reading although a test wrote broken bytes into it.

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::JunitError;

/// The decoder of a report that starts with `start`, and the length of its byte order mark.
pub(super) fn decoder(start: &[u8]) -> Result<(Decoder, usize), JunitError> {
    let (encoding, mark) = guess(start)?;
    Ok((encoding.new_decoder_without_bom_handling(), mark))
}

fn guess(start: &[u8]) -> Result<(&'static Encoding, usize), JunitError> {
    match start {
        [0xEF, 0xBB, 0xBF, ..] => Ok((UTF_8, 3)),
        [0xFF, 0xFE, ..] => Ok((UTF_16LE, 2)),
        [0xFE, 0xFF, ..] => Ok((UTF_16BE, 2)),
        [b'<', 0, ..] => Ok((UTF_16LE, 0)),
        [0, b'<', ..] => Ok((UTF_16BE, 0)),
        start => match declared(start) {
            Some(name) => Ok((from_name(name)?, 0)),
            None => Ok((UTF_8, 0)),
        },
    }
}

fn from_name(name: String) -> Result<&'static Encoding, JunitError> {
    match Encoding::for_label_no_replacement(name.as_bytes()) {
        // Whoever reads the declaration as single bytes cannot have UTF-16 before him. .NET declares it
        // nevertheless when a report goes through a string on its way to the file.
        Some(encoding) if encoding == UTF_16LE || encoding == UTF_16BE => Ok(UTF_8),
        Some(encoding) => Ok(encoding),
        None => Err(JunitError::Encoding { name }),
    }
}

/// Decodes `raw` to the end of `text`; with `is_last` nothing is to come. The decoder keeps the start of a character
/// whose rest is still to come.
pub(super) fn decode(decoder: &mut Decoder, raw: &mut Vec<u8>, is_last: bool, text: &mut Vec<u8>) {
    let start = text.len();
    let most = decoder.max_utf8_buffer_length(raw.len());
    text.resize(start + most.expect("what is in memory has a length"), 0);
    let (_, _, written, _) = decoder.decode_to_utf8(raw, &mut text[start..], is_last);
    text.truncate(start + written);
    raw.clear();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoding: &'static Encoding, bytes: &[u8], step: usize) -> String {
        let mut decoder = encoding.new_decoder_without_bom_handling();
        let (mut raw, mut text) = (Vec::new(), Vec::new());
        for chunk in bytes.chunks(step) {
            raw.extend_from_slice(chunk);
            decode(&mut decoder, &mut raw, false, &mut text);
        }
        decode(&mut decoder, &mut raw, true, &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn characters_survive_any_splitting_of_the_bytes() {
        let text = "aé€😀z";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let latin = from_name("iso-8859-1".to_owned()).unwrap();
        for step in 1..5 {
            assert_eq!(decoded(UTF_8, text.as_bytes(), step), text);
            assert_eq!(decoded(UTF_16LE, &little, step), text);
            assert_eq!(decoded(UTF_16BE, &big, step), text);
            assert_eq!(decoded(latin, b"caf\xe9", step), "café");
        }
    }

    #[test]
    fn broken_bytes_are_replaced() {
        assert_eq!(
            decoded(UTF_8, b"a\xff\xc3(\xe2\x82", 3),
            "a\u{fffd}\u{fffd}(\u{fffd}"
        );
        assert_eq!(decoded(UTF_16LE, b"a\0\0\xd8", 4), "a\u{fffd}");
    }

    #[test]
    fn a_declaration_is_believed_where_it_can_be_true() {
        let guess = |start: &[u8]| {
            let (encoding, mark) = guess(start).unwrap();
            (encoding.name(), mark)
        };
        let latin = b"<?xml version='1.0' encoding = 'ISO-8859-1' ?><testsuite/>";
        assert_eq!(guess(latin), ("windows-1252", 0));
        let euro = b"<?xml version='1.0' encoding='iso-8859-15'?><testsuite/>";
        assert_eq!(guess(euro), ("ISO-8859-15", 0));
        let dotnet = b"<?xml version=\"1.0\" encoding=\"utf-16\"?><testsuite/>";
        assert_eq!(guess(dotnet), ("UTF-8", 0));
        assert_eq!(guess(b"\xef\xbb\xbf<testsuite/>"), ("UTF-8", 3));
        assert_eq!(guess(b"<testsuite encoding='x'/>"), ("UTF-8", 0));
        assert_eq!(guess(b"<\0t\0"), ("UTF-16LE", 0));
        assert_eq!(guess(b"\xfe\xff\0<"), ("UTF-16BE", 2));
        assert_eq!(guess(b""), ("UTF-8", 0));
    }

    #[test]
    fn an_encoding_that_we_do_not_read_is_named() {
        for name in ["EBCDIC-CP-US", "iso-2022-kr"] {
            let start = format!("<?xml version='1.0' encoding='{name}'?>");
            let error = guess(start.as_bytes()).unwrap_err();
            assert!(matches!(error, JunitError::Encoding { name: told } if told == name));
        }
    }
}
