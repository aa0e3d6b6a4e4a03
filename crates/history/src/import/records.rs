//! The records of a table with delimiters, each cut into its fields.
//!
//! Nearly all lines have no quotes; they are cut where they lie. Others go through a parser that knows the
//! rules of quotes. A record is never longer than a limit, so that a quote which nobody closes costs one line
//! and not the memory.

use std::io::{self, Read};
use std::ops::Range;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::AT_ONCE;

/// The longest record.
const LONGEST: usize = 1024 * 1024;

/// There is room to read at least so much at once: more than a reader with a buffer keeps in that, so that
/// nothing is copied twice.
const CHUNK: usize = 2 * AT_ONCE;

/// What comes next in a table.
pub(super) enum Next<'a> {
    /// A record.
    Record(Fields<'a>),
    /// A line that is too long, or that opens a quote which nobody closes. It is passed over.
    Unusable,
    /// Nothing.
    End,
}

/// The fields of one record.
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    ranges: &'a [Range<usize>],
}

impl<'a> Fields<'a> {
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.ranges.iter().map(move |range| &bytes[range.clone()])
    }
}

/// A table as far as it is read.
pub(super) struct Records<R> {
    reader: R,
    delimiter: u8,
    buffer: Vec<u8>,
    /// What of the buffer is read and not used yet.
    unused: Range<usize>,
    has_ended: bool,
    /// The number of the record's first line, and of the line after it.
    line: u64,
    next_line: u64,
    ranges: Vec<Range<usize>>,
    parser: Reader,
    unquoted: Vec<u8>,
    ends: Vec<usize>,
}

impl<R: Read> Records<R> {
    pub(super) fn new(reader: R, delimiter: u8) -> Self {
        Self {
            reader,
            delimiter,
            buffer: vec![0; CHUNK],
            unused: 0..0,
            has_ended: false,
            line: 0,
            next_line: 1,
            ranges: Vec::new(),
            parser: ReaderBuilder::new().delimiter(delimiter).build(),
            unquoted: vec![0; 1024],
            ends: vec![0; 64],
        }
    }

    /// The line on which the record began that came last.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The next record that is not an empty line.
    pub(super) fn next(&mut self) -> io::Result<Next<'_>> {
        loop {
            let Some(line) = self.find_line()? else {
                return Ok(if self.unused.is_empty() {
                    Next::End
                } else {
                    self.pass_over()?;
                    Next::Unusable
                });
            };
            self.line = self.next_line;
            let text = &self.buffer[line.clone()];
            if memchr::memchr(b'"', text).is_some() {
                return self.read_quoted(&line);
            }
            self.next_line += 1;
            self.unused.start = line.end + 1;
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            if text.is_empty() {
                continue;
            }
            self.ranges.clear();
            let mut start = line.start;
            let end = line.start + text.len();
            for at in memchr::memchr_iter(self.delimiter, text) {
                self.ranges.push(start..line.start + at);
                start = line.start + at + 1;
            }
            self.ranges.push(start..end);
            return Ok(Next::Record(Fields {
                bytes: &self.buffer,
                ranges: &self.ranges,
            }));
        }
    }

    /// Where the next line is, without its end; `None` if there is none, or none within the limit.
    fn find_line(&mut self) -> io::Result<Option<Range<usize>>> {
        let mut looked_at = 0;
        loop {
            let start = self.unused.start;
            let found = memchr::memchr(b'\n', &self.buffer[start + looked_at..self.unused.end]);
            if let Some(at) = found {
                return Ok(Some(start..start + looked_at + at));
            }
            looked_at = self.unused.len();
            if !self.read_more()? {
                return Ok(None);
            }
        }
    }

    /// Reads on, keeping what is unused. False if there is no more, or no more room.
    fn read_more(&mut self) -> io::Result<bool> {
        if self.has_ended || self.unused.len() >= LONGEST {
            return Ok(false);
        }
        self.buffer.copy_within(self.unused.clone(), 0);
        self.unused = 0..self.unused.len();
        if self.buffer.len() < self.unused.end + CHUNK {
            self.buffer.resize(self.unused.end + CHUNK, 0);
        }
        let room = self.buffer.len() - 1;
        let count = loop {
            match self.reader.read(&mut self.buffer[self.unused.end..room]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.unused.end += count;
        if count == 0 {
            self.has_ended = true;
            // The last line may have no end.
            if self.unused.is_empty() || self.buffer[self.unused.end - 1] == b'\n' {
                return Ok(false);
            }
            self.buffer[self.unused.end] = b'\n';
            self.unused.end += 1;
        }
        Ok(true)
    }

    /// Leaves out a line of any length.
    fn pass_over(&mut self) -> io::Result<()> {
        self.line = self.next_line;
        self.next_line += 1;
        loop {
            let unused = &self.buffer[self.unused.clone()];
            if let Some(at) = memchr::memchr(b'\n', unused) {
                self.unused.start += at + 1;
                return Ok(());
            }
            self.unused = 0..0;
            if !self.read_more()? {
                return Ok(());
            }
        }
    }

    /// Reads a record with quotes, which may go on over several lines.
    fn read_quoted(&mut self, line: &Range<usize>) -> io::Result<Next<'_>> {
        // The line keeps its place at the start of what is unused, also when more is read.
        let length = line.len() + 1;
        let (used, fields) = loop {
            if let Some(found) = self.parse() {
                break found;
            }
            if !self.read_more()? {
                self.unused.start += length;
                self.next_line += 1;
                return Ok(Next::Unusable);
            }
        };
        let record = &self.buffer[self.unused.start..self.unused.start + used];
        self.next_line += memchr::memchr_iter(b'\n', record).count() as u64;
        self.unused.start += used;
        self.ranges.clear();
        let mut start = 0;
        for end in &self.ends[..fields] {
            self.ranges.push(start..*end);
            start = *end;
        }
        Ok(Next::Record(Fields {
            bytes: &self.unquoted,
            ranges: &self.ranges,
        }))
    }

    /// How many bytes the next record has, and how many fields; `None` if it does not end in the buffer.
    fn parse(&mut self) -> Option<(usize, usize)> {
        self.parser.reset();
        let (mut read, mut written, mut fields) = (0, 0, 0);
        loop {
            let input = &self.buffer[self.unused.start + read..self.unused.end];
            let output = &mut self.unquoted[written..];
            let (result, more_read, more_written, more_fields) =
                self.parser
                    .read_record(input, output, &mut self.ends[fields..]);
            read += more_read;
            written += more_written;
            fields += more_fields;
            match result {
                ReadRecordResult::OutputFull => self.unquoted.resize(self.unquoted.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::Record => return Some((read, fields)),
                ReadRecordResult::InputEmpty | ReadRecordResult::End => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The records with their lines, fields joined by `|`; `-` for those that cannot be used.
    fn read(table: &[u8]) -> Vec<String> {
        let mut records = Records::new(table, b',');
        let mut found = Vec::new();
        loop {
            let text = match records.next().unwrap() {
                Next::Record(fields) => {
                    let fields: Vec<_> = fields.iter().map(String::from_utf8_lossy).collect();
                    fields.join("|")
                }
                Next::Unusable => "-".to_owned(),
                Next::End => return found,
            };
            found.push(format!("{} {text}", records.line()));
        }
    }

    #[test]
    fn quotes_may_hold_delimiters_ends_of_lines_and_quotes() {
        let table = b"a,b\r\n\n\"x,1\",\"two\nlines\"\n5\" disk,\"say \"\"hi\"\"\"\nlast,one";
        let expected = [
            "1 a|b",
            "3 x,1|two\nlines",
            "5 5\" disk|say \"hi\"",
            "6 last|one",
        ];
        assert_eq!(read(table), expected);
        assert_eq!(read(b"a,\"b\""), ["1 a|b"]);
    }

    #[test]
    fn a_quote_that_nobody_closes_costs_its_line_only() {
        assert_eq!(read(b"a,b\n\"c,d\ne,f\n"), ["1 a|b", "2 -", "3 e|f"]);
        let mut long = b"a,\"b\n".to_vec();
        for _ in 0..300_000 {
            long.extend_from_slice(b"c,d,e\n");
        }
        let found = read(&long);
        assert_eq!((found.len(), found[0].as_str()), (300_001, "1 -"));
    }

    #[test]
    fn a_line_without_an_end_takes_no_more_memory_than_the_limit() {
        let endless = io::repeat(b'x').take(50 * 1024 * 1024);
        let mut records = Records::new(endless.chain(&b"\na,b\n"[..]), b',');
        assert!(matches!(records.next().unwrap(), Next::Unusable));
        assert!(matches!(records.next().unwrap(), Next::Record(_)));
        assert!(matches!(records.next().unwrap(), Next::End));
        assert!(records.buffer.len() <= LONGEST + 2 * CHUNK);
    }

    proptest! {
        #[test]
        fn what_is_written_with_quotes_is_read_again(
            table in prop::collection::vec(
                prop::collection::vec(("[a-c,\"\n]{0,4}", any::<bool>()), 2..5),
                0..20,
            ),
            end in prop::sample::select(vec!["\n", "\r\n"]),
        ) {
            let (mut text, mut expected) = (String::new(), Vec::new());
            let mut line = 1;
            for record in &table {
                let written: Vec<String> = record
                    .iter()
                    .map(|(field, is_quoted)| {
                        if *is_quoted || field.contains([',', '"', '\n']) {
                            format!("\"{}\"", field.replace('"', "\"\""))
                        } else {
                            field.clone()
                        }
                    })
                    .collect();
                text += &written.join(",");
                text += end;
                let fields: Vec<&str> = record.iter().map(|(field, _)| field.as_str()).collect();
                expected.push(format!("{line} {}", fields.join("|")));
                line += 1 + fields.concat().matches('\n').count();
            }
            prop_assert_eq!(read(text.as_bytes()), expected);
        }
    }
}
