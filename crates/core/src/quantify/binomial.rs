//! The binomial distribution: the probability of a number of failures at a given rate.
//!
//! The probability of one count is computed as R does (C. Loader, "Fast and Accurate Computation of
//! Binomial Probabilities", 2000), because the difference of large logarithms of factorials is good for few
//! digits at a million runs. Tails are sums of such probabilities from their largest term outwards.

use super::sample::{Sample, to_float};

/// The smallest share of a sum that is still added to it.
const PRECISION: f64 = 1e-17;

/// The probability of exactly this sample at this rate: `P_t` of Rehman 2019, Eq. 9.
pub fn probability(sample: Sample, rate: f64) -> f64 {
    ln_probability(sample, rate).exp()
}

/// Its logarithm, which tells samples apart whose probability is too small for a float.
pub fn ln_probability(sample: Sample, rate: f64) -> f64 {
    let (failures, runs) = (to_float(sample.failures()), to_float(sample.runs()));
    let certain = |is_so: bool| if is_so { 0.0 } else { f64::NEG_INFINITY };
    if rate <= 0.0 {
        return certain(sample.failures() == 0);
    }
    if rate >= 1.0 {
        return certain(sample.passes() == 0);
    }
    if sample.failures() == 0 {
        return runs * (-rate).ln_1p();
    }
    if sample.passes() == 0 {
        return runs * rate.ln();
    }
    let passes = runs - failures;
    let core = stirling_error(sample.runs())
        - stirling_error(sample.failures())
        - stirling_error(sample.passes())
        - deviance(failures, runs * rate)
        - deviance(passes, runs * (1.0 - rate));
    let scale = (std::f64::consts::TAU * failures).ln() + (-failures / runs).ln_1p();
    core - scale / 2.0
}

/// The probability of at least as many failures: R's `binom.test(f, r, rate, alternative = "greater")`
/// (Rehman 2019, 3.1.4).
pub fn at_least(sample: Sample, rate: f64) -> f64 {
    if sample.failures() == 0 || rate >= 1.0 {
        return 1.0;
    }
    if rate <= 0.0 {
        return 0.0;
    }
    if to_float(sample.failures()) > to_float(sample.runs()) * rate {
        upper_tail(sample, rate)
    } else {
        let fewer = Sample::new(sample.failures() - 1, sample.runs());
        1.0 - lower_tail(fewer, rate)
    }
}

/// The probability of at most as many failures.
pub fn at_most(sample: Sample, rate: f64) -> f64 {
    if sample.passes() == 0 || rate <= 0.0 {
        return 1.0;
    }
    if rate >= 1.0 {
        return 0.0;
    }
    if to_float(sample.failures()) < to_float(sample.runs()) * rate {
        lower_tail(sample, rate)
    } else {
        let more = Sample::new(sample.failures() + 1, sample.runs());
        1.0 - upper_tail(more, rate)
    }
}

/// The highest rate at which so few failures have at least the probability `error` (Clopper and Pearson's
/// upper limit); 1 without runs.
pub fn highest_rate(sample: Sample, error: f64) -> f64 {
    if sample.passes() == 0 {
        return 1.0;
    }
    if sample.failures() == 0 {
        return -(error.ln() / to_float(sample.runs())).exp_m1();
    }
    let (mut low, mut high) = (sample.rate().unwrap_or(0.0), 1.0);
    // 60 halvings leave nothing that a float could tell.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if at_most(sample, middle) > error {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The probability of this many failures or more, for samples at or above the mean.
fn upper_tail(sample: Sample, rate: f64) -> f64 {
    let odds = rate / (1.0 - rate);
    let (mut term, mut sum) = (1.0, 1.0);
    for failures in sample.failures()..sample.runs() {
        term *= odds * to_float(sample.runs() - failures) / to_float(failures + 1);
        sum += term;
        if term < sum * PRECISION {
            break;
        }
    }
    (probability(sample, rate) * sum).min(1.0)
}

/// The probability of this many failures or fewer, for samples below the mean.
fn lower_tail(sample: Sample, rate: f64) -> f64 {
    let odds = (1.0 - rate) / rate;
    let (mut term, mut sum) = (1.0, 1.0);
    for failures in (1..=sample.failures()).rev() {
        term *= odds * to_float(failures) / to_float(sample.runs() - failures + 1);
        sum += term;
        if term < sum * PRECISION {
            break;
        }
    }
    (probability(sample, rate) * sum).min(1.0)
}

/// ln n! less Stirling's formula for it.
fn stirling_error(count: u64) -> f64 {
    const TABLE: [f64; 16] = [
        0.0,
        0.081_061_466_795_327_26,
        0.041_340_695_955_409_29,
        0.027_677_925_684_998_34,
        0.020_790_672_103_765_09,
        0.016_644_691_189_821_19,
        0.013_876_128_823_070_748,
        0.011_896_709_945_891_77,
        0.010_411_265_261_972_096,
        0.009_255_462_182_712_733,
        0.008_330_563_433_362_87,
        0.007_573_675_487_951_841,
        0.006_942_840_107_209_53,
        0.006_408_994_188_004_207,
        0.005_951_370_112_758_848,
        0.005_554_733_551_962_801,
    ];
    if let Some(error) = usize::try_from(count).ok().and_then(|at| TABLE.get(at)) {
        return *error;
    }
    let n = to_float(count);
    let square = n * n;
    let series = 1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / (1188.0 * square)) / square;
    (1.0 / 12.0 - (1.0 / 360.0 - series / square) / square) / n
}

/// x ln(x/m) + m - x, also where x is close to m.
fn deviance(x: f64, mean: f64) -> f64 {
    if (x - mean).abs() >= 0.1 * (x + mean) {
        return x * (x / mean).ln() + mean - x;
    }
    let ratio = (x - mean) / (x + mean);
    let mut sum = (x - mean) * ratio;
    let mut power = 2.0 * x * ratio;
    for step in 1..1000_u32 {
        power *= ratio * ratio;
        let next = sum + power / f64::from(2 * step + 1);
        if next.to_bits() == sum.to_bits() {
            break;
        }
        sum = next;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 1e-10, "{found} is not {wanted}");
    }

    #[test]
    fn the_binomial_test_has_the_values_of_r() {
        close(at_least(Sample::new(3, 10), 0.05), 0.011_503_557_4);
        close(at_least(Sample::new(1, 5), 0.01), 0.049_009_950_1);
        close(at_least(Sample::new(0, 5), 0.01), 1.0);
        // One of 10 tests at 0.1 % fails.
        close(
            at_least(Sample::new(1, 10), 0.001),
            1.0 - 0.999_f64.powi(10),
        );
    }

    #[test]
    fn the_likelihood_of_equation_9() {
        close(probability(Sample::new(3, 10), 0.05), 0.010_475_059_4);
        close(probability(Sample::new(0, 10), 0.05), 0.598_736_939_2);
    }

    #[test]
    fn the_corners_are_certain_or_impossible() {
        close(at_least(Sample::new(0, 0), 0.3), 1.0);
        close(at_least(Sample::new(1, 9), 0.0), 0.0);
        close(at_least(Sample::new(9, 9), 1.0), 1.0);
        close(probability(Sample::new(0, 9), 0.0), 1.0);
        close(probability(Sample::new(8, 9), 1.0), 0.0);
        close(at_most(Sample::new(3, 3), 0.9), 1.0);
    }

    #[test]
    fn the_highest_rate_is_where_the_tail_is_the_error() {
        // By hand: 1 - 0.025^(1/90).
        close(
            highest_rate(Sample::new(0, 90), 0.025),
            1.0 - 0.025_f64.powf(1.0 / 90.0),
        );
        let rate = highest_rate(Sample::new(7, 400), 0.025);
        close(at_most(Sample::new(7, 400), rate), 0.025);
        close(highest_rate(Sample::new(0, 0), 0.025), 1.0);
    }
}
