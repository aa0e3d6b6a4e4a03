//! The threshold that tells the failing runs' numbers from the passing runs' best.

/// The side of the threshold on which the failing runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    Above,
    Below,
}

/// A threshold, and how many runs are beyond it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Split {
    pub(crate) beyond: Beyond,
    /// The least extreme number beyond it.
    pub(crate) threshold: f64,
    pub(crate) passing: u32,
    pub(crate) failing: u32,
}

/// The threshold beyond which the share of failing runs is highest above that of passing runs. Shares
/// are of all runs, also of those that have no number here.
///
/// `None` if no threshold has more of the failing runs beyond it, or there are no numbers of a side.
pub(crate) fn best_split(passing: &[f64], failing: &[f64], runs: [u32; 2]) -> Option<Split> {
    if passing.is_empty() || failing.is_empty() {
        return None;
    }
    let mut all: Vec<(f64, bool)> = passing.iter().map(|number| (*number, false)).collect();
    all.extend(failing.iter().map(|number| (*number, true)));
    all.sort_by(|one, two| one.0.total_cmp(&two.0));
    let above = scan(all.iter().rev().copied(), runs, Beyond::Above);
    let below = scan(all.iter().copied(), runs, Beyond::Below);
    match (above, below) {
        (Some(above), Some(below)) if gain(&below, runs) > gain(&above, runs) => Some(below),
        (Some(above), _) => Some(above),
        (None, below) => below,
    }
}

fn gain(split: &Split, runs: [u32; 2]) -> f64 {
    f64::from(split.failing) / f64::from(runs[1]) - f64::from(split.passing) / f64::from(runs[0])
}

/// Goes from the extreme inwards; equal numbers are on one side.
fn scan(
    numbers: impl Iterator<Item = (f64, bool)>,
    runs: [u32; 2],
    beyond: Beyond,
) -> Option<Split> {
    let mut best: Option<Split> = None;
    let mut numbers = numbers.peekable();
    let (mut passing, mut failing) = (0, 0);
    while let Some((threshold, is_failing)) = numbers.next() {
        if is_failing {
            failing += 1;
        } else {
            passing += 1;
        }
        let is_tied = numbers
            .peek()
            .is_some_and(|next| next.0.total_cmp(&threshold).is_eq());
        let split = Split {
            beyond,
            threshold,
            passing,
            failing,
        };
        let least = best.as_ref().map_or(0.0, |best| gain(best, runs));
        if !is_tied && gain(&split, runs) > least {
            best = Some(split);
        }
    }
    best
}

/// The number in the middle; `None` of nothing.
pub(crate) fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_stands_where_most_failing_and_fewest_passing_runs_are_beyond_it() {
        let split = best_split(&[1.0, 2.0, 9.0], &[7.0, 8.0, 9.0], [3, 3]).unwrap();
        assert_eq!(split.beyond, Beyond::Above);
        assert!((split.threshold - 7.0).abs() < f64::EPSILON);
        assert_eq!((split.passing, split.failing), (1, 3));
        let split = best_split(&[0.5, 0.9], &[0.05], [2, 1]).unwrap();
        assert_eq!((split.beyond, split.failing), (Beyond::Below, 1));
    }

    #[test]
    fn equal_numbers_cannot_be_told_apart() {
        assert_eq!(best_split(&[1.0, 1.0], &[1.0, 1.0], [2, 2]), None);
        assert_eq!(best_split(&[], &[1.0], [2, 2]), None);
    }
}
