//! What people say on the board, checked, as the labels that are written down.

use serde::Deserialize;
use unflake_history::dates;
use unflake_history::run::{Label, TestName};

use super::Board;
use super::labels::{BUG, CLEARED, QUARANTINED, RESOLVED, STOOD, Terms};
use super::suspicion::span_of;
use super::triage::{Wanted, Which};
use crate::http::problem::Problem;
use crate::http::query::{self, parse_day};

/// What is said about a test's failures of a day.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saying {
    /// The test's number.
    pub(crate) test: u32,
    /// As 2026-11-18.
    pub(crate) day: String,
    /// Whether it is a fault of the product; false takes back what was said.
    pub(crate) is_fault: bool,
    /// The bug's id or address.
    #[serde(default)]
    pub(crate) bug: String,
}

impl Saying {
    /// A label for each of these failures, and where they stood on the board.
    pub(crate) fn to_labels(&self, board: &Board<'_>, author: &str) -> Result<Vec<Label>, Problem> {
        let missing = || Problem::NotFound("this test did not fail on that day".to_owned());
        let day = parse_day("day", &self.day)?;
        let bug = check_text("bug", &self.bug, 500)?;
        let shown = board.triage(&Wanted {
            which: day.map_or(Which::LastDay, Which::Day),
            environment: None,
            most: usize::MAX,
        })?;
        let (list, line) = shown.standing(self.test).ok_or_else(missing)?;
        let runs = failures_of(board, self.test, day.ok_or_else(missing)?)?;
        let test = board.name(self.test)?;
        let say = |run: i64, kind: &str, value: &str| Label {
            run: Some(run),
            ..about(&test, author, (kind, value.to_owned()))
        };
        let kind = if self.is_fault { BUG } else { CLEARED };
        let runs = runs.into_iter();
        let mut labels: Vec<Label> = runs.map(|run| say(run, kind, &bug)).collect();
        if self.is_fault {
            labels.push(say(line.run, STOOD, list));
        }
        Ok(labels)
    }
}

/// A test that is to go into quarantine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Admission {
    /// The test's number.
    pub(crate) test: u32,
    pub(crate) reason: String,
    #[serde(default)]
    pub(crate) owner: String,
    /// As 2026-11-18.
    pub(crate) until: String,
}

impl Admission {
    /// The label that puts it there.
    pub(crate) fn to_labels(&self, board: &Board<'_>, author: &str) -> Result<Vec<Label>, Problem> {
        let reason = check_text("reason", &self.reason, 500)?;
        if reason.is_empty() {
            return Err(Problem::Bad(
                "say why the test goes into quarantine".to_owned(),
            ));
        }
        let owner = check_text("owner", &self.owner, 200)?;
        let until = parse_day("until", &self.until)?;
        let until = until.ok_or_else(|| Problem::Bad("say until when".to_owned()))?;
        let today = dates::day_of(dates::now());
        if until < today || until > today + 366 {
            return Err(Problem::Bad(
                "a quarantine ends today or later, and within a year".to_owned(),
            ));
        }
        let terms = Terms {
            reason,
            owner,
            until: dates::to_text(until),
        };
        let value = serde_json::to_string(&terms).map_err(|_| Problem::Broken)?;
        let test = board.name(self.test)?;
        Ok(vec![about(&test, author, (QUARANTINED, value))])
    }
}

/// A test that is to leave quarantine, by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Discharge(pub(crate) u32);

impl Discharge {
    /// The label that takes it out.
    pub(crate) fn to_labels(self, board: &Board<'_>, author: &str) -> Result<Vec<Label>, Problem> {
        let first = board.snapshot.aliases.first(self.0);
        if !board.snapshot.said.quarantined.contains_key(&first) {
            return Err(Problem::NotFound(
                "this test is not in quarantine".to_owned(),
            ));
        }
        let why = format!("taken out by {author}");
        Ok(vec![about(&board.name(self.0)?, author, (RESOLVED, why))])
    }
}

fn about(test: &TestName, author: &str, (kind, value): (&str, String)) -> Label {
    Label {
        time: dates::now(),
        test: test.clone(),
        run: None,
        kind: kind.to_owned(),
        value,
        author: author.to_owned(),
    }
}

/// The failures of a test on a day, by number.
fn failures_of(board: &Board<'_>, test: u32, day: i32) -> Result<Vec<i64>, Problem> {
    let known = board.known().ok_or(Problem::Broken)?;
    let place = known.place(test);
    let (from, to) = span_of(day);
    let failures = board.store.failures_between(from, to)?.into_iter();
    let of_test =
        failures.filter(|one| known.place(one.test) == place && known.has_stream(one.stream));
    Ok(of_test.map(|one| one.run.number).collect())
}

/// Text that people wrote into a field, of a certain length at most.
fn check_text(name: &str, text: &str, most: usize) -> Result<String, Problem> {
    let text = text.trim();
    query::check_text(name, text, most)?;
    Ok(text.to_owned())
}
