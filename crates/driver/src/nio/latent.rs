//! Which findings nobody sees today, because the project gives each test class a VM of its own.

use unflake_core::order::Culprit;
use unflake_core::test::{Test, TestId};
use unflake_core::verdict::Verdict;

use crate::lab::session::Session;
use crate::lab::suspect::Suspect;
use crate::nio::hunt::class_of;

impl Session {
    /// Whether a finding takes tests of two classes in one VM, where the project gives each its own.
    pub(crate) fn is_latent(&self, suspect: &Suspect, verdict: Verdict) -> bool {
        let (_, is_by_class) = self.wish.project.differences();
        let culprits = suspect.dependence.as_ref();
        let culprits = culprits.map_or(&[][..], |known| &known.diagnosis.culprits);
        is_by_class
            && (verdict.depends_on_order() || !culprits.is_empty())
            && takes_two_classes(&suspect.test, culprits, &self.tests)
    }
}

/// Whether a test depends on one of another class. As long as its culprits are not known, only the first
/// of a class is known to.
fn takes_two_classes(test: &TestId, culprits: &[Culprit], tests: &[Test]) -> bool {
    let class = class_of(test);
    if culprits.is_empty() {
        let first = tests.iter().find(|one| class_of(&one.id) == class);
        return first.is_some_and(|first| first.id == *test);
    }
    let is_foreign = |culprit: &Culprit| culprit.tests.iter().any(|one| class_of(one) != class);
    culprits.iter().all(is_foreign)
}

#[cfg(test)]
mod tests {
    use unflake_core::order::answers::Ends;

    use super::*;

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
        let listed = |name: &str| Test {
            id: TestId::new(name),
            file: String::new(),
            line: 0,
        };
        let tests = ["shop.BTest#a", "shop.ATest#a", "shop.ATest#b"].map(listed);
        assert!(takes_two_classes(&tests[1].id, &[], &tests));
        assert!(!takes_two_classes(&tests[2].id, &[], &tests));
    }
}
