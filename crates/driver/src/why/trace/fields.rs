//! The fields of a record in a trace, and numbers that stand for what was told before.

use std::collections::HashMap;

use serde_json::Value;

/// A record: the first field says what it is.
pub(crate) struct Fields<'a>(pub(crate) &'a [Value]);

impl Fields<'_> {
    fn field(&self, at: usize) -> Result<&Value, String> {
        self.0
            .get(at)
            .ok_or_else(|| "a record is too short".to_owned())
    }

    /// Whether there is such a field.
    pub(crate) fn has(&self, at: usize) -> bool {
        self.0.len() > at
    }

    pub(crate) fn number(&self, at: usize) -> Result<u64, String> {
        let found = self.field(at)?;
        found
            .as_u64()
            .ok_or_else(|| format!("{found} is no number"))
    }

    pub(crate) fn signed(&self, at: usize) -> Result<i64, String> {
        let found = self.field(at)?;
        found
            .as_i64()
            .ok_or_else(|| format!("{found} is no number"))
    }

    pub(crate) fn optional(&self, at: usize) -> Result<Option<u64>, String> {
        if self.field(at)?.is_null() {
            return Ok(None);
        }
        self.number(at).map(Some)
    }

    pub(crate) fn text(&self, at: usize) -> Result<&str, String> {
        let found = self.field(at)?;
        found.as_str().ok_or_else(|| format!("{found} is no text"))
    }
}

pub(crate) fn fits(number: u64) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("{number} is too large"))
}

/// Something that was told before.
pub(crate) fn find<'a, T>(
    told: &'a HashMap<u64, T>,
    number: u64,
    what: &str,
) -> Result<&'a T, String> {
    told.get(&number)
        .ok_or_else(|| format!("it has no {what} {number}"))
}

/// Four bytes as a number; zero if they are not there.
pub(crate) fn le_u32(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    found.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
