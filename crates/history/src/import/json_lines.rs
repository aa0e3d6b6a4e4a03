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

fn to_row<F: FnMut(Batch) -> Result<(), ()>>(
    object: &Map<String, Value>,
    wish: &Wish,
    packer: &mut Packer<F>,
) -> Result<Row, Skip> {
    let value = |field: Field| -> String {
        let found = wish.columns.value(object, field);
        match found {
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Bool(flag)) => flag.to_string(),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => String::new(),
        }
    };
    let test = value(Field::Test);
    if test.is_empty() {
        return Err(Skip::NoName);
    }
    if test.len() > LONGEST_NAME {
        return Err(Skip::LongName);
    }
    let time = value(Field::Time);
    if time.is_empty() {
        return Err(Skip::NoTime);
    }
    let time = parse_time(&time).ok_or(Skip::BadTime)?;
    if time > wish.now + FUTURE {
        return Err(Skip::Future);
    }
    let verdict = value(Field::Verdict);
    if verdict.is_empty() {
        return Err(Skip::NoVerdict);
    }
    let ended = parse_verdict(verdict.as_bytes()).ok_or(Skip::BadVerdict)?;
    let or_given = |field: Field, given: &str| {
        let found = value(field);
        if found.is_empty() {
            given.to_owned()
        } else {
            found
        }
    };
    let given = &wish.provenance;
    let provenance = Provenance {
        revision: or_given(Field::Revision, &given.revision),
        branch: or_given(Field::Branch, &given.branch),
        release: or_given(Field::Release, &given.release),
        environment: or_given(Field::Environment, &given.environment),
        job: or_given(Field::Job, &given.job),
    };
    Ok(Row {
        test: packer.test(&test, 0, false),
        provenance: packer.provenance(&provenance),
        time,
        ended,
        attempt: value(Field::Attempt).parse().unwrap_or(1),
        duration: to_microseconds(value(Field::Duration).parse().ok()),
        more: to_more(
            value(Field::Bug).as_bytes(),
            value(Field::Message).as_bytes(),
            ended,
        ),
    })
}
