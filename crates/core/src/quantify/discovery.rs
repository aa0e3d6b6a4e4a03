//! Many tests at once: the share of false alarms among all alarms (Benjamini and Hochberg, 1995).

/// The smallest false-discovery rate at which each p-value would count, in the same order.
pub fn adjust(p_values: &[f64]) -> Vec<f64> {
    let mut places: Vec<usize> = (0..p_values.len()).collect();
    places.sort_by(|one, other| p_values[*other].total_cmp(&p_values[*one]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least: f64 = 1.0;
    let mut rank = p_values.len();
    for place in places {
        let ratio = float(p_values.len()) / float(rank);
        least = least.min(p_values[place] * ratio);
        adjusted[place] = least;
        rank -= 1;
    }
    adjusted
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a number of tests fits into a float"
)]
fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_adjusts_as_r_does() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005, 0.5), "BH")
        let found = adjust(&[0.01, 0.04, 0.03, 0.005, 0.5]);
        for (found, wanted) in found.iter().zip([0.025, 0.05, 0.05, 0.025, 0.5]) {
            assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
        }
        assert!(adjust(&[]).is_empty());
    }
}
