//! Failures that belong together: they look alike, or they always come together (Eloussi 2015, Ch. 8).

use std::collections::HashMap;

/// Tests that failed in fewer reports than this are not said to fail together.
pub const LEAST_TOGETHER: usize = 3;

/// A test that fails.
#[derive(Clone, Copy, Debug)]
pub struct Failing<'a> {
    /// The part of its failure that others of its kind share; `None` if none is known.
    pub signature: Option<&'a str>,
    /// The reports that it failed in, in order.
    pub reports: &'a [u32],
}

/// What the tests of a cluster have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// Nothing: it is one test.
    Alone,
    /// They fail with the same message, except for what differs from run to run.
    Signature,
    /// They failed in the same reports, and in no others.
    Together,
}

/// Tests whose failures belong together, by their places, the first test of each first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Why they are one cluster.
    pub bond: Bond,
    /// The places of the tests.
    pub members: Vec<usize>,
}

/// Puts each test into one cluster: by its signature if another has the same, else by its reports.
///
/// To be in the same cluster does not mean to have the same cause.
pub fn gather(failing: &[Failing<'_>]) -> Vec<Cluster> {
    let mut signatures: HashMap<&str, usize> = HashMap::new();
    for signature in failing.iter().filter_map(|one| one.signature) {
        *signatures.entry(signature).or_default() += 1;
    }
    let mut clusters: Vec<Cluster> = Vec::new();
    let mut by_signature: HashMap<&str, usize> = HashMap::new();
    let mut by_reports: HashMap<&[u32], usize> = HashMap::new();
    for (place, one) in failing.iter().enumerate() {
        let shared = one.signature.filter(|text| signatures[text] > 1);
        let next = clusters.len();
        let at = match shared {
            Some(signature) => *by_signature.entry(signature).or_insert(next),
            None if one.reports.len() >= LEAST_TOGETHER => {
                *by_reports.entry(one.reports).or_insert(next)
            }
            None => next,
        };
        if at == next {
            clusters.push(Cluster {
                bond: Bond::Alone,
                members: Vec::new(),
            });
        }
        let cluster = &mut clusters[at];
        cluster.members.push(place);
        if cluster.members.len() > 1 {
            cluster.bond = if shared.is_some() {
                Bond::Signature
            } else {
                Bond::Together
            };
        }
    }
    clusters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing<'a>(signature: Option<&'a str>, reports: &'a [u32]) -> Failing<'a> {
        Failing { signature, reports }
    }

    #[test]
    fn failures_that_look_alike_or_come_together_are_one_cluster() {
        let found = gather(&[
            failing(Some("no route"), &[1]),
            failing(None, &[4, 5, 6]),
            failing(Some("no route"), &[2]),
            failing(Some("other"), &[4, 5, 6]),
            failing(None, &[4, 5]),
        ]);
        let wanted = [
            (Bond::Signature, vec![0, 2]),
            (Bond::Together, vec![1, 3]),
            (Bond::Alone, vec![4]),
        ];
        let found: Vec<(Bond, Vec<usize>)> = found
            .into_iter()
            .map(|one| (one.bond, one.members))
            .collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn two_reports_are_too_few_to_say_together() {
        let found = gather(&[failing(None, &[1, 2]), failing(None, &[1, 2])]);
        assert_eq!(found.len(), 2);
    }
}
