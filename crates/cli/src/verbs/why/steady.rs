//! What is told of a test that always ends in the same way, with tracing or alone.

use crate::verbs::why::{Answer, delays};
use crate::view::printable::printable;
use crate::view::report::plural;

/// The effect of other tests on it.
pub(super) fn after_others(answer: &Answer) -> Vec<String> {
    let Some(beside) = answer.beside else {
        return Vec::new();
    };
    let tests = plural(beside.tests, "test that stands", "tests that stand");
    let (usual, odd) = if answer.traced.hits == 0 {
        ("passes", "fails")
    } else {
        ("fails", "passes")
    };
    let test = answer.test.as_deref().unwrap_or_default();
    let what = format!(
        "Alone it always {usual}; after the {tests} before it, it {odd} in all of {} runs: it depends on \
         them. `unflake order {}` finds out on which of them.",
        beside.tally.runs(),
        printable(test)
    );
    vec![String::new(), what]
}

/// A test that always ends in the same way with tracing, and not without, depends on how fast it is.
pub(super) fn changed_by_tracing(answer: &Answer) -> String {
    let (traced, plain) = (answer.traced, answer.plain);
    let how = if traced.hits > 0 { "fails" } else { "passes" };
    let alike = if traced.hits > 0 {
        plain.hits
    } else {
        plain.misses
    };
    let mut what = format!(
        "With tracing it always {how}, without it only in {alike} of {}: tracing slows it down, so how it \
         ends depends on how long something takes.",
        plural(plain.runs() as usize, "run", "runs")
    );
    if let Some(beside) = answer.beside.filter(|beside| beside.differs(traced)) {
        let tests = plural(beside.tests, "test", "tests");
        let other = if traced.hits > 0 {
            "passing"
        } else {
            "failing"
        };
        let compared = format!(
            " The {other} runs that are compared below are those after the {tests} before it."
        );
        what.push_str(&compared);
    }
    what
}

/// The sentences about a failure that was not seen: the upper bound of its rate at 95 % confidence, and what to try.
pub(super) fn never_failed(answer: &Answer) -> Vec<String> {
    if answer.traced.runs() == 0 {
        let what = "It never ran to an end (`skip` or `xfail`, for example), so there is nothing to compare.";
        return vec![String::new(), what.to_owned()];
    }
    let bound = 100.0 * rarest(answer.traced.misses + answer.plain.misses);
    let rare = if answer.is_changed_by_tracing() {
        changed_by_tracing(answer)
    } else {
        format!("With 95 % confidence it fails alone in less than {bound:.1} % of runs.")
    };
    let mut lines = vec![String::new(), rare];
    if let Some(fuzzed) = &answer.fuzzed {
        lines.extend(delays::tell(fuzzed, answer));
        if fuzzed.culprits.is_some() {
            return lines;
        }
    }
    let next = "What to try: more runs (--runs), the tests that run before it (`unflake order TEST`), or \
                a machine as busy as the one on which it failed.";
    lines.push(next.to_owned());
    lines
}

/// The failure rate at which `runs` runs without a failure have a probability of 5 %.
pub(super) fn rarest(runs: u32) -> f64 {
    1.0 - 0.05_f64.powf(1.0 / f64::from(runs.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rarest_failure_follows_the_rule_of_three() {
        // By hand: 1 - 0.05^(1/100) = 0.02951.
        assert!((rarest(100) - 0.029_51).abs() < 1e-5);
        assert!((rarest(1) - 0.95).abs() < 1e-12);
    }
}
