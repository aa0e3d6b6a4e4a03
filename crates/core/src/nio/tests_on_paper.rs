//! The hunt from end to end, on projects that exist on paper: what is planted is what is found.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::event::{Ending, Event, Note};
use crate::experiment::Capabilities;
use crate::nio::Setting;
use crate::nio::hunt::{Hunt, HuntPlan, Mode};
use crate::nio::planted::{COPIES, MODES, Plant, RELOADS, Suite, nio};
use crate::paper_lab::{Echo, Layer, findings, verdicts, work};
use crate::technique::Technique;
use crate::test::TestId;
use crate::trial::{Rung, Trial};
use crate::verdict::{Doubt, Reason, Verdict};

fn everywhere(check: impl Fn(Mode, Capabilities)) {
    for mode in MODES {
        for can in [COPIES, RELOADS] {
            check(mode, can);
        }
    }
}

#[test]
fn a_test_that_pollutes_itself_is_nio_in_every_mode_and_says_what_it_takes() {
    for (layer, expected) in [
        (Layer::Memory, nio(false, false)),
        (Layer::Library, nio(false, false)),
        (Layer::File, nio(false, false)),
    ] {
        everywhere(|mode, can| {
            let mut plants = vec![Plant::Fine; 9];
            plants[4] = Plant::SelfPolluter(layer);
            let suite = Suite(plants);
            let told = suite.told(mode, can);
            let found = verdicts(&told);
            assert_eq!(found.len(), 1, "{mode:?} {can:?} {found:?}");
            assert_eq!(found.values().next(), Some(&expected), "{layer:?}");
        });
    }
    for (layer, expected) in [
        (Layer::Fixture, nio(true, false)),
        (Layer::Garbage, nio(false, true)),
    ] {
        for mode in MODES {
            let suite = Suite(vec![Plant::Fine, Plant::SelfPolluter(layer)]);
            assert_eq!(suite.verdict(1, mode, COPIES), Some(expected), "{layer:?}");
        }
    }
}

#[test]
fn a_crash_or_a_hang_in_the_second_run_is_nio_and_the_tests_after_it_run_all_the_same() {
    for plant in [Plant::Crash, Plant::Hang] {
        everywhere(|mode, can| {
            let late = Plant::SelfPolluter(Layer::Memory);
            let suite = Suite(vec![Plant::Fine, plant, Plant::Fine, late, Plant::Fine]);
            let told = suite.told(mode, can);
            let found: Vec<Verdict> = verdicts(&told).into_values().collect();
            let both = [nio(false, false), nio(false, false)];
            assert_eq!(found, both, "{mode:?} {can:?}");
            assert_eq!(told.last(), Some(&Event::Ended(Ending::Completed)));
        });
    }
}

#[test]
fn victims_under_a_doubled_suite_are_told_apart() {
    let shows = |plants: &[Plant], at, expected| {
        for can in [COPIES, RELOADS] {
            let suite = Suite(plants.to_vec());
            let found = suite.verdict(at, Mode::Suite, can);
            assert_eq!(found, Some(expected), "{plants:?} {can:?}");
        }
    };
    shows(&[Plant::Polluter(1), Plant::Victim(1)], 1, Verdict::Victim);
    // The polluter pollutes only because it is run twice.
    let late = [Plant::LatePolluter(1), Plant::Fine, Plant::Victim(1)];
    shows(&late, 2, Verdict::Victim);
    let itself = [Plant::Polluter(1), Plant::VictimOfItself(1)];
    shows(&itself, 1, Verdict::NioAfterOthers);
    shows(&[Plant::Fine, Plant::Brittle], 1, Verdict::Brittle);
    // It fails alone and in the doubled suite, and passes in the plain one.
    shows(&[Plant::Polluter(1), Plant::Needy(1)], 1, Verdict::Brittle);
    shows(&[Plant::Fine, Plant::Broken], 1, Verdict::Broken);
    shows(&[Plant::Fine, Plant::DeadOnArrival], 1, Verdict::Broken);
}

#[test]
fn a_first_look_finds_what_a_vm_for_each_test_finds_with_fewer_vms() {
    let mut plants = vec![Plant::Fine; 40];
    plants[3] = Plant::SelfPolluter(Layer::Memory);
    plants[9] = Plant::SelfPolluter(Layer::Library);
    plants[11] = Plant::Skipped;
    let suite = Suite(plants);
    let plain = Capabilities {
        reloads: false,
        ..RELOADS
    };
    let told = [RELOADS, plain].map(|can| suite.told(Mode::Method, can));
    let found = told.each_ref().map(|told| verdicts(told));
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0].len(), 2);
    let screened = |event: &&Event| matches!(event, Event::Noted(Note::Screened { .. }));
    let note = Note::Screened {
        passed: 38,
        alone: 2,
    };
    assert_eq!(told[0].iter().find(screened), Some(&Event::Noted(note)));
    // Of a first look only what counts is told.
    let looks = told[0].iter().filter(|event| {
        matches!(event, Event::TrialEnded(trial)
            if matches!(trial.rung, Rung::Once(Setting::Reloaded) | Rung::Again(Setting::Reloaded)))
    });
    assert_eq!(looks.count(), 2 * 38);
}

#[test]
fn changed_tests_are_run_alone_before_the_suite() {
    let suite = Suite(vec![
        Plant::SelfPolluter(Layer::Memory),
        Plant::Fine,
        Plant::SelfPolluter(Layer::Memory),
    ]);
    let tests = suite.tests();
    let plan = HuntPlan {
        mode: Mode::Auto,
        tests: tests.clone(),
        changed: [tests[2].clone()].into(),
        classes: None,
    };
    let mut lab = suite.lab(COPIES, 7);
    let told = work(&mut Hunt::new(plan, COPIES), &mut lab);
    let found = findings(&told);
    let detected = found.iter().map(|one| (&one.test, one.trials[0].rung));
    let expected = [
        (&tests[2], Rung::Once(Setting::Method)),
        (&tests[0], Rung::Once(Setting::Suite)),
    ];
    assert!(detected.eq(expected));
}

#[test]
fn a_hunt_takes_the_vms_and_runs_that_it_needs_and_no_more() {
    let mut plants = vec![Plant::Fine; 10];
    plants[2] = Plant::SelfPolluter(Layer::Memory);
    let suite = Suite(plants);
    let mut lab = suite.lab(COPIES, 7);
    work(&mut suite.hunt(Mode::Suite, COPIES), &mut lab);
    // The suite, three confirmations, one with fixtures torn down, and one with the garbage collected.
    assert_eq!((lab.vms, lab.trials), (6, 20 + 2 * 5));
    let suite = Suite(vec![Plant::Fine; 10]);
    let mut lab = suite.lab(COPIES, 7);
    work(&mut suite.hunt(Mode::Suite, COPIES), &mut lab);
    assert_eq!((lab.vms, lab.trials), (1, 20));
}

#[test]
fn many_suspects_share_processes_and_only_some_are_explained() {
    let suite = Suite(vec![Plant::SelfPolluter(Layer::Memory); 40]);
    let mut lab = suite.lab(RELOADS, 7);
    let told = work(&mut suite.hunt(Mode::Suite, RELOADS), &mut lab);
    assert_eq!(verdicts(&told).len(), 40);
    // The suite, one each alone, and twice two halves of them.
    assert_eq!(lab.vms, 1 + 40 + 4);
    let explained = findings(&told)
        .iter()
        .filter(|one| one.cause.is_some())
        .count();
    assert_eq!(explained, 2);
    let is_note = |event: &&Event| matches!(event, Event::Noted(Note::Unexplained { tests, explained: 2 }) if tests.len() == 38);
    assert_eq!(told.iter().filter(is_note).count(), 1);
}

/// By hand, for a rate of a half and as many of 2000 draws, with three times the deviation added.
///
/// Where each confirmation is alone, a coin is NIO if it did not pass twice, and then three times passed and failed: 3/4 ·
/// 1/64, or 23. Where up to two are made among others, which speak for it and not against it: 3/4 · 1/4 · (1/16 + 6/16 ·
/// 1/4 + 9/16 · 1/16), or 72.
const COINS: [(Capabilities, usize); 2] = [(COPIES, 23 + 15), (RELOADS, 72 + 25)];

#[test]
fn coins_of_any_rate_are_hardly_ever_nio() {
    for (can, most) in COINS {
        for rate in [20, 100, 300, 500, 700, 900, 980] {
            let mut wrong = 0;
            for seed in 0..400 {
                let suite = Suite(vec![Plant::Coin(rate); 5]);
                let mut lab = suite.lab(can, seed);
                let told = work(&mut suite.hunt(Mode::Suite, can), &mut lab);
                let found = verdicts(&told).into_values();
                wrong += found.filter(|one| matches!(one, Verdict::Nio(_))).count();
            }
            assert!(wrong <= most, "{wrong} of 2000 at {rate} {can:?}");
        }
    }
}

#[test]
fn who_is_latent_in_a_project_of_one_vm_for_each_class_is_told() {
    let suite = Suite(vec![
        Plant::Polluter(1),
        Plant::Fine,
        Plant::Victim(1),
        Plant::Victim(1),
    ]);
    let plan = HuntPlan {
        mode: Mode::Suite,
        tests: suite.tests(),
        changed: BTreeSet::new(),
        classes: Some(suite.tests()),
    };
    let told = work(&mut Hunt::new(plan, COPIES), &mut suite.lab(COPIES, 7));
    let latent: Vec<bool> = findings(&told).iter().map(|one| one.is_latent).collect();
    // Only the first of its class is known to need another one.
    assert_eq!(latent, [true, false]);
}

/// What must hold at every moment: all that was heard is told, settled or open.
fn check_cut(suite: &Suite, told: &[Event], hunt: &Hunt) {
    let mut trials: BTreeMap<TestId, Vec<&Trial>> = BTreeMap::new();
    for event in told {
        if let Event::TrialEnded(trial) = event {
            trials.entry(trial.test.clone()).or_default().push(trial);
        }
    }
    let findings = findings(told);
    let open: BTreeSet<TestId> = hunt.open().into_iter().map(|one| one.test).collect();
    for test in suite.tests() {
        let own = trials.remove(&test).unwrap_or_default();
        let mut judged = findings.iter().filter(|one| one.test == test);
        let finding = judged.next();
        assert!(judged.next().is_none(), "{test} is judged once");
        let has_failed = own.iter().any(|trial| trial.outcome.is_failure());
        assert_eq!(finding.is_some(), has_failed, "{test}");
        if let Some(finding) = finding {
            let is_cut = finding.verdict == Verdict::Unexamined(Reason::Cut);
            assert_eq!(is_cut, open.contains(&test), "{test}");
            assert!(
                finding.trials.iter().all(|trial| own.contains(&trial)),
                "{test}"
            );
            let rungs = finding.trials.iter().map(|trial| trial.rung);
            assert!(
                rungs
                    .clone()
                    .all(|rung| rung != Rung::Once(Setting::Reloaded)),
                "{test}"
            );
        } else if !open.contains(&test) {
            assert!(own.len() >= 2, "{test} has run twice");
        }
    }
}

#[test]
fn an_interruption_at_any_moment_leaves_all_that_was_heard_in_the_result_and_the_rest_open() {
    let suite = Suite(vec![
        Plant::SelfPolluter(Layer::Memory),
        Plant::Polluter(1),
        Plant::Victim(1),
        Plant::Crash,
        Plant::Coin(500),
        Plant::Fine,
    ]);
    everywhere(|mode, can| {
        for moment in 0.. {
            let mut lab = suite.lab(can, 7);
            lab.interrupted_after = Some(moment);
            let mut hunt = suite.hunt(mode, can);
            let told = work(&mut hunt, &mut lab);
            if told.last() == Some(&Event::Ended(Ending::Completed)) {
                assert!(moment > 30, "{moment}");
                assert_eq!(hunt.open(), []);
                break;
            }
            check_cut(&suite, &told, &hunt);
        }
    });
}

#[test]
fn to_hear_the_same_again_is_to_say_the_same_again() {
    let suite = Suite(vec![
        Plant::SelfPolluter(Layer::Fixture),
        Plant::Coin(300),
        Plant::Polluter(1),
        Plant::VictimOfItself(1),
        Plant::Needy(1),
    ]);
    everywhere(|mode, can| {
        let mut lab = suite.lab(can, 3);
        let told = work(&mut suite.hunt(mode, can), &mut lab);
        let said = lab.said.into();
        let again = work(&mut suite.hunt(mode, can), &mut Echo { can, said });
        assert_eq!(told, again);
    });
}

fn any_plant() -> impl Strategy<Value = Plant> {
    let layer = prop_oneof![Just(Layer::Memory), Just(Layer::Library), Just(Layer::File)];
    prop_oneof![
        6 => Just(Plant::Fine),
        1 => Just(Plant::Skipped),
        2 => layer.prop_map(Plant::SelfPolluter),
        1 => Just(Plant::Crash),
        1 => Just(Plant::Hang),
        1 => Just(Plant::Broken),
        1 => Just(Plant::DeadOnArrival),
        1 => Just(Plant::Brittle),
    ]
}

/// The truth about a test that no other disturbs.
fn truth(plant: Plant) -> Option<Verdict> {
    match plant {
        Plant::Fine | Plant::Skipped | Plant::Polluter(_) | Plant::LatePolluter(_) => None,
        Plant::SelfPolluter(_) | Plant::Crash | Plant::Hang => Some(nio(false, false)),
        Plant::Broken | Plant::DeadOnArrival => Some(Verdict::Broken),
        Plant::Brittle => Some(Verdict::Brittle),
        Plant::Victim(_) | Plant::VictimOfItself(_) | Plant::Needy(_) | Plant::Coin(_) => {
            panic!("{plant:?} depends on others, or on chance")
        }
    }
}

proptest! {
    /// What is planted is what is found, in any order of tests, mode and lab; and nothing else is.
    #[test]
    fn what_is_planted_is_what_is_found(
        plants in prop::collection::vec(any_plant(), 1..24),
        seed in any::<u64>(), mode in 0usize..4, lanes in 1usize..4, copies in any::<bool>(),
    ) {
        let can = Capabilities { copies, reloads: !copies, lanes };
        let suite = Suite(plants.clone());
        let mut lab = suite.lab(can, seed);
        let mut hunt = suite.hunt(MODES[mode], can);
        let told = work(&mut hunt, &mut lab);
        let found = verdicts(&told);
        for (test, plant) in suite.tests().iter().zip(plants) {
            prop_assert_eq!(found.get(test.name()).copied(), truth(plant), "{} {:?}", test, plant);
        }
        prop_assert_eq!(hunt.open(), []);
    }

    /// A test that depends on others is never called NIO.
    #[test]
    fn who_depends_on_others_is_not_nio(
        piece in 0usize..3, before in 0usize..6, mode in 0usize..4, seed in any::<u64>(),
    ) {
        for can in [COPIES, RELOADS] {
            for victim in [Plant::Victim(piece), Plant::VictimOfItself(piece), Plant::Needy(piece)] {
                let mut plants = vec![Plant::Fine; before];
                plants.extend([Plant::LatePolluter(piece), Plant::Polluter(piece), victim]);
                let suite = Suite(plants);
                let told = work(&mut suite.hunt(MODES[mode], can), &mut suite.lab(can, seed));
                let found = verdicts(&told);
                let is_nio = found.values().any(|one| matches!(one, Verdict::Nio(_)));
                prop_assert!(!is_nio, "{:?} {:?}", found, can);
                let is_open = |one: &Verdict| *one == Verdict::Unclear(Doubt::NotRunAgain);
                prop_assert!(!found.values().any(is_open), "{:?}", found);
            }
        }
    }
}
