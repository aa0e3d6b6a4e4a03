//! Evidence that a test fails more often than it used to, which may be looked at after every run.
//!
//! A mixture e-process; `docs/statistics.md` derives it. In short: the baseline gives an upper limit of the
//! old rate, which is too low with probability α/2 at most. Against that limit we bet on failures: at each
//! day a small stake starts on each of a few higher rates, and is multiplied by the likelihood ratio of all
//! runs since. While the rate is not above the limit, the total is not expected to grow, so it ever reaches
//! 2/α with probability α/2 at most (Ville's inequality), however often one looks. Starting stakes each day
//! keeps it quick for changes that come late.

use super::binomial::highest_rate;
use super::normal::Level;
use super::sample::{Sample, to_float};

/// The number of days with runs over which stakes are spread. After as many days again the guarantee has been used
/// twice: false alarms have at most the probability α per test and year of days.
pub const YEAR: f64 = 365.0;

/// The rates that are bet on, as shares of the way from the limit to 1.
const ALTERNATIVES: [f64; 6] = [0.03, 0.1, 0.25, 0.5, 0.8, 0.99];

/// No day multiplies a stake by more than this. Runs of one day often fail together, for one reason: so
/// counted, one bad day is never an alarm by itself at the usual level, and two can be one. With a limit on
/// what can be won, the total is expected to grow even less.
const MOST_PER_DAY: f64 = 300.0;

/// The evidence against one test, run by run.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    limit: f64,
    alarm: f64,
    /// The bets, one for each alternative: the logarithm of its stake, and of the factors of a failure and a pass.
    bets: [Bet; ALTERNATIVES.len()],
    days: u32,
}

/// All of it as logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bet {
    stake: f64,
    failure: f64,
    pass: f64,
}

impl Evidence {
    /// No evidence yet against a test with this baseline. Without a baseline there never will be any.
    pub fn after(baseline: Sample, level: Level) -> Self {
        let limit = highest_rate(baseline, level.error() / 2.0);
        let bets = ALTERNATIVES.map(|way| {
            let rate = limit + (1.0 - limit) * way;
            Bet {
                stake: f64::NEG_INFINITY,
                failure: (rate / limit).ln(),
                pass: ((1.0 - rate) / (1.0 - limit)).ln(),
            }
        });
        Self {
            limit,
            alarm: (2.0 / level.error()).ln(),
            bets,
            days: 0,
        }
    }

    /// Adds the runs of one day.
    pub fn add(&mut self, day: Sample) {
        if self.limit >= 1.0 || day.runs() == 0 {
            return;
        }
        self.days += 1;
        let start = (1.0 / (YEAR * to_float(ALTERNATIVES.len() as u64))).ln();
        let most = MOST_PER_DAY.ln();
        for bet in &mut self.bets {
            let ratio = to_float(day.failures()) * bet.failure + to_float(day.passes()) * bet.pass;
            bet.stake = ln_sum(bet.stake, start) + ratio.min(most);
        }
    }

    /// The logarithm of the evidence: 0 is none, and an alarm is at [`Self::alarm`].
    pub fn ln(&self) -> f64 {
        let started = self.bets.iter().map(|bet| bet.stake);
        let kept = (1.0 - f64::from(self.days) / YEAR).max(0.0).ln();
        started.fold(kept, ln_sum)
    }

    /// The logarithm of the evidence from which on a test counts as unstable.
    pub fn alarm(&self) -> f64 {
        self.alarm
    }

    /// Whether the test is to be called unstable.
    pub fn is_alarm(&self) -> bool {
        self.ln() >= self.alarm
    }

    /// The highest rate that the baseline allows.
    pub fn limit(&self) -> f64 {
        self.limit
    }
}

/// ln(e^one + e^other).
fn ln_sum(one: f64, other: f64) -> f64 {
    let (low, high) = if one < other {
        (one, other)
    } else {
        (other, one)
    };
    if high == f64::NEG_INFINITY {
        return high;
    }
    high + (low - high).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn watch(baseline: Sample, days: &[(u64, u64)]) -> Evidence {
        let mut evidence = Evidence::after(baseline, Level::DEFAULT);
        for (failures, runs) in days {
            evidence.add(Sample::new(*failures, *runs));
        }
        evidence
    }

    #[test]
    fn a_break_is_seen_within_days_also_after_a_long_quiet_time() {
        let baseline = Sample::new(2, 400);
        let mut days = vec![(0, 3); 150];
        assert!(!watch(baseline, &days).is_alarm());
        days.extend([(3, 3); 2]);
        assert!(watch(baseline, &days).is_alarm());
    }

    #[test]
    fn one_bad_day_is_not_enough_however_many_of_its_runs_failed() {
        let baseline = Sample::new(2, 400);
        let mut days = vec![(0, 3); 50];
        days.push((500, 500));
        assert!(!watch(baseline, &days).is_alarm());
        days.push((500, 500));
        assert!(watch(baseline, &days).is_alarm());
    }

    #[test]
    fn one_failure_after_a_clean_record_is_not_enough() {
        assert!(!watch(Sample::new(0, 10_000), &[(1, 1)]).is_alarm());
        assert!(!watch(Sample::new(0, 3), &[(1, 1), (1, 1), (1, 1)]).is_alarm());
    }

    #[test]
    fn without_a_baseline_or_without_runs_there_is_no_evidence() {
        assert!(watch(Sample::new(0, 0), &[(9, 9)]).ln().abs() < 1e-12);
        assert!(watch(Sample::new(1, 90), &[(0, 0)]).ln().abs() < 1e-12);
    }

    #[test]
    fn a_year_of_daily_looks_alarms_seldom() {
        // 2,000 tests that do not change, looked at on each of 365 days.
        let mut chance = ChaCha8Rng::seed_from_u64(7);
        let mut alarms = 0;
        for test in 0..2000_u32 {
            let rate = [0.0, 0.005, 0.03, 0.1, 0.3][(test % 5) as usize];
            let mut draw = |runs: u64| {
                let failures = (0..runs).filter(|_| chance.random::<f64>() < rate).count();
                Sample::new(failures as u64, runs)
            };
            let mut evidence = Evidence::after(draw(90), Level::DEFAULT);
            let is_alarm = (0..365).any(|_| {
                evidence.add(draw(2));
                evidence.is_alarm()
            });
            alarms += u32::from(is_alarm);
        }
        assert!(alarms <= 100, "{alarms} of 2000 are more than 5 %");
    }
}
