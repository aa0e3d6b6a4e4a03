//! How the time for the question is shared among the suspects.

use std::time::Duration;

/// The shortest share, unless less than that is left.
const LEAST: Duration = Duration::from_secs(1);

/// How long the next of so many suspects may be asked about, of the time that is left. All get as much, but none less
/// than a quarter. One that is not settled by then is asked about again after the others, which may have needed less.
pub fn share(left: Duration, suspects: usize) -> Duration {
    let suspects = u32::try_from(suspects).unwrap_or(u32::MAX).max(1);
    let fair = left / suspects;
    fair.max(left / 4).max(LEAST).min(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_last_one_has_all_that_is_left() {
        assert_eq!(share(seconds(60), 1), seconds(60));
        assert_eq!(share(seconds(60), 3), seconds(20));
        assert_eq!(share(seconds(60), 100), seconds(15));
        assert_eq!(share(seconds(2), 100), seconds(1));
        assert_eq!(share(Duration::ZERO, 2), Duration::ZERO);
    }

    #[test]
    fn what_one_does_not_need_goes_to_one_that_is_asked_about_again() {
        let budget = seconds(60);
        let first = share(budget, 2);
        let second = seconds(1);
        let left = budget.saturating_sub(first + second);
        let again = share(left, 1);
        assert_eq!(first + again, seconds(59));
    }

    #[test]
    fn the_time_has_an_end_however_many_are_never_settled() {
        let mut left = seconds(60);
        let mut asked = 0;
        while !left.is_zero() {
            left -= share(left, 50);
            asked += 1;
        }
        assert!(asked < 20, "{asked}");
    }
}
