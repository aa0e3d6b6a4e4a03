//! The rule that says when there are enough traces. It is asked after each run.

/// The least number of passing traces, and of failing traces.
const LEAST: u32 = 3;
/// The most predicates that may separate the runs by pure chance, on average.
const BY_CHANCE: f64 = 0.01;

/// Whether this number of passing and of failing traces can tell cause from chance among this number of epochs.
///
/// A predicate that has nothing to do with the failure, and holds in as many runs as failed, holds in exactly those
/// runs with a probability of 1 in C(runs, failing). This times the number of epochs is the number of predicates that
/// do so by chance.
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
