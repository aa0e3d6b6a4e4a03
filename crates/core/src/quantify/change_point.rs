//! When a test's rate changed: the most likely day, and days between which it happened.
//!
//! One change is assumed, on any day with the same probability. Before and after it the rate has Jeffreys'
//! prior, so the probability of each day is a product of two beta functions.

use super::normal::Level;
use super::prior::ln_marginal;
use super::sample::{Day, Sample};

/// When the rate changed. The first day on which it was new is between `earliest` and `latest`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The most likely first day of the new rate.
    pub day: i32,
    /// The first day that it can have been, at the level asked for.
    pub earliest: i32,
    /// The last.
    pub latest: i32,
    /// All runs before `day`.
    pub before: Sample,
    /// All runs from `day` on.
    pub after: Sample,
}

/// Finds the day after which failures are distributed otherwise; `None` with fewer than two days of runs.
///
/// Days must be in order. The interval is the shortest run of days around the most likely one that holds
/// the level's probability, grown to the likelier side.
pub fn find_change(days: &[Day], level: Level) -> Option<ChangePoint> {
    let all = total(days);
    let mut before = Sample::default();
    let mut weights = Vec::with_capacity(days.len());
    for day in days.iter().take(days.len().saturating_sub(1)) {
        before = before.plus(day.failed());
        let after = Sample::new(
            all.failures() - before.failures(),
            all.runs() - before.runs(),
        );
        weights.push(ln_marginal(before, 0.5, 0.5) + ln_marginal(after, 0.5, 0.5));
    }
    let best = (0..weights.len()).max_by(|one, other| weights[*one].total_cmp(&weights[*other]))?;
    let highest = weights[best];
    for weight in &mut weights {
        *weight = (*weight - highest).exp();
    }
    let wanted = level.share() * weights.iter().sum::<f64>();
    let (mut low, mut high, mut held) = (best, best, weights[best]);
    while held < wanted {
        let down = low.checked_sub(1).map_or(0.0, |at| weights[at]);
        let up = weights.get(high + 1).copied().unwrap_or(0.0);
        if low > 0 && (down >= up || high + 1 == weights.len()) {
            low -= 1;
            held += down;
        } else if high + 1 < weights.len() {
            high += 1;
            held += up;
        } else {
            break;
        }
    }
    // The change after day `at` first shows on the next day with runs.
    Some(ChangePoint {
        day: days[best + 1].day,
        earliest: days[low].day + 1,
        latest: days[high + 1].day,
        before: total(&days[..=best]),
        after: total(&days[best + 1..]),
    })
}

fn total(days: &[Day]) -> Sample {
    let samples = days.iter().map(|day| day.failed());
    samples.fold(Sample::default(), Sample::plus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(counts: &[(u32, u32)]) -> Vec<Day> {
        let day = |(day, (failures, runs)): (i32, &(u32, u32))| Day {
            day,
            runs: *runs,
            failures: *failures,
            flaky: 0,
        };
        (100..).zip(counts).map(day).collect()
    }

    #[test]
    fn a_clear_break_is_found_on_its_day() {
        let mut counts = vec![(0, 5); 30];
        counts.extend([(5, 5); 5]);
        let found = find_change(&days(&counts), Level::DEFAULT).unwrap();
        assert_eq!((found.day, found.earliest, found.latest), (130, 130, 130));
        assert_eq!(found.before, Sample::new(0, 150));
        assert_eq!(found.after, Sample::new(25, 25));
    }

    #[test]
    fn a_vague_change_has_a_wide_interval_around_it() {
        let mut counts = vec![(0, 1); 40];
        for day in 0..20 {
            counts.push((u32::from(day % 3 == 1), 1));
        }
        let found = find_change(&days(&counts), Level::DEFAULT).unwrap();
        assert!(
            found.earliest < found.latest && (135..=145).contains(&found.day),
            "{found:?}"
        );
        assert!((found.earliest..=found.latest).contains(&140), "{found:?}");
    }

    #[test]
    fn a_gap_without_runs_is_part_of_the_interval() {
        let mut all = days(&[(0, 9), (0, 9), (9, 9), (9, 9)]);
        all[2].day = 150;
        all[3].day = 151;
        let found = find_change(&all, Level::DEFAULT).unwrap();
        assert_eq!((found.day, found.earliest, found.latest), (150, 102, 150));
    }

    #[test]
    fn nothing_can_change_within_one_day() {
        assert_eq!(find_change(&days(&[(3, 9)]), Level::DEFAULT), None);
        assert_eq!(find_change(&[], Level::DEFAULT), None);
    }
}
