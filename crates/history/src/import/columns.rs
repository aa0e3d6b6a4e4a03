//! Which column of a table holds what.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What a column can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// The test's name.
    Test,
    /// When it ran.
    Time,
    /// How it ended.
    Verdict,
    /// The release.
    Release,
    /// The bug's id.
    Bug,
    /// The branch.
    Branch,
    /// The revision.
    Revision,
    /// The machine or equipment.
    Environment,
    /// The job.
    Job,
    /// Seconds.
    Duration,
    /// The number of the attempt, from 1.
    Attempt,
    /// The failure's message.
    Message,
}

/// All of them, with the word for each, and what other systems call it. Case, spaces, `_` and `-` do not
/// matter.
const FIELDS: [(Field, &[&str]); 12] = [
    (
        Field::Test,
        &[
            "test",
            "testid",
            "testname",
            "testcase",
            "testcasename",
            "name",
            "id",
        ],
    ),
    (
        Field::Time,
        &[
            "time",
            "timestamp",
            "date",
            "datetime",
            "start",
            "started",
            "starttime",
        ],
    ),
    (
        Field::Verdict,
        &["verdict", "outcome", "result", "status", "testrunverdict"],
    ),
    (Field::Release, &["release", "releaseid", "version"]),
    (
        Field::Bug,
        &[
            "bug",
            "bugid",
            "bugreportid",
            "trid",
            "tr",
            "issue",
            "ticket",
        ],
    ),
    (Field::Branch, &["branch"]),
    (Field::Revision, &["revision", "commit", "sha", "rev"]),
    (
        Field::Environment,
        &["environment", "stp", "machine", "host", "hostname", "env"],
    ),
    (Field::Job, &["job", "jobid", "build", "buildid"]),
    (Field::Duration, &["duration", "seconds", "elapsed"]),
    (Field::Attempt, &["attempt"]),
    (Field::Message, &["message", "error", "failure"]),
];

/// The columns that the user named; others are found by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    named: BTreeMap<Field, String>,
}

/// Why a table's columns cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    /// A column map that is no `field=column`.
    #[error("`{text}` is no `field=column` with one of these fields: {}", words())]
    Syntax {
        /// What was given.
        text: String,
    },
    /// A column that was named is not there.
    #[error("there is no column `{column}`; there are: {}", .there.join(", "))]
    Missing {
        /// The column.
        column: String,
        /// Those that are there.
        there: Vec<String>,
    },
    /// One that must be there is not.
    #[error(
        "no column holds the {}; there are: {}", word(*.field), .there.join(", ")
    )]
    Needed {
        /// What is not there.
        field: Field,
        /// The columns that are.
        there: Vec<String>,
    },
}

fn word(field: Field) -> &'static str {
    let found = FIELDS.iter().find(|(one, _)| *one == field);
    found.map_or("", |(_, words)| words[0])
}

fn words() -> String {
    FIELDS.map(|(_, words)| words[0]).join(", ")
}

impl Columns {
    /// Adds what `field=column` says.
    pub fn name(&mut self, text: &str) -> Result<(), ColumnError> {
        let syntax = || ColumnError::Syntax {
            text: text.to_owned(),
        };
        let (field, column) = text.split_once('=').ok_or_else(syntax)?;
        let field = FIELDS.iter().find(|(_, words)| words[0] == field.trim());
        let (field, _) = field.ok_or_else(syntax)?;
        self.named.insert(*field, column.trim().to_owned());
        Ok(())
    }

    /// The column that the user named for a field.
    pub(super) fn named(&self, field: Field) -> Option<&str> {
        self.named.get(&field).map(String::as_str)
    }

    /// The value of a field in an object, by the name given for it or by any that it is known under.
    pub(super) fn value<'a>(
        &self,
        object: &'a Map<String, Value>,
        field: Field,
    ) -> Option<&'a Value> {
        if let Some(column) = self.named.get(&field) {
            return object.get(column);
        }
        let (_, words) = FIELDS.iter().find(|(one, _)| *one == field)?;
        words.iter().find_map(|word| {
            let exact = object.get(*word);
            exact.or_else(|| {
                let mut all = object.iter();
                all.find(|(name, _)| plain(name) == *word)
                    .map(|(_, value)| value)
            })
        })
    }

    /// Which field each of these columns holds.
    pub(super) fn find(&self, there: &[String]) -> Result<Vec<Option<Field>>, ColumnError> {
        let mut found = vec![None; there.len()];
        for (field, column) in &self.named {
            let at = there.iter().position(|one| one == column);
            let at = at.ok_or_else(|| ColumnError::Missing {
                column: column.clone(),
                there: there.to_vec(),
            })?;
            found[at] = Some(*field);
        }
        for (field, words) in FIELDS {
            if self.named.contains_key(&field) {
                continue;
            }
            let plain: Vec<String> = there.iter().map(|column| plain(column)).collect();
            let at = words.iter().find_map(|word| {
                let mut places = 0..plain.len();
                places.find(|at| plain[*at] == *word && found[*at].is_none())
            });
            if let Some(at) = at {
                found[at] = Some(field);
            }
        }
        for field in [Field::Test, Field::Time, Field::Verdict] {
            if !found.contains(&Some(field)) {
                return Err(ColumnError::Needed {
                    field,
                    there: there.to_vec(),
                });
            }
        }
        Ok(found)
    }
}

fn plain(column: &str) -> String {
    let letters = column.chars().filter(|one| one.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_papers_five_columns_are_found_by_their_names() {
        let names = there(&[
            "Test case name",
            "Test date",
            "Date",
            "Verdict",
            "Release id",
            "TRID",
        ]);
        let found = Columns::default().find(&names).unwrap();
        assert_eq!(found[0], Some(Field::Test));
        assert_eq!(found[1], None);
        assert_eq!(
            found[2..],
            [
                Some(Field::Time),
                Some(Field::Verdict),
                Some(Field::Release),
                Some(Field::Bug)
            ]
        );
    }

    #[test]
    fn a_named_column_beats_a_guess_and_must_be_there() {
        let mut columns = Columns::default();
        columns.name("time=when").unwrap();
        let found = columns
            .find(&there(&["test", "time", "when", "result"]))
            .unwrap();
        assert_eq!(
            found,
            [
                Some(Field::Test),
                None,
                Some(Field::Time),
                Some(Field::Verdict)
            ]
        );
        let missing = columns
            .find(&there(&["test", "time", "result"]))
            .unwrap_err();
        assert_eq!(
            missing.to_string(),
            "there is no column `when`; there are: test, time, result"
        );
        let needed = Columns::default()
            .find(&there(&["test", "time"]))
            .unwrap_err();
        assert_eq!(
            needed.to_string(),
            "no column holds the verdict; there are: test, time"
        );
        assert!(columns.name("when=time").is_err() && columns.name("time").is_err());
    }
}
