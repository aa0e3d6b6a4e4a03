//! The cost of each rung of the ladder, and the ratio of a same-VM rerun to a fresh VM.

use std::time::Duration;

use crate::trial::{Birth, Rung, Trial};

/// The number of same-VM reruns that cost as much as one fresh VM: `N_E` of Eloussi 2015, 4.3.
///
/// `t_base` is the time of one run in a fresh VM. `reruns` holds pairs of n and `r_n`, the extra time of n reruns in
/// the same VM, in rising order of n. Between two measured n the time is linear; beyond the last one, the line through
/// the last two goes on. `None` if that line never reaches `t_base`.
pub fn break_even(t_base: f64, reruns: &[(f64, f64)]) -> Option<f64> {
    let mut points = vec![(0.0, 0.0)];
    points.extend_from_slice(reruns);
    let reached = points.iter().position(|(_, r_n)| *r_n >= t_base);
    let upper = reached.unwrap_or(points.len() - 1).max(1);
    let ((n_1, r_n1), (n_2, r_n2)) = (*points.get(upper - 1)?, *points.get(upper)?);
    let n_e = (t_base - r_n1) * (n_2 - n_1) / (r_n2 - r_n1) + n_1;
    (n_e.is_finite() && n_e >= 0.0).then_some(n_e)
}

/// The reruns of one kind, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// The number of trials.
    pub trials: u32,
    /// Their total time on the wall clock.
    pub total: Duration,
}

impl Spent {
    /// The average time of one of them, in seconds; `None` without trials.
    pub fn each(self) -> Option<f64> {
        (self.trials > 0).then(|| self.total.as_secs_f64() / f64::from(self.trials))
    }
}

/// The cost of a run's reruns, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// In the same VM right after the failure.
    pub immediate: Spent,
    /// In the same VM after the suite.
    pub end: Spent,
    /// In a forked VM.
    pub fork: Spent,
    /// In a new interpreter.
    pub exec: Spent,
}

impl Costs {
    /// The cost of these trials, those of one test for example.
    pub fn of(trials: &[Trial]) -> Self {
        let mut costs = Self::default();
        for trial in trials {
            costs.add(trial);
        }
        costs
    }

    /// Adds one trial; those of the suite itself cost nothing extra.
    pub fn add(&mut self, trial: &Trial) {
        let spent = match (trial.rung, trial.birth) {
            // A replay is several runs, and a run after itself finds fixtures alive: neither is one rerun.
            // One at the base has the checkout to pay for, and another command's was not ours.
            (
                Rung::Suite
                | Rung::OwnRerun
                | Rung::Replay
                | Rung::AfterItself
                | Rung::OtherSeed
                | Rung::InOrder
                | Rung::Alone
                | Rung::Base
                | Rung::Report
                | Rung::Once(_)
                | Rung::Again(_),
                _,
            )
            | (_, Birth::Elsewhere) => return,
            (Rung::Immediate, _) => &mut self.immediate,
            (Rung::End, _) => &mut self.end,
            (Rung::Fresh | Rung::Look | Rung::Confirm, Birth::Fork) => &mut self.fork,
            (Rung::Fresh | Rung::Look | Rung::Confirm, Birth::Exec) => &mut self.exec,
        };
        spent.trials += 1;
        spent.total += trial.cost;
    }

    /// All reruns in a VM that had run something before.
    pub fn same_vm(self) -> Spent {
        Spent {
            trials: self.immediate.trials + self.end.trials,
            total: self.immediate.total + self.end.total,
        }
    }

    /// `N_E` for a fresh VM of this kind, from this run's own averages.
    pub fn break_even(self, fresh: Spent) -> Option<f64> {
        break_even(fresh.each()?, &[(1.0, self.same_vm().each()?)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eloussi 2015, Table 4.5: test, base, reruns for n = 1, 5, 10, 20, 50, and the published `N_E`.
    const TABLE_4_5: [(&str, f64, [f64; 5], f64); 17] = [
        ("Ambari_f1", 1.11, [1.74, 8.61, 20.43, 43.90, 114.62], 1.28),
        ("Ambari_t1", 8.41, [10.67, 16.84, 23.67, 32.22, 54.85], 4.99),
        ("Ambari_t2", 7.58, [9.89, 16.14, 21.04, 30.97, 54.72], 4.37),
        (
            "Hadoop_f1",
            12.36,
            [14.53, 17.59, 27.68, 51.12, 63.00],
            8.53,
        ),
        ("Hadoop_f2", 8.19, [9.03, 11.34, 14.67, 20.33, 36.99], 13.02),
        (
            "Hadoop_f3",
            14.07,
            [17.08, 29.17, 43.00, 70.80, 148.63],
            4.66,
        ),
        (
            "Hadoop_f4",
            12.91,
            [14.41, 18.38, 23.78, 32.41, 57.22],
            12.36,
        ),
        ("HBase_f1", 2.99, [5.00, 14.54, 32.63, 90.73, 494.35], 1.41),
        ("HBase_t1", 0.45, [0.46, 0.52, 0.63, 0.80, 0.99], 35.79),
        ("HBase_t2", 0.45, [0.48, 0.52, 0.56, 0.63, 0.72], 110.00),
        ("HBase_t3", 0.70, [0.95, 1.42, 1.75, 2.11, 3.15], 4.83),
        ("HttpCore_f1", 0.47, [0.50, 0.55, 0.68, 0.84, 1.17], 29.09),
        ("HttpCore_t1", 0.43, [0.45, 0.49, 0.55, 0.67, 0.96], 39.66),
        ("HttpCore_t2", 0.47, [0.50, 0.54, 0.61, 0.80, 1.12], 33.13),
        (
            "Oozie_f1",
            23.54,
            [26.91, 35.76, 46.95, 65.97, 122.82],
            10.06,
        ),
        (
            "Oozie_t1",
            22.57,
            [25.25, 32.12, 40.53, 58.54, 109.56],
            12.56,
        ),
        (
            "Oozie_t2",
            22.38,
            [24.22, 32.08, 40.52, 59.79, 109.49],
            12.20,
        ),
    ];

    #[test]
    fn n_e_is_that_of_table_4_5_in_all_17_rows() {
        for (test, t_base, measured, published) in TABLE_4_5 {
            let reruns: Vec<(f64, f64)> = [1.0, 5.0, 10.0, 20.0, 50.0]
                .into_iter()
                .zip(measured.map(|t_n| t_n - t_base))
                .collect();
            let n_e = break_even(t_base, &reruns).unwrap();
            // The published times are rounded, so the last digit may differ by one.
            assert!(
                (n_e - published).abs() < 0.0151,
                "{test}: {n_e} {published}"
            );
        }
    }

    #[test]
    fn n_e_of_one_average_is_the_ratio_of_the_costs() {
        assert_eq!(break_even(0.6, &[(1.0, 0.2)]), Some(0.6 / 0.2));
        assert_eq!(break_even(0.1, &[(1.0, 0.2)]), Some(0.1 / 0.2));
        assert_eq!(
            break_even(0.1, &[]),
            None,
            "nothing was rerun in the same VM"
        );
        assert_eq!(
            break_even(0.1, &[(1.0, 0.0)]),
            None,
            "free reruns never add up"
        );
    }
}
