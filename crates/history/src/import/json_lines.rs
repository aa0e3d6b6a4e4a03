//! Runs out of JSON, one object a line.

use std::io::{BufRead, Read};

use serde_json::{Map, Value};

use super::columns::Field;
use super::delimited::{LONGEST_NAME, to_microseconds, to_more};
use super::skips::{Skip, Skips};
use super::times::parse_time;
use super::words::parse_verdict;
use super::{FUTURE, FileError, Wish};
use crate::batch::{Batch, Packer};
use crate::run::{Provenance, Row};

/// The longest line that is read.
const LONGEST_LINE: u64 = 1024 * 1024;

pub(super) fn read<R: BufRead, F: FnMut(Batch) -> Result<(), ()>>(
    reader: &mut R,
    wish: &Wish,
    packer: &mut Packer<F>,
    skips: &mut Skips,
) -> Result<(), FileError> {
    let mut bytes = Vec::new();
    let mut number = 0_u64;
    loop {
        bytes.clear();
        number += 1;
        if reader
            .by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut bytes)?
            == 0
        {
            return Ok(());
        }
        let place = || format!("line {number}");
        if bytes.len() as u64 >= LONGEST_LINE && !bytes.ends_with(b"\n") {
            skip_line(reader)?;
            skips.add(Skip::LongLine, place);
            continue;
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let object = serde_json::from_slice::<Map<String, Value>>(&bytes);
        let row = object.map_err(|_| Skip::NotJson);
        match row.and_then(|object| to_row(&object, wish, packer)) {
            Ok(row) => {
                if packer.push(row).is_err() {
                    return Ok(());
                }
            }
            Err(skip) => skips.add(skip, place),
        }
    }
}

fn skip_line(reader: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let chunk = reader.fill_buf()?;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let (count, is_end) = end.map_or((chunk.len(), chunk.is_empty()), |at| (at + 1, true));
        reader.consume(count);
        if is_end {
            return Ok(());
        }
    }
}

/// An object with the names of its fields.
struct Object<'a> {
    fields: &'a Map<String, Value>,
    wish: &'a Wish,
}

impl Object<'_> {
    /// The value of a field as text; empty if it has none.
    fn text(&self, field: Field) -> String {
        match self.wish.columns.value(self.fields, field) {
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Bool(flag)) => flag.to_string(),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => String::new(),
        }
    }

    fn time(&self) -> Result<i64, Skip> {
        let time = self.text(Field::Time);
        if time.is_empty() {
            return Err(Skip::NoTime);
        }
        let time = parse_time(&time).ok_or(Skip::BadTime)?;
        if time > self.wish.now + FUTURE {
            return Err(Skip::Future);
        }
        Ok(time)
    }

    /// Where the run comes from: what the object says, or else what was said of the file.
    fn provenance(&self) -> Provenance {
        let or_given = |field: Field, given: &str| {
            let found = self.text(field);
            if found.is_empty() {
                given.to_owned()
            } else {
                found
            }
        };
        let given = &self.wish.provenance;
        Provenance {
            revision: or_given(Field::Revision, &given.revision),
            branch: or_given(Field::Branch, &given.branch),
            release: or_given(Field::Release, &given.release),
            environment: or_given(Field::Environment, &given.environment),
            job: or_given(Field::Job, &given.job),
        }
    }
}

fn to_row<F: FnMut(Batch) -> Result<(), ()>>(
    fields: &Map<String, Value>,
    wish: &Wish,
    packer: &mut Packer<F>,
) -> Result<Row, Skip> {
    let object = Object { fields, wish };
    let test = object.text(Field::Test);
    if test.is_empty() {
        return Err(Skip::NoName);
    }
    if test.len() > LONGEST_NAME {
        return Err(Skip::LongName);
    }
    let time = object.time()?;
    let verdict = object.text(Field::Verdict);
    if verdict.is_empty() {
        return Err(Skip::NoVerdict);
    }
    let ended = parse_verdict(verdict.as_bytes()).ok_or(Skip::BadVerdict)?;
    Ok(Row {
        test: packer.test(&test, 0, false),
        provenance: packer.provenance(&object.provenance()),
        time,
        ended,
        attempt: object.text(Field::Attempt).parse().unwrap_or(1),
        duration: to_microseconds(object.text(Field::Duration).parse().ok()),
        more: to_more(
            object.text(Field::Bug).as_bytes(),
            object.text(Field::Message).as_bytes(),
            ended,
        ),
    })
}
