//! The tests that may fail: read from a file in the repository, or from a server.
//!
//! A list that cannot be had from a server excuses nobody, and that is said. A file that was named must be
//! there and make sense.

use std::fs;
use std::time::Duration;

use camino::Utf8Path;
use serde::Deserialize;
use unflake_core::blame::Whose;
use unflake_core::event::Note;
use unflake_core::quarantine::Quarantined;
use unflake_core::test::TestId;
use unflake_core::verdict::Finding;
use unflake_history::dates;
use ureq::Agent;

use crate::config::Config;
use crate::flags::args::ProjectArgs;
use crate::history::place;
use crate::view::explain::Trouble;

/// The file that is looked for where none is named.
const DEFAULT: &str = "unflake-quarantine.toml";

/// The most of a list that is read from a server.
const LONGEST: u64 = 16 * 1024 * 1024;

/// The tests that may fail today.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quarantine {
    tests: Vec<Quarantined>,
    /// Notes about the list itself.
    pub(crate) notes: Vec<Note>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    #[serde(default)]
    quarantine: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    test: String,
    reason: String,
    #[serde(default)]
    owner: String,
    until: String,
}

impl Quarantine {
    /// Reads the list that was typed, or that `unflake.toml` names, or the one beside that file.
    pub(crate) fn load(typed: Option<&str>, project: &ProjectArgs) -> anyhow::Result<Self> {
        let folder = place::here()?;
        let (config, config_path) = Config::load(project.config.as_deref(), &folder)?;
        let root = config_path.as_deref().and_then(Utf8Path::parent);
        let root = root.map_or_else(|| folder.clone(), |parent| folder.join(parent));
        let today = dates::day_of(dates::now());
        let written = config.run.quarantine.as_deref();
        let found = typed.map(|place| (place, &folder));
        let found = found.or_else(|| written.map(|place| (place, &root)));
        match found {
            Some((place, _)) if place.starts_with("http://") || place.starts_with("https://") => {
                Ok(Self::fetch(place, today))
            }
            Some((place, base)) => Ok(Self::read(&base.join(place), today)?),
            None => {
                let path = root.join(DEFAULT);
                if path.is_file() {
                    return Ok(Self::read(&path, today)?);
                }
                Ok(Self::default())
            }
        }
    }

    fn read(path: &Utf8Path, today: i32) -> Result<Self, Trouble> {
        let trouble = |why: String| Trouble::Quarantine {
            path: path.to_owned(),
            why,
        };
        let text = fs::read_to_string(path).map_err(|error| trouble(error.to_string()))?;
        Self::parse(&text, today).map_err(trouble)
    }

    /// The list of a server; an empty one with a note if it cannot be had.
    fn fetch(url: &str, today: i32) -> Self {
        let unread = |why: String| Self {
            tests: Vec::new(),
            notes: vec![Note::QuarantineUnread {
                place: url.to_owned(),
                why,
            }],
        };
        let text = match request(url) {
            Ok(text) => text,
            Err(error) => return unread(error.to_string()),
        };
        Self::parse(&text, today).unwrap_or_else(unread)
    }

    fn parse(text: &str, today: i32) -> Result<Self, String> {
        let contents: Contents = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut found = Self::default();
        let mut over = Vec::new();
        for entry in contents.quarantine {
            let Some(until) = dates::parse(&entry.until) else {
                return Err(format!("`{}` is no date", entry.until));
            };
            let quarantined = Quarantined {
                test: entry.test,
                reason: entry.reason,
                owner: entry.owner,
                until,
            };
            if quarantined.is_over(today) {
                over.push(quarantined.test);
            } else {
                found.tests.push(quarantined);
            }
        }
        if !over.is_empty() {
            found.notes.push(Note::QuarantineOver { tests: over });
        }
        Ok(found)
    }

    /// The test's place in quarantine, if it is there today.
    pub(crate) fn of(&self, test: &TestId) -> Option<&Quarantined> {
        self.tests.iter().find(|one| one.means(test))
    }

    /// The findings that count: those of tests that are not in quarantine, and those that the change has made.
    pub(crate) fn counted<'a>(
        &'a self,
        findings: &'a [Finding],
    ) -> impl Iterator<Item = &'a Finding> + Clone {
        let counts = |finding: &&Finding| self.of(&finding.test).is_none() || is_yours(finding);
        findings.iter().filter(counts)
    }
}

/// Whether a failure was shown to be the change's doing: nothing excuses it.
pub(crate) fn is_yours(finding: &Finding) -> bool {
    let blame = finding.blame.as_deref();
    blame.is_some_and(|blame| matches!(blame.whose, Whose::Yours(_)))
}

fn request(url: &str) -> Result<String, ureq::Error> {
    let config = Agent::config_builder().timeout_global(Some(Duration::from_secs(15)));
    let agent: Agent = config.build().into();
    let place = format!("{}/api/v1/quarantine.toml", url.trim_end_matches('/'));
    let mut request = agent.get(place);
    if let Some(token) = std::env::var("UNFLAKE_TOKEN")
        .ok()
        .filter(|token| !token.is_empty())
    {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let mut response = request.call()?;
    response
        .body_mut()
        .with_config()
        .limit(LONGEST)
        .read_to_string()
}

/// The words that follow "quarantined".
pub(crate) fn describe(quarantined: &Quarantined) -> String {
    let owner = match quarantined.owner.as_str() {
        "" => String::new(),
        owner => format!(", {owner}"),
    };
    let until = dates::to_text(quarantined.until);
    format!("until {until}{owner}: {}", quarantined.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_excuses_tests_until_their_time_is_over() {
        let text = "[[quarantine]]\ntest = 'a.py::t'\nreason = 'slow'\nowner = '@net'\nuntil = '1970-01-11'\n\
                    [[quarantine]]\ntest = 'b.py::t'\nreason = 'old'\nuntil = '1970-01-10'\n";
        let found = Quarantine::parse(text, 10).unwrap();
        let held = found.of(&TestId::new("a.py::t")).unwrap();
        assert_eq!(describe(held), "until 1970-01-11, @net: slow");
        assert!(found.of(&TestId::new("b.py::t")).is_none());
        let over = Note::QuarantineOver {
            tests: vec!["b.py::t".to_owned()],
        };
        assert_eq!(found.notes, [over]);
    }

    #[test]
    fn a_list_that_makes_no_sense_is_an_error() {
        assert!(Quarantine::parse("[[quarantine]]\ntest = 'a'\nuntil = '2026-01-01'", 0).is_err());
        assert!(Quarantine::parse("[[quarantin]]", 0).is_err());
        let bad = "[[quarantine]]\ntest = 'a'\nreason = ''\nuntil = 'soon'";
        assert_eq!(Quarantine::parse(bad, 0).unwrap_err(), "`soon` is no date");
    }

    #[test]
    fn a_server_that_does_not_answer_excuses_nobody_and_that_is_said() {
        // Nothing listens on port 1 of this machine.
        let found = Quarantine::fetch("http://127.0.0.1:1", 0);
        assert!(found.tests.is_empty());
        assert!(matches!(
            found.notes.as_slice(),
            [Note::QuarantineUnread { .. }]
        ));
    }
}
