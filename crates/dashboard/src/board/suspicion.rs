//! Whether a test's failures of a day stand out: against the days before, or because it has become unstable.

use std::collections::BTreeMap;

use unflake_core::quantify::anomaly::{Anomaly, BASELINE_DAYS, examine};
use unflake_core::quantify::sample::Day;
use unflake_history::book::Entry;
use unflake_history::dates;
use unflake_history::store::{Store, StoreError};

use crate::board::snapshot::Known;

/// A day in milliseconds.
pub(crate) const DAY: i64 = 86_400_000;

/// The first and the last moment of a day.
pub(crate) fn span_of(day: i32) -> (i64, i64) {
    (i64::from(day) * DAY, i64::from(day + 1) * DAY - 1)
}

/// What a test's failures of one day look like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspicion {
    pub(crate) day: i32,
    pub(crate) anomaly: Anomaly,
    /// Whether the evidence said on that day that it fails more often than in its baseline.
    pub(crate) is_unstable: bool,
    /// Runs of the day, and the failures among them.
    pub(crate) runs: u32,
    pub(crate) failures: u32,
}

impl Suspicion {
    /// Looks at the day of the test in this place; nothing if it did not fail on it.
    pub(crate) fn of(
        store: &dyn Store,
        known: &Known,
        place: usize,
        day: i32,
    ) -> Result<Option<Self>, StoreError> {
        let days = days_of(store, known, &known.entries[place], day)?;
        let today = days.iter().find(|one| one.day == day).copied();
        let (Some(anomaly), Some(today)) = (examine(&days, day), today) else {
            return Ok(None);
        };
        let flagged = known.instabilities[place].flagged;
        Ok(Some(Self {
            day,
            anomaly,
            is_unstable: flagged.is_some_and(|flagged| flagged <= day),
            runs: today.runs,
            failures: today.failures,
        }))
    }

    /// Whether it belongs in the first list: a potential product fault.
    pub(crate) fn stands_out(self) -> bool {
        self.anomaly.is_anomaly() || self.is_unstable
    }

    /// How far the day's share of failures is above the limit: the paper's magnitude.
    pub(crate) fn priority(self) -> f64 {
        self.anomaly.magnitude().max(0.0)
    }
}

/// The test's days up to `day`: as they are known, or counted anew for a day long past.
fn days_of(
    store: &dyn Store,
    known: &Known,
    entry: &Entry,
    day: i32,
) -> Result<Vec<Day>, StoreError> {
    let periods = &known.periods;
    let is_rolling = periods.baseline.period.last + 1 == periods.current.period.first;
    let first = day - BASELINE_DAYS;
    if is_rolling && first >= periods.baseline.period.first {
        let mut days = entry.before.clone();
        days.extend(&entry.course.days);
        return Ok(days);
    }
    let span = (span_of(first).0, span_of(day).1);
    let mut days: BTreeMap<i32, Day> = BTreeMap::new();
    store.visit_days_of(
        &entry.numbers,
        span.0,
        span.1,
        &mut |time, stream, failed| {
            if known.has_stream(stream) {
                let number = dates::day_of(time);
                let day = days.entry(number).or_default();
                day.day = number;
                day.runs += 1;
                day.failures += u32::from(failed);
            }
        },
    )?;
    Ok(days.into_values().collect())
}
