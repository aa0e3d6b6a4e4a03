//! Every formula against an independent reference: what scipy says, written down by `reference.py`.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeMap;

use unflake_core::quantify::binomial::{at_least, highest_rate, probability};
use unflake_core::quantify::discovery::adjust;
use unflake_core::quantify::interval::wilson;
use unflake_core::quantify::normal::{Level, cumulative};
use unflake_core::quantify::prior::at_least_after;
use unflake_core::quantify::quantile::quantile;
use unflake_core::quantify::sample::Sample;

fn numbers(text: &str, between: char) -> Vec<f64> {
    text.split(between)
        .map(|one| one.parse().unwrap())
        .collect()
}

fn compute(formula: &str, sample: Sample, rate: f64) -> f64 {
    let (name, arguments) = formula.split_once(' ').unwrap_or((formula, ""));
    match name {
        "at-least" => at_least(sample, rate),
        "probability" => probability(sample, rate),
        "wilson-low" => wilson(sample, Level::DEFAULT).low,
        "wilson-high" => wilson(sample, Level::DEFAULT).high,
        "highest-rate" => highest_rate(sample, 0.025),
        "at-least-after" => {
            let (failures, runs) = arguments.split_once('/').unwrap();
            let baseline = Sample::new(failures.parse().unwrap(), runs.parse().unwrap());
            at_least_after(baseline, sample)
        }
        "quantile" => quantile(&numbers(arguments, ' '), rate).unwrap(),
        "normal" => cumulative(rate),
        "adjust" => adjust(&numbers(arguments, ' ')).iter().sum(),
        other => panic!("no formula `{other}`"),
    }
}

#[test]
fn scipy_says_the_same() {
    let mut checked: BTreeMap<String, usize> = BTreeMap::new();
    for line in include_str!("reference.csv").lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [formula, failures, runs, rate, wanted] = fields.as_slice() else {
            panic!("{line}")
        };
        let count = |text: &str| text.parse::<u64>().unwrap_or(0);
        let sample = Sample::new(count(failures), count(runs));
        let found = compute(formula, sample, rate.parse().unwrap_or(0.0));
        let wanted: f64 = wanted.parse().unwrap();
        // Below 1e-280 floats lose their digits.
        let slack =
            1e-8 * wanted.abs() + 1e-280_f64.max(1e-13 * f64::from(u8::from(wanted > 1e-3)));
        assert!((found - wanted).abs() <= slack, "{line}: {found}");
        let name = formula.split(' ').next().unwrap().to_owned();
        *checked.entry(name).or_default() += 1;
    }
    assert_eq!(checked.len(), 9, "{checked:?}");
    assert!(checked.values().sum::<usize>() > 8_000, "{checked:?}");
}
