//! `FlakeFinder`'s rule (Rehman 2019, 5.1): is today's share of failures above nearly all of the last days'?

use super::quantile::quantile;
use super::sample::Day;

/// The number of days in the baseline vector.
pub const BASELINE_DAYS: i32 = 30;

/// The share of these days whose number of failures must be lower.
pub const SHARE: f64 = 0.95;

/// Failures of one day against those of the days before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anomaly {
    /// The share of the day's runs that failed.
    pub current: f64,
    /// The 95th percentile of the shares of the days before; 0 if there were no runs.
    pub limit: f64,
    /// The number of those days on which it ran.
    pub days: usize,
}

impl Anomaly {
    /// The distance above the limit; below 0 if the limit is not reached. As a percentage this is the investigation
    /// priority.
    pub fn magnitude(self) -> f64 {
        self.current - self.limit
    }

    /// Whether it should be looked into first: a potential product fault, not a potential flaky failure.
    pub fn is_anomaly(self) -> bool {
        self.magnitude() > 0.0
    }
}

/// Compares a day with the 30 before it; `None` if nothing failed on it. Days must be in order.
///
/// A day without runs has no share of failures, so it is not in the vector.
pub fn examine(days: &[Day], today: i32) -> Option<Anomaly> {
    let now = days.iter().find(|day| day.day == today)?;
    if now.failures == 0 {
        return None;
    }
    let is_before = |day: &&Day| (today - BASELINE_DAYS..today).contains(&day.day);
    let rates = days.iter().filter(is_before);
    let mut rates: Vec<f64> = rates.filter_map(|day| day.failed().rate()).collect();
    rates.sort_by(f64::total_cmp);
    Some(Anomaly {
        current: now.failed().rate()?,
        limit: quantile(&rates, SHARE).unwrap_or(0.0),
        days: rates.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: i32, failures: u32, runs: u32) -> Day {
        Day {
            day,
            runs,
            failures,
            flaky: 0,
        }
    }

    #[test]
    fn the_papers_examples() {
        // 5.1.1: 7 of 10 against 0.67; 5.1.2: 0.47 against 0.25.
        let steady = |failures: u32| (0..30).map(move |at| day(at, failures, 100));
        let mut days: Vec<Day> = steady(67).collect();
        days.push(day(30, 7, 10));
        let found = examine(&days, 30).unwrap();
        assert!(found.is_anomaly() && (found.limit - 0.67).abs() < 1e-12);
        let mut days: Vec<Day> = steady(25).collect();
        days.push(day(30, 47, 100));
        assert!((examine(&days, 30).unwrap().magnitude() - 0.22).abs() < 1e-12);
    }

    #[test]
    fn a_first_failure_is_as_suspicious_as_can_be() {
        let mut days: Vec<Day> = (0..30).map(|at| day(at, 0, 2)).collect();
        days.push(day(30, 2, 2));
        assert!((examine(&days, 30).unwrap().magnitude() - 1.0).abs() < 1e-12);
        assert_eq!(examine(&days, 29), None, "nothing failed");
        let alone = examine(&[day(30, 1, 4)], 30).unwrap();
        assert_eq!((alone.days, alone.is_anomaly()), (0, true));
    }

    #[test]
    fn older_days_do_not_count() {
        let days = [day(0, 9, 9), day(1, 0, 9), day(31, 1, 9)];
        assert_eq!(examine(&days, 31).unwrap().days, 1);
    }
}
