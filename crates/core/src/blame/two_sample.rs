//! Whether a test fails more often here than at the base, or not much more often: exact, and valid at any moment.
//!
//! Runs come in pairs, one here and one at the base. For a pair of rates that the answer *yes* would mean, each pair of runs
//! multiplies a stake by how much better that pair of rates explains it than the nearest pair of rates that *no*
//! would mean. Whatever the true rates are, if the answer is no, the stake exceeds 1/α with a probability of at
//! most α, however often somebody looks (R. Turner, A. Ly, P. Grünwald, *Generic E-variables for exact sequential
//! k-sample tests that allow for optional stopping*, 2024: Theorem 1 for convex null hypotheses). The stake is
//! spread over several pairs of rates, because nobody knows beforehand which is the true one.

use std::sync::LazyLock;

/// How often pairs of runs ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    /// Failed on both sides.
    pub both: u32,
    /// Failed here only.
    pub here: u32,
    /// Failed at the base only.
    pub base: u32,
    /// Failed on neither side.
    pub neither: u32,
}

impl Pairs {
    /// Counts one more pair.
    pub fn add(&mut self, fails_here: bool, fails_at_base: bool) {
        let count = match (fails_here, fails_at_base) {
            (true, true) => &mut self.both,
            (true, false) => &mut self.here,
            (false, true) => &mut self.base,
            (false, false) => &mut self.neither,
        };
        *count += 1;
    }

    /// All pairs.
    pub fn runs(self) -> u32 {
        self.both + self.here + self.base + self.neither
    }
}

/// The stake at which "it fails more often here" is believed: wrong in at most 1 % of tests of which it is not true.
const GUILT: f64 = 100.0;
/// The stake at which "it does not fail more than three times as often here" is believed: wrong in at most 5 %.
const INNOCENCE: f64 = 20.0;
/// How many times as often a test may fail here before its failures at the base excuse nothing.
const TIMES: f64 = 3.0;

/// Whether the pairs show, at 1 %, that it fails more often here than at the base.
pub fn fails_more_here(pairs: Pairs) -> bool {
    stake(&GUILTY, pairs) >= GUILT
}

/// Whether the pairs exclude, at 5 %, that it fails more than three times as often here as at the base.
pub fn fails_there_too(pairs: Pairs) -> bool {
    pairs.both + pairs.base > 0 && stake(&INNOCENT, pairs) >= INNOCENCE
}

/// A pair of rates that is bet on, and the nearest one that the other answer would mean.
struct Bet {
    weight: f64,
    /// The rates here and at the base that are bet on.
    rates: (f64, f64),
    /// The nearest rates that speak against it.
    against: (f64, f64),
}

/// For "more often here": rates here and at the base, with the share of the stake that is put on them.
static GUILTY: LazyLock<Vec<Bet>> = LazyLock::new(|| {
    let rates = [
        (0.5, (0.99, 0.01)),
        (0.1, (0.9, 0.3)),
        (0.1, (0.7, 0.03)),
        (0.1, (0.5, 0.1)),
        (0.1, (0.3, 0.01)),
        (0.1, (0.12, 0.01)),
    ];
    bets(&rates, 1.0)
});

/// For "at the base too": equal rates on both sides.
static INNOCENT: LazyLock<Vec<Bet>> = LazyLock::new(|| {
    let rates = [
        (0.3, (0.99, 0.99)),
        (0.1, (0.9, 0.9)),
        (0.1, (0.75, 0.75)),
        (0.1, (0.5, 0.5)),
        (0.1, (0.3, 0.3)),
        (0.1, (0.2, 0.2)),
        (0.1, (0.1, 0.1)),
        (0.1, (0.04, 0.04)),
    ];
    bets(&rates, TIMES)
});

fn bets(rates: &[(f64, (f64, f64))], times: f64) -> Vec<Bet> {
    let bets = rates.iter().map(|(weight, rates)| Bet {
        weight: *weight,
        rates: *rates,
        against: nearest(*rates, times),
    });
    bets.collect()
}

/// The rates on the line "here is `times` the base" that are hardest to tell from these: those with the least
/// Kullback–Leibler divergence.
fn nearest((here, base): (f64, f64), times: f64) -> (f64, f64) {
    let far = |at: f64| divergence(here, times * at) + divergence(base, at);
    let (mut low, mut high) = (1e-9, 1.0 / times - 1e-9);
    // It has one minimum there: a ternary search finds it.
    for _ in 0..200 {
        let (one, two) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if far(one) < far(two) {
            high = two;
        } else {
            low = one;
        }
    }
    let at = f64::midpoint(low, high);
    (times * at, at)
}

fn divergence(of: f64, from: f64) -> f64 {
    of * (of / from).ln() + (1.0 - of) * ((1.0 - of) / (1.0 - from)).ln()
}

fn stake(bets: &[Bet], pairs: Pairs) -> f64 {
    let one = |bet: &Bet| {
        let (here, base) = (bet.rates.0 / bet.against.0, bet.rates.1 / bet.against.1);
        let not_here = (1.0 - bet.rates.0) / (1.0 - bet.against.0);
        let not_base = (1.0 - bet.rates.1) / (1.0 - bet.against.1);
        let logarithm = f64::from(pairs.both) * (here * base).ln()
            + f64::from(pairs.here) * (here * not_base).ln()
            + f64::from(pairs.base) * (not_here * base).ln()
            + f64::from(pairs.neither) * (not_here * not_base).ln();
        bet.weight * logarithm.exp()
    };
    bets.iter().map(one).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{RngCore, SeedableRng};

    use super::*;

    fn pairs(both: u32, here: u32, base: u32, neither: u32) -> Pairs {
        Pairs {
            both,
            here,
            base,
            neither,
        }
    }

    #[test]
    fn what_always_fails_here_and_never_at_the_base_is_told_by_four_pairs() {
        // By hand: the nearest equal rates are one half each, so that a pair multiplies by 0.99² / 0.25 = 3.92, and
        // half of the stake is on it: 0.5 · 3.92³ = 30.1, 0.5 · 3.92⁴ = 118.
        assert!(!fails_more_here(pairs(0, 3, 0, 0)));
        assert!(fails_more_here(pairs(0, 4, 0, 0)));
        assert!(!fails_there_too(pairs(0, 40, 0, 0)));
    }

    #[test]
    fn what_always_fails_on_both_sides_is_told_by_four_pairs() {
        // By hand: the nearest are 1 here and 1/3 at the base; 0.99² · 3 = 2.94, 0.3 · 2.94⁴ = 22.4.
        assert!(!fails_there_too(pairs(3, 0, 0, 0)));
        assert!(fails_there_too(pairs(4, 0, 0, 0)));
        assert!(!fails_more_here(pairs(40, 0, 0, 0)));
    }

    #[test]
    fn a_test_that_fails_rarely_at_the_base_and_always_here_is_not_acquitted() {
        assert!(!fails_there_too(pairs(2, 98, 0, 0)));
        assert!(fails_more_here(pairs(2, 98, 0, 0)));
    }

    #[test]
    fn runs_that_never_fail_say_nothing() {
        assert!(!fails_there_too(pairs(0, 0, 0, 1000)));
        assert!(!fails_more_here(pairs(0, 0, 0, 1000)));
    }

    /// How often one of the answers is given at some moment within 200 pairs.
    fn told(here: f64, base: f64, answer: fn(Pairs) -> bool) -> u32 {
        let mut told = 0;
        for seed in 0..400 {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut draw = |rate: f64| f64::from(random.next_u32()) / f64::from(u32::MAX) < rate;
            let mut pairs = Pairs::default();
            told += u32::from((0..200).any(|_| {
                pairs.add(draw(here), draw(base));
                answer(pairs)
            }));
        }
        told
    }

    #[test]
    fn an_innocent_flake_is_hardly_ever_accused_however_often_one_looks() {
        for rate in [0.01, 0.1, 0.3, 0.5, 0.9] {
            // 1 % of 400 is 4; more than 11 has a probability below 0.2 %.
            assert!(told(rate, rate, fails_more_here) <= 11, "{rate}");
        }
    }

    #[test]
    fn what_fails_three_times_as_often_here_is_hardly_ever_acquitted() {
        for rate in [0.02, 0.1, 0.2, 0.33] {
            // 5 % of 400 is 20; more than 34 has a probability below 0.2 %.
            assert!(told(3.0 * rate, rate, fails_there_too) <= 34, "{rate}");
        }
    }

    #[test]
    fn most_flakes_of_one_in_five_and_more_are_acquitted_within_two_hundred_pairs() {
        for rate in [0.2, 0.3, 0.5, 0.8, 1.0] {
            assert!(told(rate, rate, fails_there_too) >= 370, "{rate}");
        }
    }

    proptest! {
        #[test]
        fn no_counts_lead_to_both_answers(both in 0u32..80, here in 0u32..80, base in 0u32..80, neither in 0u32..80) {
            let pairs = pairs(both, here, base, neither);
            // More often here by any margin does not exclude "not three times as often": both may be true of large
            // numbers. Then guilt has the last word (`blame`).
            if here == 0 {
                prop_assert!(!fails_more_here(pairs));
            }
            if base == 0 && both == 0 {
                prop_assert!(!fails_there_too(pairs));
            }
        }
    }
}
