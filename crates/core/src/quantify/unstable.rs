//! Has a test become worse than it was? Three rules, from the paper's to one that may be looked at daily.

use super::binomial::at_least;
use super::change_point::{ChangePoint, find_change};
use super::discovery::adjust;
use super::evidence::Evidence;
use super::normal::Level;
use super::prior::{Prior, at_least_after};
use super::sample::{Day, Sample};

/// The days after the alarm whose runs still count for the change-point: a fault may have been fixed.
const AFTERMATH: i32 = 14;

/// The rule by which a test is called unstable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// The binomial test against the stable rate after each day; a test is flagged for good at the first p up to the
    /// error (Rehman 2019, 4.3). Looking again and again makes many false alarms.
    Paper(Prior),
    /// One look at the end, with the false-discovery rate across tests held at the error.
    Fdr,
    /// Evidence that holds however often one looks.
    Sequential,
}

/// One test: what it was, and what it did since.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// Flaky failures among the runs of the baseline.
    pub baseline: Sample,
    /// The days since, in order. All failures count here: whose fault they are is not known yet.
    pub days: Vec<Day>,
}

impl Course {
    /// All runs since the baseline.
    pub fn current(&self) -> Sample {
        let samples = self.days.iter().map(|day| day.failed());
        samples.fold(Sample::default(), Sample::plus)
    }
}

/// The answer of a rule about one test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instability {
    /// `paper`: the least p-value; `fdr`: the adjusted p-value; `sequential`: 1 / evidence, which is a
    /// p-value at any time.
    pub p_value: f64,
    /// The day on which it was flagged.
    pub flagged: Option<i32>,
}

/// Examines all tests by one rule. The result is in the same order.
pub fn examine(courses: &[Course], mode: Mode, level: Level) -> Vec<Instability> {
    match mode {
        Mode::Paper(prior) => {
            let one = |course| by_repeated_test(course, prior, level);
            courses.iter().map(one).collect()
        }
        Mode::Fdr => by_discovery(courses, level),
        Mode::Sequential => {
            let one = |course| by_evidence(course, level);
            courses.iter().map(one).collect()
        }
    }
}

/// The time at which an unstable test's rate changed, seen from its alarm.
pub fn when(course: &Course, before: &[Day], flagged: i32, level: Level) -> Option<ChangePoint> {
    let days = before.iter().chain(&course.days).copied();
    let days: Vec<Day> = days.filter(|day| day.day <= flagged + AFTERMATH).collect();
    find_change(&days, level)
}

fn by_repeated_test(course: &Course, prior: Prior, level: Level) -> Instability {
    let mut found = Instability {
        p_value: 1.0,
        flagged: None,
    };
    // A test that is new has no stable rate to deviate from.
    let Some(rate) = prior.rate(course.baseline) else {
        return found;
    };
    let mut so_far = Sample::default();
    for day in &course.days {
        so_far = so_far.plus(day.failed());
        // After passes only, the p-value is higher than before.
        if day.failures > 0 {
            found.p_value = found.p_value.min(at_least(so_far, rate));
            if found.p_value <= level.error() {
                found.flagged = found.flagged.or(Some(day.day));
            }
        }
    }
    found
}

fn by_discovery(courses: &[Course], level: Level) -> Vec<Instability> {
    let p_values: Vec<f64> = courses
        .iter()
        .map(|course| at_least_after(course.baseline, course.current()))
        .collect();
    let adjusted = adjust(&p_values);
    let one = |(course, p_value): (&Course, f64)| {
        let last = course.days.last().map(|day| day.day);
        Instability {
            p_value,
            flagged: last.filter(|_| p_value <= level.error()),
        }
    };
    courses.iter().zip(adjusted).map(one).collect()
}

fn by_evidence(course: &Course, level: Level) -> Instability {
    let mut evidence = Evidence::after(course.baseline, level);
    let mut highest: f64 = 0.0;
    let mut flagged = None;
    for day in &course.days {
        evidence.add(day.failed());
        if day.failures > 0 {
            highest = highest.max(evidence.ln());
            if flagged.is_none() && highest >= evidence.alarm() {
                flagged = Some(day.day);
            }
        }
    }
    Instability {
        // Half of the error is for a baseline that was luckier than the test is.
        p_value: (2.0 * (-highest).exp()).min(1.0),
        flagged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(baseline: Sample, counts: &[(u32, u32)]) -> Course {
        let day = |(day, (failures, runs)): (i32, &(u32, u32))| Day {
            day,
            runs: *runs,
            failures: *failures,
            flaky: 0,
        };
        Course {
            baseline,
            days: (0..).zip(counts).map(day).collect(),
        }
    }

    const PAPER: Mode = Mode::Paper(Prior::None);

    fn flagged(course: &Course, mode: Mode) -> Option<i32> {
        examine(std::slice::from_ref(course), mode, Level::DEFAULT)[0].flagged
    }

    #[test]
    fn the_papers_rule_flags_any_failure_of_a_test_that_never_failed() {
        let once = course(Sample::new(0, 3), &[(0, 5), (1, 5), (0, 5)]);
        assert_eq!(flagged(&once, PAPER), Some(1));
        assert_eq!(flagged(&once, Mode::Paper(Prior::Jeffreys)), None);
        assert_eq!(flagged(&once, Mode::Sequential), None);
        assert_eq!(flagged(&once, Mode::Fdr), None);
    }

    #[test]
    fn the_papers_rule_keeps_a_flag_that_one_look_at_the_end_would_not_raise() {
        // 1 failure in the first 2 runs: p = 0.0396 at 2 %; over all 302 runs 0.997.
        let mut counts = vec![(1, 2)];
        counts.extend([(0, 3); 100]);
        let lucky = course(Sample::new(20, 1000), &counts);
        assert_eq!(flagged(&lucky, PAPER), Some(0));
        assert_eq!(flagged(&lucky, Mode::Fdr), None);
        assert_eq!(flagged(&lucky, Mode::Sequential), None);
    }

    #[test]
    fn all_rules_see_a_break_and_when_it_was() {
        let mut counts = vec![(0, 4); 40];
        counts.extend([(4, 4); 6]);
        let broken = course(Sample::new(4, 400), &counts);
        // The quiet days before it still count: 4 of 164 have p = 0.08.
        assert_eq!(flagged(&broken, PAPER), Some(41));
        assert_eq!(flagged(&broken, Mode::Fdr), Some(45));
        assert_eq!(flagged(&broken, Mode::Sequential), Some(41));
        let change = when(&broken, &[], 40, Level::DEFAULT).unwrap();
        assert_eq!((change.day, change.earliest, change.latest), (40, 40, 40));
    }

    #[test]
    fn a_new_test_has_nothing_to_deviate_from() {
        let new = course(Sample::default(), &[(5, 5)]);
        assert_eq!(flagged(&new, PAPER), None);
        assert_eq!(flagged(&new, Mode::Sequential), None);
    }
}
