//! What is known of all tests at one moment: counts, judgements and labels, computed once for many pages.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use unflake_core::quantify::normal::Level;
use unflake_core::quantify::unstable::{Course, Instability, Mode, examine};
use unflake_history::book::{self, Before, Entry, Reading};
use unflake_history::daily::FlakyRule;
use unflake_history::periods::{PeriodError, PeriodWish, Periods, resolve};
use unflake_history::store::kept::Extent;
use unflake_history::store::{Store, StoreError};

use crate::board::aliases::Aliases;
use crate::board::builds::Builds;
use crate::board::labels::Said;
use crate::board::next::Next;

/// A page that would have to wait longer than this for the newest runs shows those before them, and the
/// newest come a moment later.
pub(crate) const QUICK: Duration = Duration::from_millis(120);

/// What is known at one moment.
pub(crate) struct Snapshot {
    /// How far the store had grown when the runs were counted.
    pub(crate) extent: Extent,
    /// What there is to know of runs; nothing if there are none.
    pub(crate) known: Arc<Option<Known>>,
    /// What people have said, which is read more often than runs are counted.
    pub(crate) said: Said,
    /// The last label that was heard.
    pub(crate) heard: i64,
    pub(crate) builds: Arc<Builds>,
    pub(crate) aliases: Arc<Aliases>,
    /// How long it took to compute.
    pub(crate) took: Duration,
}

/// What runs say.
pub(crate) struct Known {
    pub(crate) periods: Periods,
    /// In the order of their names.
    pub(crate) entries: Vec<Entry>,
    /// In the same order.
    pub(crate) instabilities: Vec<Instability>,
    /// What to run next, which is computed when it is first asked for.
    pub(crate) next: OnceLock<Next>,
    /// Where the entry of each number of the store is.
    places: HashMap<u32, u32>,
}

impl Snapshot {
    /// Reads all that is known. What was known before saves some of the work.
    pub(crate) fn read(
        store: &dyn Store,
        wish: &PeriodWish,
        before: Option<&Self>,
    ) -> Result<Self, StoreError> {
        let begun = Instant::now();
        let extent = store.extent()?;
        let mut builds = before
            .map(|known| Builds::clone(&known.builds))
            .unwrap_or_default();
        builds.read(store)?;
        let mut aliases = before
            .map(|known| Aliases::clone(&known.aliases))
            .unwrap_or_default();
        aliases.read(store)?;
        let said = Said::read(store, &aliases)?;
        let known = Known::read(store, wish)?;
        Ok(Self {
            extent,
            known: Arc::new(known),
            said,
            heard: extent.label,
            builds: Arc::new(builds),
            aliases: Arc::new(aliases),
            took: begun.elapsed(),
        })
    }

    /// The same counts, with what people have said since.
    pub(crate) fn hear(&self, store: &dyn Store) -> Result<Self, StoreError> {
        let heard = store.extent()?.label;
        Ok(Self {
            extent: self.extent,
            known: Arc::clone(&self.known),
            said: Said::read(store, &self.aliases)?,
            heard,
            builds: Arc::clone(&self.builds),
            aliases: Arc::clone(&self.aliases),
            took: self.took,
        })
    }
}

impl Known {
    /// Reads what runs say; nothing if there are none.
    pub(crate) fn read(store: &dyn Store, wish: &PeriodWish) -> Result<Option<Self>, StoreError> {
        let periods = match resolve(store, wish) {
            Ok(periods) => periods,
            Err(PeriodError::NoRuns | PeriodError::NoRelease { .. }) => return Ok(None),
            Err(PeriodError::Store(error)) => return Err(error),
        };
        let reading = Reading {
            rule: FlakyRule::Evidence,
            baseline: &periods.baseline,
            current: &periods.current,
            pattern: None,
            before: Before::Days,
        };
        let mut entries = book::read(store, &reading)?;
        add_durations(store, &mut entries)?;
        let instabilities = judge(&mut entries);
        let mut places = HashMap::new();
        for (place, entry) in (0..).zip(&entries) {
            places.extend(entry.numbers.iter().map(|number| (*number, place)));
        }
        Ok(Some(Self {
            periods,
            entries,
            instabilities,
            next: OnceLock::new(),
            places,
        }))
    }

    /// Where the test with a number of the store is.
    pub(crate) fn place(&self, number: u32) -> Option<usize> {
        self.places.get(&number).map(|place| *place as usize)
    }

    /// The test with a number of the store.
    pub(crate) fn entry(&self, number: u32) -> Option<&Entry> {
        self.place(number).map(|place| &self.entries[place])
    }

    /// Whether a stream is among those that count.
    pub(crate) fn has_stream(&self, stream: u32) -> bool {
        self.periods.current.streams.binary_search(&stream).is_ok()
    }
}

/// Says of each test whether it is unstable. Courses are borrowed from the entries, and given back.
fn judge(entries: &mut [Entry]) -> Vec<Instability> {
    let empty = || Course {
        baseline: unflake_core::quantify::sample::Sample::default(),
        days: Vec::new(),
    };
    let courses: Vec<Course> = entries
        .iter_mut()
        .map(|entry| std::mem::replace(&mut entry.course, empty()))
        .collect();
    let found = examine(&courses, Mode::Sequential, Level::DEFAULT);
    for (entry, course) in entries.iter_mut().zip(courses) {
        entry.course = course;
    }
    found
}

fn add_durations(store: &dyn Store, entries: &mut [Entry]) -> Result<(), StoreError> {
    let durations: HashMap<u32, f64> = store.durations()?.into_iter().collect();
    for entry in entries {
        let of_entry = entry
            .numbers
            .iter()
            .filter_map(|number| durations.get(number));
        entry.seconds = of_entry.copied().reduce(f64::max);
    }
    Ok(())
}
