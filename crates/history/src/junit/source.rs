//! The characters of a report, always as UTF-8 with `\n` at the ends of lines, and where we are in it.

use std::io::{self, BufRead, Read};

use encoding_rs::{Decoder, UTF_8};

use super::JunitError;
use super::encoding::{decode, decoder};

/// The most bytes of one tag, comment or declaration. They are held in memory whole.
pub(super) const MARKUP_LIMIT: u64 = 64 * 1024 * 1024;

/// How far one can always look ahead, unless the report ends before: `<![CDATA[` and the longest
/// reference to a character.
pub(super) const LOOK_AHEAD: usize = 16;

/// How much of the start is looked at for the declaration of an encoding.
const START: usize = 512;

/// A report as text.
///
/// Texts are read by `peek` and `skip`, which have no limit. `BufRead` is for the XML parser and for
/// one piece of markup at a time.
pub(super) struct Source<R> {
    inner: R,
    decoder: Decoder,
    /// Bytes of the report that are not yet decoded.
    raw: Vec<u8>,
    text: Vec<u8>,
    /// How much of `text` is used up.
    position: usize,
    has_ended: bool,
    is_after_return: bool,
    line: u64,
    markup_left: u64,
}

impl<R: BufRead> Source<R> {
    /// Looks at the start of `inner` to learn its encoding.
    pub(super) fn new(inner: R) -> Result<Self, JunitError> {
        let mut source = Self {
            inner,
            decoder: UTF_8.new_decoder_without_bom_handling(),
            raw: Vec::new(),
            text: Vec::new(),
            position: 0,
            has_ended: false,
            is_after_return: false,
            line: 1,
            markup_left: MARKUP_LIMIT,
        };
        let read = |source| JunitError::Read { source };
        while source.raw.len() < START && !source.has_ended {
            source.read_raw().map_err(read)?;
        }
        let (decoder, mark) = decoder(&source.raw)?;
        source.decoder = decoder;
        source.raw.drain(..mark);
        source.decode();
        Ok(source)
    }

    /// The next part of the text: at least `LOOK_AHEAD` bytes, unless the report ends before.
    pub(super) fn peek(&mut self) -> io::Result<&[u8]> {
        while self.text.len() - self.position < LOOK_AHEAD && !self.has_ended {
            self.read_raw()?;
            self.decode();
        }
        Ok(&self.text[self.position..])
    }

    /// Uses up `count` bytes of what `peek` showed.
    pub(super) fn skip(&mut self, count: usize) {
        let end = self.text.len().min(self.position + count);
        let used = &self.text[self.position..end];
        self.line += used.split(|byte| *byte == b'\n').skip(1).count() as u64;
        self.position = end;
    }

    /// The line of the next character, counted from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Allows one more piece of markup.
    pub(super) fn begin_markup(&mut self) {
        self.markup_left = MARKUP_LIMIT;
    }

    /// Whether the piece of markup that was read last is longer than we allow.
    pub(super) fn is_over_limit(&self) -> bool {
        self.markup_left == 0
    }

    fn read_raw(&mut self) -> io::Result<()> {
        let chunk = loop {
            match self.inner.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.has_ended = chunk.is_empty();
        self.raw.extend_from_slice(chunk);
        let count = chunk.len();
        self.inner.consume(count);
        Ok(())
    }

    fn decode(&mut self) {
        self.text.drain(..self.position);
        self.position = 0;
        let start = self.text.len();
        decode(
            &mut self.decoder,
            &mut self.raw,
            self.has_ended,
            &mut self.text,
        );
        self.unify_line_ends(start);
    }

    /// Turns `\r\n` and `\r` into `\n` from `start` on: XML 1.0, section 2.11.
    fn unify_line_ends(&mut self, start: usize) {
        if !self.is_after_return && !self.text[start..].contains(&b'\r') {
            return;
        }
        let mut to = start;
        for from in start..self.text.len() {
            let byte = self.text[from];
            if !(byte == b'\n' && self.is_after_return) {
                self.text[to] = if byte == b'\r' { b'\n' } else { byte };
                to += 1;
            }
            self.is_after_return = byte == b'\r';
        }
        self.text.truncate(to);
    }
}

impl<R: BufRead> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.is_over_limit() {
            return Err(io::Error::other("the markup is too long"));
        }
        self.peek()
    }

    fn consume(&mut self, count: usize) {
        self.markup_left = self.markup_left.saturating_sub(count as u64);
        self.skip(count);
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn text(bytes: &[u8], step: usize) -> (String, u64) {
        let mut source = Source::new(BufReader::with_capacity(step, bytes)).unwrap();
        let mut text = Vec::new();
        loop {
            let chunk = source.peek().unwrap();
            if chunk.is_empty() {
                return (String::from_utf8(text).unwrap(), source.line());
            }
            text.extend_from_slice(chunk);
            let count = chunk.len();
            source.skip(count);
        }
    }

    #[test]
    fn all_line_ends_are_one_however_the_bytes_arrive() {
        for step in 1..6 {
            let (text, line) = text(b"a\r\nb\rc\n\nd\r\r\ne", step);
            assert_eq!((text.as_str(), line), ("a\nb\nc\n\nd\n\ne", 7));
        }
    }

    #[test]
    fn a_text_longer_than_the_look_at_its_start_is_whole() {
        let long = "é\n".repeat(2000);
        assert_eq!(text(long.as_bytes(), 7), (long, 2001));
    }

    #[test]
    fn markup_without_an_end_is_refused_at_the_limit() {
        let limit = usize::try_from(MARKUP_LIMIT).unwrap();
        let long = vec![b'x'; limit + 1];
        let mut source = Source::new(long.as_slice()).unwrap();
        source.begin_markup();
        source.consume(limit - 1);
        assert!(source.fill_buf().is_ok() && !source.is_over_limit());
        source.consume(1);
        assert!(source.fill_buf().is_err() && source.is_over_limit());
        assert_eq!(source.peek().unwrap(), b"x");
    }
}
