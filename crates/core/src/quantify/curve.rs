//! Shares of tests over the days of a period: the paper's figures.

use super::period::Period;
use crate::chart::Line;

/// The share of `total` tests that something has happened to by each day, from the day it happened on.
pub fn cumulative(name: &str, period: Period, happened: &[i32], total: usize) -> Line {
    let mut days: Vec<i32> = happened.to_vec();
    days.sort_unstable();
    let mut points = Vec::new();
    let mut count = 0;
    for day in period.first..=period.last {
        while days.get(count).is_some_and(|happened| *happened <= day) {
            count += 1;
        }
        points.push((f64::from(day - period.first), share(count, total)));
    }
    Line {
        name: name.to_owned(),
        points,
    }
}

/// The difference of two lines: one minus the other.
pub fn difference(name: &str, one: &Line, other: &Line) -> Line {
    let points = one.points.iter().zip(&other.points);
    Line {
        name: name.to_owned(),
        points: points
            .map(|((x, high), (_, low))| (*x, high - low))
            .collect(),
    }
}

/// A part of a whole; 0 of nothing.
#[expect(clippy::cast_precision_loss, reason = "numbers of tests are small")]
pub fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_grows_on_the_days_on_which_things_happen() {
        let period = Period {
            first: 10,
            last: 13,
        };
        let line = cumulative("all", period, &[12, 11, 40], 4);
        assert_eq!(
            line.points,
            [(0.0, 0.0), (1.0, 0.25), (2.0, 0.5), (3.0, 0.5)]
        );
    }
}
