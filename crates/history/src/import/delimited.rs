//! Runs out of a table with delimiters: CSV, with commas, semicolons or tabs.

use std::io::BufRead;

use foldhash::HashMap;
use unflake_core::failure::Fingerprint;

use super::columns::Field;
use super::records::{Fields, Next, Records};
use super::skips::{Skip, Skips};
use super::times::Clock;
use super::words::parse_verdict;
use super::{FUTURE, FileError, Wish};
use crate::batch::{Batch, Packer};
use crate::run::{Ended, More, Provenance, Row};

/// The longest name that a test may have.
pub(super) const LONGEST_NAME: usize = 64 * 1024;

/// The most of a message that is kept.
pub(super) const LONGEST_MESSAGE: usize = 2000;

/// What some programs write before UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) fn read<R: BufRead, F: FnMut(Batch) -> Result<(), ()>>(
    reader: &mut R,
    wish: &Wish,
    packer: &mut Packer<F>,
    skips: &mut Skips,
) -> Result<(), FileError> {
    let start = reader.fill_buf()?;
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        return Err(FileError::Encoding);
    }
    if start.is_empty() {
        return Err(FileError::Empty);
    }
    let delimiter = guess_delimiter(start);
    if start.starts_with(MARK) {
        reader.consume(MARK.len());
    }
    let mut records = Records::new(reader, delimiter);
    let mut headers: Vec<String> = Vec::new();
    if let Next::Record(names) = records.next()? {
        headers.extend(names.iter().map(to_header));
    }
    let fields = wish.columns.find(&headers)?;
    let mut lines = Lines {
        fields,
        wish,
        clock: Clock::default(),
        places: HashMap::default(),
        key: Vec::new(),
        last: None,
        generation: packer.generation(),
    };
    loop {
        let row = match records.next()? {
            Next::End => return Ok(()),
            Next::Unusable => Err(Skip::LongLine),
            Next::Record(fields) if fields.len() != lines.fields.len() => Err(Skip::Fields),
            Next::Record(fields) => lines.read_row(&fields, packer),
        };
        match row {
            Ok(row) => {
                if packer.push(row).is_err() {
                    return Ok(());
                }
            }
            Err(skip) => skips.add(skip, || format!("line {}", records.line())),
        }
    }
}

fn to_header(name: &[u8]) -> String {
    String::from_utf8_lossy(name).trim().to_owned()
}

/// The delimiter that the first line has most of.
fn guess_delimiter(start: &[u8]) -> u8 {
    let line = start
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let count = |delimiter: u8| line.split(|byte| *byte == delimiter).count();
    let more = |one: u8, other: u8| {
        if count(other) > count(one) {
            other
        } else {
            one
        }
    };
    more(more(b',', b';'), b'\t')
}

struct Lines<'a> {
    fields: Vec<Option<Field>>,
    wish: &'a Wish,
    clock: Clock,
    /// Where the provenances of these fields are.
    places: HashMap<Vec<u8>, u32>,
    key: Vec<u8>,
    /// The place of the key, which is that of the line before.
    last: Option<u32>,
    generation: u64,
}

/// The fields of one line.
#[derive(Default)]
struct Line<'a> {
    test: &'a [u8],
    time: &'a [u8],
    verdict: &'a [u8],
    release: &'a [u8],
    bug: &'a [u8],
    branch: &'a [u8],
    revision: &'a [u8],
    environment: &'a [u8],
    job: &'a [u8],
    duration: &'a [u8],
    attempt: &'a [u8],
    message: &'a [u8],
}

impl Lines<'_> {
    fn read_row<F: FnMut(Batch) -> Result<(), ()>>(
        &mut self,
        fields: &Fields<'_>,
        packer: &mut Packer<F>,
    ) -> Result<Row, Skip> {
        let line = self.sort(fields);
        if line.test.is_empty() {
            return Err(Skip::NoName);
        }
        if line.test.len() > LONGEST_NAME {
            return Err(Skip::LongName);
        }
        let test = match packer.find_reported(line.test) {
            Some(place) => Ok(place),
            None => Err(std::str::from_utf8(line.test).map_err(|_| Skip::NotUtf8)?),
        };
        if line.time.is_empty() {
            return Err(Skip::NoTime);
        }
        let time = self.clock.parse(line.time).ok_or(Skip::BadTime)?;
        if time > self.wish.now + FUTURE {
            return Err(Skip::Future);
        }
        if line.verdict.is_empty() {
            return Err(Skip::NoVerdict);
        }
        let ended = parse_verdict(line.verdict).ok_or(Skip::BadVerdict)?;
        let provenance = self.provenance(&line, packer);
        Ok(Row {
            test: test.unwrap_or_else(|name| packer.test(name, 0, false)),
            provenance,
            time,
            ended,
            attempt: parse_number(line.attempt).unwrap_or(1),
            duration: plain_microseconds(line.duration)
                .or_else(|| to_microseconds(parse_number(line.duration))),
            more: to_more(line.bug, line.message, ended),
        })
    }

    fn sort<'r>(&self, fields: &Fields<'r>) -> Line<'r> {
        let mut line = Line::default();
        for (value, field) in fields.iter().zip(&self.fields) {
            let Some(field) = field else { continue };
            let place = match field {
                Field::Test => &mut line.test,
                Field::Time => &mut line.time,
                Field::Verdict => &mut line.verdict,
                Field::Release => &mut line.release,
                Field::Bug => &mut line.bug,
                Field::Branch => &mut line.branch,
                Field::Revision => &mut line.revision,
                Field::Environment => &mut line.environment,
                Field::Job => &mut line.job,
                Field::Duration => &mut line.duration,
                Field::Attempt => &mut line.attempt,
                Field::Message => &mut line.message,
            };
            *place = value.trim_ascii();
        }
        line
    }

    fn provenance<F: FnMut(Batch) -> Result<(), ()>>(
        &mut self,
        line: &Line<'_>,
        packer: &mut Packer<F>,
    ) -> u32 {
        if self.generation != packer.generation() {
            self.generation = packer.generation();
            self.places.clear();
            self.last = None;
        }
        let parts = [
            line.release,
            line.branch,
            line.revision,
            line.environment,
            line.job,
        ];
        if let Some(place) = self.last.filter(|_| is_key(&self.key, parts)) {
            return place;
        }
        self.key.clear();
        for part in parts {
            self.key.extend_from_slice(part);
            self.key.push(0);
        }
        if let Some(place) = self.places.get(&self.key) {
            self.last = Some(*place);
            return *place;
        }
        let given = &self.wish.provenance;
        let or_given = |value: &[u8], given: &str| {
            if value.is_empty() {
                given.to_owned()
            } else {
                String::from_utf8_lossy(value).into_owned()
            }
        };
        let provenance = Provenance {
            revision: or_given(line.revision, &given.revision),
            branch: or_given(line.branch, &given.branch),
            release: or_given(line.release, &given.release),
            environment: or_given(line.environment, &given.environment),
            job: or_given(line.job, &given.job),
        };
        let place = packer.provenance(&provenance);
        self.places.insert(self.key.clone(), place);
        self.last = Some(place);
        place
    }
}

/// Whether these parts make up the key.
fn is_key(key: &[u8], parts: [&[u8]; 5]) -> bool {
    let mut rest = key;
    for part in parts {
        // Most parts are empty. They lie nowhere, and to compare what lies nowhere is very slow on some
        // processors, whose loads first find out that they need not be made.
        let others = if part.is_empty() {
            Some(rest)
        } else {
            rest.strip_prefix(part)
        };
        match others {
            Some([0, others @ ..]) => rest = others,
            Some(_) | None => return false,
        }
    }
    rest.is_empty()
}

fn parse_number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The microseconds of seconds that are written like `12.345`, which nearly all are: exactly what
/// [`to_microseconds`] makes of them, for less. `None` if they are written otherwise.
fn plain_microseconds(text: &[u8]) -> Option<i64> {
    let point = memchr::memchr(b'.', text).unwrap_or(text.len());
    let (whole, fraction) = (&text[..point], text.get(point + 1..).unwrap_or_default());
    if whole.is_empty() || whole.len() > 9 || fraction.len() > 6 {
        return None;
    }
    let scale = [1_000_000, 100_000, 10_000, 1000, 100, 10, 1][fraction.len()];
    let mut microseconds = 0;
    for byte in whole.iter().chain(fraction) {
        if !byte.is_ascii_digit() {
            return None;
        }
        microseconds = microseconds * 10 + i64::from(byte - b'0');
    }
    Some(microseconds * scale)
}

/// A duration that is no number, or less than none, is one that we do not know.
#[expect(
    clippy::cast_possible_truncation,
    reason = "durations of years are not kept"
)]
pub(super) fn to_microseconds(seconds: Option<f64>) -> Option<i64> {
    let seconds = seconds.filter(|seconds| (0.0..1e9).contains(seconds))?;
    Some((seconds * 1e6).round() as i64)
}

/// What a failure has that a pass has not.
pub(super) fn to_more(bug: &[u8], message: &[u8], ended: Ended) -> Option<Box<More>> {
    if bug.is_empty() && (message.is_empty() || !ended.is_failure()) {
        return None;
    }
    let message = String::from_utf8_lossy(message);
    let message: String = message.chars().take(LONGEST_MESSAGE).collect();
    let fingerprint = (!message.is_empty()).then(|| Fingerprint::of_text("", &message, ""));
    Some(Box::new(More {
        bug: (!bug.is_empty()).then(|| String::from_utf8_lossy(bug).into_owned()),
        signature: fingerprint.as_ref().map(|known| known.summary().to_owned()),
        fingerprint: fingerprint
            .filter(|_| ended.is_failure())
            .map(|known| known.as_str().to_owned()),
        message,
        ..More::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_that_are_no_plain_numbers_are_left_to_the_long_way() {
        for text in [
            "",
            ".",
            ".5",
            "-1",
            "1e3",
            "NaN",
            "1.0000001",
            "1234567890",
            "1.2.3",
        ] {
            assert_eq!(plain_microseconds(text.as_bytes()), None, "{text}");
        }
        assert_eq!(plain_microseconds(b"12."), Some(12_000_000));
    }

    #[test]
    fn a_key_is_made_of_all_its_parts_and_of_nothing_else() {
        let parts: [&[u8]; 5] = [b"", b"main", b"", b"", b"7"];
        assert!(is_key(b"\0main\0\0\x007\0", parts));
        for other in [
            &b"\0main\0\0\0\0"[..],
            b"\0mai\0\0\x007\0",
            b"\0main\0\0\x007\0x",
            b"",
        ] {
            assert!(!is_key(other, parts), "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn the_short_way_to_microseconds_agrees_with_the_long_way(text in "[0-9]{1,9}(\\.[0-9]{0,6})?") {
            let long = to_microseconds(parse_number(text.as_bytes()));
            prop_assert!(long.is_some());
            prop_assert_eq!(plain_microseconds(text.as_bytes()), long);
        }
    }
}
