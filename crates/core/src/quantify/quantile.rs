//! Quantiles as R computes them by default (type 7), which is what Rehman 2019 uses.

/// The quantile of values that are in ascending order; `None` of none.
///
/// Between two values it interpolates linearly: h = (n − 1) q.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place in memory fits into a float, and h is between 0 and the last place"
)]
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let h = last as f64 * share.clamp(0.0, 1.0);
    let below = h.floor();
    let (low, high) = (
        sorted[below as usize],
        sorted[(below as usize + 1).min(last)],
    );
    Some(low + (h - below) * (high - low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_interpolates_as_r_does() {
        // R: quantile(c(1, 2, 3, 4, 10), c(0, 0.25, 0.5, 0.9, 0.95, 1))
        let values = [1.0, 2.0, 3.0, 4.0, 10.0];
        for (share, wanted) in [
            (0.0, 1.0),
            (0.25, 2.0),
            (0.5, 3.0),
            (0.9, 7.6),
            (0.95, 8.8),
            (1.0, 10.0),
        ] {
            let found = quantile(&values, share).unwrap();
            assert!((found - wanted).abs() < 1e-12, "{share}: {found}");
        }
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[0.3], 0.95), Some(0.3));
    }
}
