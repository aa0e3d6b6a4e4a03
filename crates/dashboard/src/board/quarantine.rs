//! Tests in quarantine: who put them there and why, until when, and what their runs since say.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use unflake_core::quantify::interval::wilson;
use unflake_core::quantify::sample::Sample;
use unflake_core::quarantine::Release;
use unflake_history::book::Entry;
use unflake_history::dates;
use unflake_history::run::{Label, TestName};
use unflake_history::store::{Store, StoreError};

use crate::board::aliases::Aliases;
use crate::board::labels::{Kept, RESOLVED, Said};
use crate::board::snapshot::Snapshot;

/// Who speaks when evidence decides.
const AUTHOR: &str = "unflake";

/// All that the page shows.
#[derive(Debug, Serialize)]
pub(crate) struct Quarantine {
    pub(crate) residents: Vec<Resident>,
    /// Those that have left, the last first.
    pub(crate) left: Vec<Resident>,
    /// Below which rate a test leaves, and after how many runs at least.
    pub(crate) limit: f64,
    pub(crate) least_runs: u64,
}

/// A test that is or was in quarantine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Resident {
    pub(crate) number: u32,
    pub(crate) test: String,
    pub(crate) copy: u32,
    pub(crate) reason: String,
    pub(crate) owner: String,
    pub(crate) author: String,
    pub(crate) since: String,
    pub(crate) until: String,
    /// Whether runs fail for it again because its time is over.
    pub(crate) is_over: bool,
    /// Runs since it came, and the failures among them.
    pub(crate) runs: u64,
    pub(crate) failures: u64,
    /// The highest rate that it may have.
    pub(crate) high: f64,
    pub(crate) left: Option<String>,
    pub(crate) left_because: Option<String>,
    #[serde(skip)]
    pub(crate) left_at: i64,
}

impl Quarantine {
    pub(crate) fn read(
        store: &dyn Store,
        snapshot: &Snapshot,
        release: Release,
        now: i64,
    ) -> Result<Self, StoreError> {
        let (said, aliases) = (&snapshot.said, &snapshot.aliases);
        let to_all = |all: &HashMap<u32, Kept>| {
            let mut found = Vec::new();
            let all: BTreeMap<&u32, &Kept> = all.iter().collect();
            for (number, kept) in all {
                if let Some(name) = aliases.name(store, *number)? {
                    let numbers = aliases.numbers(*number);
                    found.push(to_resident(store, (&numbers, &name, kept), now)?);
                }
            }
            Ok::<_, StoreError>(found)
        };
        let mut residents = to_all(&said.quarantined)?;
        residents.sort_by(|one, other| {
            one.until
                .cmp(&other.until)
                .then_with(|| one.test.cmp(&other.test))
        });
        let mut left = to_all(&said.left)?;
        left.sort_by(|one, other| {
            other
                .left_at
                .cmp(&one.left_at)
                .then_with(|| one.test.cmp(&other.test))
        });
        Ok(Self {
            residents,
            left,
            limit: release.limit,
            least_runs: release.least_runs,
        })
    }

    /// The list as `unflake run` reads it.
    pub(crate) fn to_toml(&self) -> String {
        let mut text =
            "# Tests that do not fail `unflake run`. Written by `unflake serve`.\n".to_owned();
        for one in self.residents.iter().filter(|one| !one.is_over) {
            let mut table = toml::Table::new();
            for (key, value) in [
                ("test", &one.test),
                ("reason", &one.reason),
                ("owner", &one.owner),
                ("until", &one.until),
            ] {
                table.insert(key.to_owned(), toml::Value::String(value.clone()));
            }
            text.push_str("\n[[quarantine]]\n");
            text.push_str(&table.to_string());
        }
        text
    }
}

impl Resident {
    /// A test's place in quarantine, if it is there.
    pub(crate) fn of(
        store: &dyn Store,
        snapshot: &Snapshot,
        entry: &Entry,
    ) -> Result<Option<Self>, StoreError> {
        let quarantined = &snapshot.said.quarantined;
        let Some(kept) = quarantined.get(&entry.numbers[0]) else {
            return Ok(None);
        };
        let of_test = (entry.numbers.as_slice(), &entry.name, kept);
        to_resident(store, of_test, dates::now()).map(Some)
    }
}

fn to_resident(
    store: &dyn Store,
    (numbers, name, kept): (&[u32], &TestName, &Kept),
    now: i64,
) -> Result<Resident, StoreError> {
    let end = kept.left.as_ref().map_or(now, |(time, _)| *time);
    let since = runs_since(store, numbers, (kept.since, end))?;
    let today = dates::day_of(now);
    let is_over = dates::parse(&kept.terms.until).is_none_or(|until| until < today);
    Ok(Resident {
        number: numbers[0],
        test: name.name.clone(),
        copy: name.copy,
        reason: kept.terms.reason.clone(),
        owner: kept.terms.owner.clone(),
        author: kept.author.clone(),
        since: dates::to_text(dates::day_of(kept.since)),
        until: kept.terms.until.clone(),
        is_over,
        runs: since.runs(),
        failures: since.failures(),
        high: wilson(since, Release::DEFAULT.level).high,
        left: kept
            .left
            .as_ref()
            .map(|(time, _)| dates::to_text(dates::day_of(*time))),
        left_because: kept.left.as_ref().map(|(_, why)| why.clone()),
        left_at: kept.left.as_ref().map_or(0, |(time, _)| *time),
    })
}

/// All runs of a test in a range of times, under whatever name and in whatever stream.
fn runs_since(store: &dyn Store, numbers: &[u32], span: (i64, i64)) -> Result<Sample, StoreError> {
    let (mut failures, mut runs) = (0, 0);
    store.visit_days_of(numbers, span.0, span.1, &mut |_, _, failed| {
        runs += 1;
        failures += u64::from(failed);
    })?;
    Ok(Sample::new(failures, runs))
}

/// Lets the tests go whose runs since they came are enough, and says so in the history.
pub(crate) fn release_earned(
    store: &mut dyn Store,
    aliases: &mut Aliases,
    release: Release,
) -> Result<(), StoreError> {
    aliases.read(store)?;
    let said = Said::read(store, aliases)?;
    let now = dates::now();
    let mut labels = Vec::new();
    let mut numbers: Vec<(&u32, &Kept)> = said.quarantined.iter().collect();
    numbers.sort_by_key(|(number, _)| **number);
    for (number, kept) in numbers {
        let since = runs_since(store, &aliases.numbers(*number), (kept.since, i64::MAX))?;
        if !release.is_earned(since) {
            continue;
        }
        let Some(test) = aliases.name(store, *number)? else {
            continue;
        };
        let high = wilson(since, release.level).high * 100.0;
        labels.push(Label {
            time: now,
            test,
            run: None,
            kind: RESOLVED.to_owned(),
            value: format!(
                "{} of {} runs failed, so that its rate is below {high:.1} %",
                since.failures(),
                since.runs()
            ),
            author: AUTHOR.to_owned(),
        });
    }
    if labels.is_empty() {
        return Ok(());
    }
    store.append_labels(&labels)
}
