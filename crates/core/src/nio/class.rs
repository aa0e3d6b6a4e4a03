//! Test classes: who shares one, and which findings nobody sees because each class has a VM of its own.

use crate::order::Culprit;
use crate::test::TestId;

/// The class of a test, the outermost one in Java; for a function its file.
pub fn class_of(test: &TestId) -> &str {
    if let Some((class, _)) = test.class_and_method() {
        return class.split('$').next().unwrap_or(class);
    }
    let plain = test.name().split('[').next().unwrap_or_default();
    plain.rsplit_once("::").map_or(plain, |(class, _)| class)
}

/// Tests of one class together, and functions of one file, in the order of their first tests.
pub(super) fn by_class(tests: &[TestId]) -> Vec<Vec<TestId>> {
    let mut groups: Vec<Vec<TestId>> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for test in tests {
        let place = *places.entry(class_of(test)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(test.clone());
    }
    groups
}

/// Whether a test depends on one of another class. As long as its culprits are not known, only the first
/// of a class is known to.
pub fn takes_two_classes<'a>(
    test: &TestId,
    culprits: &[Culprit],
    listed: impl IntoIterator<Item = &'a TestId>,
) -> bool {
    let class = class_of(test);
    if culprits.is_empty() {
        let first = listed.into_iter().find(|one| class_of(one) == class);
        return first == Some(test);
    }
    let is_foreign = |culprit: &Culprit| culprit.tests.iter().any(|one| class_of(one) != class);
    culprits.iter().all(is_foreign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::answers::Ends;

    fn culprit(tests: &[&str]) -> Culprit {
        Culprit {
            tests: tests.iter().map(|name| TestId::new(name)).collect(),
            is_ordered: false,
            ends: Ends::default(),
        }
    }

    #[test]
    fn a_finding_is_latent_if_no_test_of_its_own_class_can_do_it() {
        let test = TestId::new("shop.ATest#b");
        let own = culprit(&["shop.ATest$Inside#a"]);
        let foreign = culprit(&["shop.ATest#a", "shop.BTest#a"]);
        assert!(takes_two_classes(
            &test,
            std::slice::from_ref(&foreign),
            &[]
        ));
        assert!(!takes_two_classes(&test, &[foreign, own], &[]));
    }

    #[test]
    fn without_culprits_only_the_first_of_a_class_is_known_to_need_another() {
        let tests = ["shop.BTest#a", "shop.ATest#a", "shop.ATest#b"].map(TestId::new);
        assert!(takes_two_classes(&tests[1], &[], &tests));
        assert!(!takes_two_classes(&tests[2], &[], &tests));
    }

    #[test]
    fn functions_of_a_file_and_parameters_of_a_test_share_a_class() {
        let names = [
            "a.py::one[x::y]",
            "a.py::T::two",
            "b.py::one",
            "a.py::one[z]",
        ];
        let groups = by_class(&names.map(TestId::new));
        let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 1, 1]);
    }
}
