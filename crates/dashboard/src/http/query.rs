//! What stands behind the question mark, read with care.

use std::collections::BTreeMap;

use unflake_history::dates;
use unflake_history::run::Provenance;

use crate::board::tests_list;
use crate::board::triage;
use crate::http::problem::Problem;

/// The most characters that a field may have.
const LONGEST: usize = 1000;

/// The fields of a query; of two with the same name the last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(pub(crate) BTreeMap<String, String>);

impl Fields {
    /// A field that is there and not empty.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Problem> {
        let Some(text) = self.0.get(name).map(|text| text.trim()) else {
            return Ok(None);
        };
        if text.chars().count() > LONGEST || text.contains(char::is_control) {
            return Err(Problem::Bad(format!(
                "`{name}` is longer than {LONGEST} characters, or has control characters"
            )));
        }
        Ok((!text.is_empty()).then_some(text))
    }

    fn number(&self, name: &str) -> Result<Option<i64>, Problem> {
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
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let bad = || Problem::Bad(format!("`{name}` is no date such as 2026-11-18"));
        // Far days would overflow when they are counted in milliseconds.
        let day = dates::parse(text).filter(|day| day.unsigned_abs() < 1_000_000);
        Ok(Some(day.ok_or_else(bad)?))
    }

    pub(crate) fn to_triage(&self) -> Result<triage::Wanted, Problem> {
        let which = match (self.day("day")?, self.text("since")?) {
            (None, None) => triage::Which::LastDay,
            (Some(day), None) => triage::Which::Day(day),
            (None, Some("stable")) => triage::Which::SinceStable,
            (None, Some(_)) => return Err(Problem::Bad("`since` is one of: stable".to_owned())),
            (Some(_), Some(_)) => {
                return Err(Problem::Bad(
                    "`day` and `since` exclude each other".to_owned(),
                ));
            }
        };
        Ok(triage::Wanted {
            which,
            most: triage::SHOWN,
            environment: self.text("environment")?.map(ToOwned::to_owned),
        })
    }

    pub(crate) fn to_tests(&self) -> Result<tests_list::Wanted, Problem> {
        let sort = match self.text("sort")? {
            None => tests_list::Sort::default(),
            Some(word) => find(&tests_list::Sort::ALL, word, "sort")?,
        };
        let only = match self.text("only")? {
            None => tests_list::Only::default(),
            Some(word) => find(&tests_list::Only::ALL, word, "only")?,
        };
        let page = self.number("page")?.unwrap_or(1);
        Ok(tests_list::Wanted {
            query: self.text("query")?.unwrap_or_default().to_owned(),
            sort,
            only,
            page: usize::try_from(page)
                .map_err(|_| Problem::Bad("`page` is below 1".to_owned()))?,
        })
    }

    pub(crate) fn to_provenance(&self) -> Result<Provenance, Problem> {
        let text = |name| Ok::<_, Problem>(self.text(name)?.unwrap_or_default().to_owned());
        Ok(Provenance {
            revision: text("revision")?,
            branch: text("branch")?,
            release: text("release")?,
            environment: text("environment")?,
            job: text("job")?,
        })
    }

    /// When a file was written, in milliseconds since 1970.
    pub(crate) fn written(&self) -> Result<Option<i64>, Problem> {
        let written = self.number("written")?;
        if written.is_some_and(|time| time.unsigned_abs() > 1 << 46) {
            return Err(Problem::Bad("`written` is no time of our days".to_owned()));
        }
        Ok(written)
    }
}

fn find<T: Copy>(all: &[(T, &'static str)], word: &str, name: &str) -> Result<T, Problem> {
    let found = all.iter().find(|(_, one)| *one == word);
    found.map(|(one, _)| *one).ok_or_else(|| {
        let words: Vec<&str> = all.iter().map(|(_, one)| *one).collect();
        Problem::Bad(format!("`{name}` is one of: {}", words.join(", ")))
    })
}
