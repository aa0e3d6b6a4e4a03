//! Suites that exist only on paper: what is planted is what is found.

use proptest::prelude::*;

use super::trunk::find_trunk;
use super::*;
use crate::outcome::Outcome;

fn test(number: usize) -> TestId {
    TestId::new(&format!("t{number}"))
}

/// A test of a paper suite: what it does to a few switches, and when it passes.
#[derive(Clone, Debug, Default)]
struct Paper {
    sets: Vec<usize>,
    clears: Vec<usize>,
    /// Sets a switch only if another is set: two culprits whose order matters.
    sets_if: Option<(usize, usize)>,
    /// Fails if all of these are set.
    fails_if: Vec<Vec<usize>>,
    /// Fails unless one of these is set.
    needs: Vec<usize>,
    is_broken: bool,
    /// Fails in so many of ten runs in which it would fail.
    chance: Option<u32>,
}

struct Suite {
    tests: Vec<Paper>,
    clock: u32,
    trials: usize,
    /// Whether orders that begin alike are run as one.
    shares: bool,
    /// From where on the lead is guessed to suffice.
    guess: Option<usize>,
    /// Culprits of other tests.
    hints: Vec<Vec<TestId>>,
}

impl Suite {
    fn new(tests: Vec<Paper>) -> Self {
        Self {
            tests,
            clock: 0,
            trials: 0,
            shares: false,
            guess: None,
            hints: Vec::new(),
        }
    }

    /// Runs an order in a fresh VM and says how its last test ended.
    fn run(&mut self, order: &[TestId]) -> Outcome {
        let mut switches = [false; 16];
        let mut outcome = Outcome::NotRun;
        for id in order {
            self.trials += 1;
            let number: usize = id.name()[1..].parse().unwrap();
            let paper = &self.tests[number];
            let is_hurt = paper
                .fails_if
                .iter()
                .any(|all| all.iter().all(|at| switches[*at]));
            let is_lacking = !paper.needs.is_empty() && !paper.needs.iter().any(|at| switches[*at]);
            let is_drawn = paper.chance.is_none_or(|chance| {
                self.clock = self
                    .clock
                    .wrapping_mul(1_664_525)
                    .wrapping_add(1_013_904_223);
                (self.clock >> 16) % 10 < chance
            });
            let fails = paper.is_broken || ((is_hurt || is_lacking) && is_drawn);
            outcome = if fails {
                Outcome::Failed
            } else {
                Outcome::Passed
            };
            if let Some((condition, target)) = paper.sets_if
                && switches[condition]
            {
                switches[target] = true;
            }
            paper.sets.iter().for_each(|at| switches[*at] = true);
            paper.clears.iter().for_each(|at| switches[*at] = false);
        }
        outcome
    }

    fn others(&self, target: usize) -> Vec<TestId> {
        (0..self.tests.len())
            .filter(|at| *at != target)
            .map(test)
            .collect()
    }

    fn diagnose(&mut self, target: usize, lead: &[usize], scope: Scope) -> Diagnosis {
        let others = self.others(target);
        let leads: Vec<Vec<TestId>> =
            Vec::from_iter((!lead.is_empty()).then(|| lead.iter().copied().map(test).collect()));
        let guess = self.guess.and_then(|from| leads.first()?.get(from..));
        let guesses: Vec<Vec<TestId>> = guess.map(<[TestId]>::to_vec).into_iter().collect();
        let hints = self.hints.clone();
        let mut case = Case {
            others: &others,
            leads: &leads,
            guesses: &guesses,
            hints: &hints,
            width: 2,
            shares: false,
            scope,
            patience: Work(750),
            price: &|order| Work(5) + Work(1) * order.len(),
        };
        let mut answers = Answers::default();
        for _ in 0..10_000 {
            case.shares = self.shares && !answers.is_mixed();
            match next_step(&case, &answers) {
                Step::Conclude(diagnosis) => return diagnosis,
                Step::Run(befores) => {
                    assert!(!befores.is_empty());
                    let orders: Vec<Vec<TestId>> = befores
                        .iter()
                        .map(|before| [&before[..], &[test(target)]].concat())
                        .collect();
                    let trunk = find_trunk(&orders).filter(|_| case.shares);
                    let shared = trunk.iter().flat_map(|trunk| &trunk.branches);
                    let shared: usize = shared.map(|branch| branch.after).sum();
                    for (before, order) in befores.iter().zip(&orders) {
                        answers.note(before, &self.run(order));
                    }
                    self.trials -= shared;
                }
            }
        }
        panic!("no end");
    }
}

fn sets(diagnosis: &Diagnosis) -> Vec<Vec<&str>> {
    let sets = diagnosis.culprits.iter();
    sets.map(|one| one.tests.iter().map(TestId::name).collect())
        .collect()
}

/// A suite of bystanders with these tests planted in it.
fn planted(size: usize, tests: &[(usize, Paper)]) -> Suite {
    let mut all = vec![Paper::default(); size];
    for (at, paper) in tests {
        all[*at] = paper.clone();
    }
    Suite::new(all)
}

fn setting(switches: &[usize]) -> Paper {
    Paper {
        sets: switches.to_vec(),
        ..Paper::default()
    }
}

fn failing_with(sets: &[&[usize]]) -> Paper {
    Paper {
        fails_if: sets.iter().map(|all| all.to_vec()).collect(),
        ..Paper::default()
    }
}

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

    /// Whatever is planted, each set that is named does it, and nothing of it can be left out.
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
        // Every test that does it alone is named.
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
