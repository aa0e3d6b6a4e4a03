//! The tests of a history with their counts, each once under its best name.

use std::collections::HashMap;

use crate::daily::FlakyRule;
use crate::periods::Part;
use crate::run::TestName;
use crate::store::{Store, StoreError};
use unflake_core::pattern::Pattern;
use unflake_core::quantify::sample::{Day, Sample};
use unflake_core::quantify::unstable::Course;
use unflake_core::reported::junit_name;
use unflake_core::test::TestId;

/// One test.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its best name.
    pub name: TestName,
    /// Its numbers in the store: under its own name, and under those of reports.
    pub numbers: Vec<u32>,
    /// The baseline, and the days of the current period.
    pub course: Course,
    /// The days of the baseline, if they were asked for.
    pub before: Vec<Day>,
    /// What a run takes, if that is known.
    pub seconds: Option<f64>,
}

impl Entry {
    /// Flaky failures of the current period.
    pub fn flaked(&self) -> Sample {
        let samples = self.course.days.iter().map(|day| day.flaked());
        samples.fold(Sample::default(), Sample::plus)
    }

    /// Whether it ran in the current period.
    pub fn is_current(&self) -> bool {
        !self.course.days.is_empty()
    }

    /// Whether it ran in either period.
    pub fn has_runs(&self) -> bool {
        !self.course.days.is_empty() || self.course.baseline.runs() > 0
    }
}

/// Whether the days of the baseline are wanted, or only its sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Each day.
    Days,
    /// The sum.
    Sum,
}

/// Which tests and runs are read.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// Which failures are flaky.
    pub rule: FlakyRule,
    /// What tests are compared with.
    pub baseline: &'a Part,
    /// What is compared.
    pub current: &'a Part,
    /// Which tests, if not all.
    pub pattern: Option<&'a Pattern>,
    /// Whether the days of the baseline are wanted too.
    pub before: Before,
}

/// Reads the tests that match and have runs, in the order of their names.
pub fn read(store: &dyn Store, reading: &Reading<'_>) -> Result<Vec<Entry>, StoreError> {
    let (mut entries, places) = gather(store.tests()?, reading.pattern);
    store.visit_daily(reading.rule, &mut |count| {
        let Some(Some(place)) = places.get(count.test as usize) else {
            return;
        };
        let entry = &mut entries[*place as usize];
        let day = Day {
            day: count.day,
            runs: count.runs,
            failures: count.failures,
            flaky: count.flaky,
        };
        if reading.baseline.has(count.stream, count.day) {
            entry.course.baseline = entry.course.baseline.plus(day.flaked());
            if reading.before == Before::Days {
                entry.before.push(day);
            }
        }
        if reading.current.has(count.stream, count.day) {
            entry.course.days.push(day);
        }
    })?;
    entries.retain(Entry::has_runs);
    for entry in &mut entries {
        settle(&mut entry.course.days);
        settle(&mut entry.before);
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

/// A test that the store knows by several numbers: by its own name, and by those of reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// Its best name.
    pub name: TestName,
    /// Its numbers in the store, the first that was given first.
    pub numbers: Vec<u32>,
}

/// The tests that have several numbers.
pub fn aliases(store: &dyn Store) -> Result<Vec<Alias>, StoreError> {
    let (entries, _) = gather(store.tests()?, None);
    let several = entries.into_iter().filter(|entry| entry.numbers.len() > 1);
    let to_alias = |entry: Entry| Alias {
        name: entry.name,
        numbers: entry.numbers,
    };
    Ok(several.map(to_alias).collect())
}

/// Puts days in order, and makes one of those that came in parts.
fn settle(days: &mut Vec<Day>) {
    days.sort_by_key(|day| day.day);
    days.dedup_by(|day, kept| {
        let is_same = day.day == kept.day;
        if is_same {
            kept.runs += day.runs;
            kept.failures += day.failures;
            kept.flaky += day.flaky;
        }
        is_same
    });
    days.shrink_to_fit();
}

/// Makes one entry per test, and says where each number of the store belongs.
///
/// A report names a test by its class and its name. Where exactly one test of the framework is written so
/// in reports, it is meant; whichever of the two was recorded first.
fn gather(
    tests: Vec<(u32, TestName)>,
    pattern: Option<&Pattern>,
) -> (Vec<Entry>, Vec<Option<u32>>) {
    let mut own: HashMap<String, Option<TestName>> = HashMap::new();
    for (_, test) in tests.iter().filter(|(_, test)| test.is_own) {
        let (class, name) = junit_name(&TestId::copy_of(&test.name, test.copy));
        let dot = if class.is_empty() { "" } else { "." };
        own.entry(format!("{class}{dot}{name}"))
            .and_modify(|known| *known = None)
            .or_insert_with(|| Some(test.clone()));
    }
    let mut entries: Vec<Entry> = Vec::new();
    let mut known: HashMap<TestName, u32> = HashMap::new();
    let most = tests.iter().map(|(number, _)| *number as usize + 1).max();
    let mut places = vec![None; most.unwrap_or(0)];
    for (number, test) in tests {
        let meant = match own.get(&test.name) {
            Some(Some(meant)) if !test.is_own => meant.clone(),
            Some(_) | None => test,
        };
        if pattern.is_some_and(|pattern| !pattern.matches(&meant.name)) {
            continue;
        }
        let place = *known.entry(meant.clone()).or_insert_with(|| {
            entries.push(Entry {
                name: meant,
                numbers: Vec::new(),
                course: Course {
                    baseline: Sample::default(),
                    days: Vec::new(),
                },
                before: Vec::new(),
                seconds: None,
            });
            u32::try_from(entries.len() - 1).expect("fewer than 2^32 tests")
        });
        entries[place as usize].numbers.push(number);
        places[number as usize] = Some(place);
    }
    (entries, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(name: &str, is_own: bool) -> TestName {
        TestName {
            name: name.to_owned(),
            copy: 0,
            is_own,
        }
    }

    #[test]
    fn a_report_and_the_framework_mean_the_same_test_whoever_came_first() {
        let report = test("tests.test_cart.test_total", false);
        let own = test("tests/test_cart.py::test_total", true);
        for tests in [[report.clone(), own.clone()], [own.clone(), report.clone()]] {
            let numbered = (1..).zip(tests).collect();
            let (entries, places) = gather(numbered, None);
            assert_eq!(entries.len(), 1);
            assert_eq!((&entries[0].name, &entries[0].numbers), (&own, &vec![1, 2]));
            assert_eq!(places, [None, Some(0), Some(0)]);
        }
    }

    #[test]
    fn what_could_be_two_tests_is_neither() {
        let tests = vec![
            (1, test("a/b.py::C::test", true)),
            (2, test("a/b/C.py::test", true)),
            (3, test("a.b.C.test", false)),
        ];
        let (entries, _) = gather(tests, None);
        assert_eq!(entries.len(), 3);
    }
}
