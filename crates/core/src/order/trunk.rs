//! Orders that begin alike: the beginning is run once, and copies of the VM leave it for the rest of each.

use crate::test::TestId;

/// A run that others share their beginning with. Orders are named by their place among those asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trunk {
    /// The order that is run to its end.
    pub order: usize,
    /// The others, by the place where they leave it.
    pub branches: Vec<Branch>,
}

/// An order that leaves another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The number of tests at the beginning that it has in common with the trunk.
    pub after: usize,
    /// The order.
    pub order: usize,
}

/// The beginning that several of these orders share, if that is worth running once; `None` if it is not.
///
/// An order that is there twice is to be run twice, from its start: chance must not be shared.
pub fn find_trunk(orders: &[Vec<TestId>]) -> Option<Trunk> {
    let longest = (0..orders.len()).max_by_key(|at| orders[*at].len())?;
    let trunk = &orders[longest];
    let mut branches: Vec<Branch> = Vec::new();
    for (order, tests) in orders.iter().enumerate() {
        let is_known = orders[..order].contains(tests) || tests == trunk;
        let pairs = tests.iter().zip(trunk);
        let after = pairs.take_while(|(one, other)| one == other).count();
        // The part that runs anew is no longer than the shared part.
        if order != longest && !is_known && after < tests.len() && 2 * after >= tests.len() {
            branches.push(Branch { after, order });
        }
    }
    branches.sort_by_key(|branch| (branch.after, branch.order));
    (!branches.is_empty()).then_some(Trunk {
        order: longest,
        branches,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(names: &str) -> Vec<TestId> {
        names
            .chars()
            .map(|name| TestId::new(&name.to_string()))
            .collect()
    }

    #[test]
    fn orders_leave_the_longest_where_they_differ_from_it() {
        let orders = ["abx", "abcdx", "dcx", "ax"].map(order);
        let branch = |after, order| Branch { after, order };
        let trunk = find_trunk(&orders).unwrap();
        assert_eq!(trunk.order, 1);
        assert_eq!(trunk.branches, [branch(1, 3), branch(2, 0)]);
    }

    #[test]
    fn an_order_that_is_there_twice_shares_nothing_with_itself() {
        assert_eq!(find_trunk(&["abx", "abx"].map(order)), None);
        assert_eq!(
            find_trunk(&["abcx", "abx", "abx"].map(order))
                .unwrap()
                .branches
                .len(),
            1
        );
    }

    #[test]
    fn orders_that_begin_otherwise_have_no_trunk() {
        assert_eq!(find_trunk(&["abx", "bax"].map(order)), None);
        assert_eq!(find_trunk(&[]), None);
    }
}
