//! When there are enough traces: a rule that is asked after each run.

/// So many traces of each kind are wanted in any case.
const LEAST: u32 = 3;
/// So many predicates may separate the runs by pure chance, on average.
const BY_CHANCE: f64 = 0.01;

/// Whether so many passing and failing traces tell chance from cause among so many epochs.
///
/// Something that has nothing to do with the failure, and holds in as many runs as failed, holds in just
/// those runs with a probability of one in "runs over failing". Times the number of epochs that is how
/// many would do so by chance.
pub fn is_enough(passing: u32, failing: u32, epochs: usize) -> bool {
    if passing < LEAST || failing < LEAST {
        return false;
    }
    let (few, runs) = (passing.min(failing), passing + failing);
    let ways: f64 = (0..few)
        .map(|at| (f64::from(runs - at) / f64::from(few - at)).ln())
        .sum();
    #[expect(
        clippy::cast_precision_loss,
        reason = "a trace has far fewer calls than 2 to the 52nd"
    )]
    let epochs = (epochs.max(1) as f64).ln();
    epochs - ways <= BY_CHANCE.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_of_each_are_enough_for_a_thousand_epochs() {
        // By hand: 20 over 10 is 184,756, and 1,000 / 184,756 = 0.0054; 18 over 9 is 48,620: 0.0206.
        assert!(is_enough(10, 10, 1000));
        assert!(!is_enough(9, 9, 1000));
    }

    #[test]
    fn one_failure_among_many_runs_is_never_enough() {
        assert!(!is_enough(1000, 1, 10) && !is_enough(1, 1000, 10));
    }
}
