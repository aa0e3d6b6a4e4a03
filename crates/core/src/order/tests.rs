//! What is planted in a suite on paper is what is found.

mod paper;

use proptest::prelude::*;

use self::paper::{Paper, Suite, failing_with, planted, sets, setting, test};
use super::*;
use crate::outcome::Outcome;

#[test]
fn a_victim_its_polluters_and_its_cleaner_are_named() {
    let cleaner = Paper {
        clears: vec![0],
        ..Paper::default()
    };
    let mut suite = planted(
        30,
        &[
            (4, setting(&[0])),
            (11, setting(&[0])),
            (20, cleaner),
            (25, failing_with(&[&[0]])),
        ],
    );
    let lead: Vec<usize> = (0..12).collect();
    let diagnosis = suite.diagnose(25, &lead, Scope::All);
    assert_eq!(diagnosis.role, Role::Victim);
    assert_eq!(sets(&diagnosis), [["t4"], ["t11"]]);
    assert_eq!(diagnosis.cleaners, [test(20)]);
    assert!(diagnosis.is_complete);
}

#[test]
fn a_brittle_test_has_alternative_setters() {
    let brittle = Paper {
        needs: vec![0, 1],
        ..Paper::default()
    };
    let mut suite = planted(20, &[(3, setting(&[0])), (7, setting(&[1])), (9, brittle)]);
    let lead: Vec<usize> = (0..9).collect();
    let diagnosis = suite.diagnose(9, &lead, Scope::All);
    assert_eq!(diagnosis.role, Role::Brittle);
    assert_eq!(sets(&diagnosis), [["t3"], ["t7"]]);
}

#[test]
fn two_that_are_needed_together_are_found_and_so_is_their_order() {
    let second = Paper {
        sets_if: Some((0, 1)),
        ..Paper::default()
    };
    let victim = failing_with(&[&[1]]);
    let mut suite = planted(40, &[(5, setting(&[0])), (30, second), (35, victim)]);
    let lead: Vec<usize> = (0..35).collect();
    let diagnosis = suite.diagnose(35, &lead, Scope::All);
    assert_eq!(sets(&diagnosis), [["t5", "t30"]]);
    assert!(diagnosis.culprits[0].is_ordered);

    let both = failing_with(&[&[0, 1]]);
    let mut suite = planted(40, &[(5, setting(&[0])), (30, setting(&[1])), (35, both)]);
    suite.guess = Some(20); // One that does not suffice leaves the lead.
    let diagnosis = suite.diagnose(35, &lead, Scope::All);
    assert_eq!(sets(&diagnosis), [["t5", "t30"]]);
    assert!(!diagnosis.culprits[0].is_ordered);
}

#[test]
fn one_that_does_it_alone_is_named_before_several_together() {
    let planted_tests = [
        (5, setting(&[0])),
        (8, setting(&[1])),
        (20, setting(&[2])),
        (25, failing_with(&[&[0, 1], &[2]])),
    ];
    let lead: Vec<usize> = (0..12).collect();
    let diagnosis = planted(30, &planted_tests).diagnose(25, &lead, Scope::All);
    assert_eq!(sets(&diagnosis), [vec!["t20"], vec!["t5", "t8"]]);
}

#[test]
fn look_alikes_are_not_order_dependent() {
    let mut suite = planted(
        10,
        &[(
            9,
            Paper {
                is_broken: true,
                ..Paper::default()
            },
        )],
    );
    assert_eq!(suite.diagnose(9, &[], Scope::All).role, Role::Broken);
    let random = Paper {
        fails_if: vec![vec![]],
        chance: Some(5),
        ..Paper::default()
    };
    let mut suite = planted(10, &[(9, random)]);
    assert_eq!(suite.diagnose(9, &[1, 2, 3], Scope::All).role, Role::Random);
    let mut suite = planted(10, &[]);
    // It was seen to fail after a lead, and never does again.
    assert_eq!(suite.diagnose(9, &[1, 2, 3], Scope::All).role, Role::Random);
}

#[test]
fn a_coin_is_hardly_ever_taken_for_a_victim() {
    let mut wrong = Vec::new();
    for seed in 0..2000 {
        let coin = Paper {
            fails_if: vec![vec![]],
            chance: Some(1 + seed % 9),
            ..Paper::default()
        };
        let mut suite = planted(30, &[(25, coin)]);
        suite.clock = seed.wrapping_mul(2_654_435_761);
        suite.shares = seed % 2 == 0;
        suite.guess = (seed % 3 > 0).then_some(10);
        // What another test suffers from is tried on this one too.
        suite.hints = (0..4).map(|hint| vec![test(hint)]).collect();
        let lead: Vec<usize> = (0..25).collect();
        let diagnosis = suite.diagnose(25, &lead, Scope::All);
        if diagnosis.role != Role::Random {
            wrong.push((seed, diagnosis.role));
        }
    }
    assert!(wrong.len() <= 1, "{} of 2000: {wrong:?}", wrong.len());
}

#[test]
fn a_polluter_that_does_it_in_four_of_ten_runs_is_found() {
    for seed in 0..200 {
        let victim = Paper {
            chance: Some(4),
            ..failing_with(&[&[0]])
        };
        let mut suite = planted(30, &[(7, setting(&[0])), (25, victim)]);
        suite.clock = seed;
        suite.shares = seed % 2 == 0;
        suite.guess = (seed % 3 > 0).then_some(usize::try_from(seed % 20).unwrap());
        let lead: Vec<usize> = (0..25).collect();
        let diagnosis = suite.diagnose(25, &lead, Scope::First);
        assert_eq!(diagnosis.role, Role::Victim, "seed {seed}");
        assert_eq!(sets(&diagnosis), [["t7"]], "seed {seed}");
    }
}

#[test]
fn all_culprits_and_cleaners_of_a_large_suite_are_found_by_groups() {
    let cleaner = Paper {
        clears: vec![0],
        ..Paper::default()
    };
    let planted_tests = [
        (123, setting(&[0])),
        (300, cleaner.clone()),
        (301, setting(&[0])),
        (302, cleaner),
        (700, setting(&[0])),
        (999, failing_with(&[&[0]])),
    ];
    let mut suite = planted(1000, &planted_tests);
    let lead: Vec<usize> = (0..200).collect();
    let diagnosis = suite.diagnose(999, &lead, Scope::All);
    assert_eq!(sets(&diagnosis), [["t123"], ["t301"], ["t700"]]);
    assert_eq!(diagnosis.cleaners, [test(300), test(302)]);
    assert!(suite.trials < 60_000, "{} trials", suite.trials);
}

#[test]
fn that_no_other_test_matters_takes_three_runs_of_a_large_suite() {
    let mut suite = planted(1000, &[(123, setting(&[0])), (999, failing_with(&[&[0]]))]);
    let lead: Vec<usize> = (0..999).collect();
    let first = suite.diagnose(999, &lead, Scope::First);
    let spent = std::mem::take(&mut suite.trials);
    let all = suite.diagnose(999, &lead, Scope::All);
    assert_eq!(all.culprits, first.culprits);
    assert!(all.is_complete && all.cleaners.is_empty());
    assert!(
        suite.trials - spent <= 2000,
        "{} trials",
        suite.trials - spent
    );
}

#[test]
fn a_thousand_tests_take_few_runs_to_the_first_answer() {
    let mut suite = planted(1000, &[(123, setting(&[0])), (999, failing_with(&[&[0]]))]);
    let lead: Vec<usize> = (0..999).collect();
    let diagnosis = suite.diagnose(999, &lead, Scope::First);
    assert_eq!(sets(&diagnosis), [["t123"]]);
    assert!(suite.trials < 12_000, "{} trials", suite.trials);
}

#[test]
fn orders_that_begin_alike_make_the_first_answer_cheap() {
    let mut suite = planted(1000, &[(123, setting(&[0])), (999, failing_with(&[&[0]]))]);
    suite.shares = true;
    let lead: Vec<usize> = (0..999).collect();
    let diagnosis = suite.diagnose(999, &lead, Scope::First);
    assert_eq!(sets(&diagnosis), [["t123"]]);
    assert!(suite.trials < 3_600, "{} trials", suite.trials);
    // A run of the suite has shown where it sets in.
    suite.trials = 0;
    suite.guess = Some(100);
    let lead: Vec<usize> = (0..125).collect();
    let diagnosis = suite.diagnose(999, &lead, Scope::First);
    assert_eq!(sets(&diagnosis), [["t123"]]);
    assert!(suite.trials < 160, "{} trials", suite.trials);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is planted, each set that is named has the effect, and nothing of it can be left out.
    #[test]
    fn every_named_set_suffices_and_no_part_of_it_does(
        effects in proptest::collection::vec((0usize..6, 0usize..6, 0usize..4), 5..40),
        wanted in proptest::collection::vec(proptest::collection::vec(0usize..6, 1..3), 1..3),
        shares in any::<bool>(),
        guess in proptest::option::of(0usize..40),
    ) {
        let tests = effects.iter().map(|(set, clear, kind)| match kind {
            0 => setting(&[*set]),
            1 => Paper { clears: vec![*clear], ..Paper::default() },
            2 => Paper { sets_if: Some((*set, *clear)), ..Paper::default() },
            _ => Paper::default(),
        });
        let mut tests: Vec<Paper> = tests.collect();
        tests.push(Paper { fails_if: wanted, ..Paper::default() });
        let target = tests.len() - 1;
        let mut suite = Suite { shares, guess, ..Suite::new(tests) };
        let lead: Vec<usize> = (0..target).collect();
        let order: Vec<TestId> = (0..=target).map(test).collect();
        prop_assume!(suite.run(&order) == Outcome::Failed);
        let diagnosis = suite.diagnose(target, &lead, Scope::All);
        prop_assert_eq!(diagnosis.role, Role::Victim);
        prop_assert!(!diagnosis.culprits.is_empty());
        let last = test(target);
        for culprit in &diagnosis.culprits {
            let with = |tests: &[TestId]| [tests, std::slice::from_ref(&last)].concat();
            prop_assert_eq!(suite.run(&with(&culprit.tests)), Outcome::Failed);
            for left_out in 0..culprit.tests.len() {
                let mut part = culprit.tests.clone();
                part.remove(left_out);
                prop_assert_eq!(suite.run(&with(&part)), Outcome::Passed);
            }
        }
        // Every test that has the effect alone is named.
        for number in 0..target {
            let does_it = suite.run(&[test(number), last.clone()]) == Outcome::Failed;
            let is_named = diagnosis.culprits.iter().any(|one| one.tests == [test(number)]);
            prop_assert_eq!(does_it, is_named);
        }
        // And every test that undoes it.
        let set = diagnosis.culprits[0].tests.clone();
        for number in (0..target).filter(|number| !set.contains(&test(*number))) {
            let order = [&set[..], &[test(number), last.clone()]].concat();
            let undoes = suite.run(&order) == Outcome::Passed;
            prop_assert_eq!(undoes, diagnosis.cleaners.contains(&test(number)));
        }
    }
}
