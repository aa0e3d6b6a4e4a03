//! The runs of the baseline, and the runs that are compared with it.

/// A range of days, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// The first day, in days since 1970.
    pub first: i32,
    /// The last.
    pub last: i32,
}

impl Period {
    /// Whether a day is in it.
    pub fn contains(self, day: i32) -> bool {
        (self.first..=self.last).contains(&day)
    }

    /// The number of its days.
    pub fn days(self) -> i32 {
        self.last - self.first + 1
    }
}

/// For teams without releases: the days up to today that count as current, and those before them.
pub fn rolling(today: i32, baseline_days: i32, current_days: i32) -> (Period, Period) {
    let current = Period {
        first: today - current_days + 1,
        last: today,
    };
    let baseline = Period {
        first: current.first - baseline_days,
        last: current.first - 1,
    };
    (baseline, current)
}

/// The stable period of a release: the second half of its test cycle (Rehman 2019, 3.1.2).
///
/// `cycle` is the length of the test cycle in days; runs of maintenance after it do not count. Without it
/// the cycle is all of the release.
pub fn stable_half(release: Period, cycle: Option<i32>) -> Period {
    let days = cycle.map_or(release.days(), |cycle| cycle.min(release.days()));
    Period {
        first: release.first + days / 2,
        last: release.first + days - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_90_days_before_the_last_14() {
        let (baseline, current) = rolling(1000, 90, 14);
        assert_eq!((current.first, current.last), (987, 1000));
        assert_eq!((baseline.first, baseline.last), (897, 986));
        assert_eq!((baseline.days(), current.days()), (90, 14));
    }

    #[test]
    fn of_180_days_the_stable_ones_are_90_to_179() {
        let release = Period {
            first: 0,
            last: 424,
        };
        let stable = stable_half(release, Some(180));
        assert_eq!((stable.first, stable.last), (90, 179));
        let short = Period { first: 0, last: 99 };
        assert_eq!(stable_half(short, Some(180)).first, 50);
    }
}
