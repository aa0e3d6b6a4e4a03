//! Fields behind the question mark and in forms, read with care.

use std::collections::BTreeMap;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use unflake_history::dates;

use super::problem::Problem;

/// The most characters that a field may have.
const LONGEST: usize = 1000;

/// The fields of a query or a form; of two with the same name the last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(pub(crate) BTreeMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Fields {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = Query::from_request_parts(parts, state).await;
        let Query(fields) = found.map_err(|rejection| Problem::Bad(rejection.body_text()))?;
        Ok(Self(fields))
    }
}

/// The number of a test in a path; one that is none belongs to no test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestNumber(pub(crate) u32);

impl TestNumber {
    /// The number that a text writes.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let number = text.parse();
        number
            .map(Self)
            .map_err(|_| Problem::NotFound("there is no such test".to_owned()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TestNumber {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = Path::<String>::from_request_parts(parts, state).await;
        let Path(text) = found.map_err(|rejection| Problem::Bad(rejection.body_text()))?;
        Self::parse(&text)
    }
}

impl Fields {
    /// A field that is there and not empty.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Problem> {
        let Some(text) = self.0.get(name).map(|text| text.trim()) else {
            return Ok(None);
        };
        check_text(name, text, LONGEST)?;
        Ok((!text.is_empty()).then_some(text))
    }

    /// A field as it was written, whatever is in it; empty if it is not there.
    pub(crate) fn raw(&self, name: &str) -> &str {
        self.0.get(name).map(|text| text.trim()).unwrap_or_default()
    }

    /// A whole number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Problem> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let number = text
            .parse()
            .map_err(|_| Problem::Bad(format!("`{name}` is no number")))?;
        Ok(Some(number))
    }

    /// A date, in days since 1970.
    pub(crate) fn day(&self, name: &str) -> Result<Option<i32>, Problem> {
        match self.text(name)? {
            None => Ok(None),
            Some(text) => parse_day(name, text),
        }
    }

    /// One of some words; the usual one if the field is not there.
    pub(crate) fn word<T: Copy + Default>(
        &self,
        name: &str,
        all: &[(T, &'static str)],
    ) -> Result<T, Problem> {
        let Some(word) = self.text(name)? else {
            return Ok(T::default());
        };
        let found = all.iter().find(|(_, one)| *one == word);
        found.map(|(one, _)| *one).ok_or_else(|| {
            let words: Vec<&str> = all.iter().map(|(_, one)| *one).collect();
            Problem::Bad(format!("`{name}` is one of: {}", words.join(", ")))
        })
    }
}

/// The date that a field has, in days since 1970; nothing if it is empty.
pub(crate) fn parse_day(name: &str, text: &str) -> Result<Option<i32>, Problem> {
    let text = text.trim();
    check_text(name, text, LONGEST)?;
    if text.is_empty() {
        return Ok(None);
    }
    let bad = || Problem::Bad(format!("`{name}` is no date such as 2026-11-18"));
    // Far days would overflow when they are counted in milliseconds.
    let day = dates::parse(text).filter(|day| day.unsigned_abs() < 1_000_000);
    Ok(Some(day.ok_or_else(bad)?))
}

/// An error if a text is too long, or has characters that cannot be seen.
pub(crate) fn check_text(name: &str, text: &str, most: usize) -> Result<(), Problem> {
    if text.chars().count() > most || text.contains(char::is_control) {
        return Err(Problem::Bad(format!(
            "`{name}` is longer than {most} characters, or has control characters"
        )));
    }
    Ok(())
}
