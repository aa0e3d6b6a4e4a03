//! NIO tests: those that pass, and fail when they are run again in the same VM (NIO 2022).
//!
//! Each test is run twice in a row. Where that is not simply pass and pass, it is run twice alone, in
//! new interpreters, until it has a name: NIO, or one of the things that look like it.

pub mod class;
mod confirmation;
mod detection;
pub mod hunt;
mod naming;
#[cfg(test)]
mod planted;
mod suspect;
#[cfg(test)]
mod tests_on_paper;

use crate::outcome::Outcome;
use crate::trial::{Rung, Trial};
use crate::verdict::{Doubt, Verdict};

/// What to do next about one test. Call it again after each pair.
///
/// `pairs` are those of the one test, in the order they were made; the first is the one that is to
/// detect, so it is never empty.
pub fn next_step(pairs: &[Pair]) -> Step {
    let seen = Seen { pairs };
    match seen.detected().shape() {
        Shape::PassPass | Shape::Skipped => Step::Conclude(None),
        Shape::PassFail => candidate(seen),
        Shape::FailPass | Shape::FailFail if seen.confirmations(Shape::PassFail) > 0 => {
            candidate(seen)
        }
        Shape::FailPass => passed_later(seen),
        Shape::FailFail => failed_twice(seen),
    }
}

/// A test run twice in a row in one VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Where and after what.
    pub setting: Setting,
    /// How the first run ended.
    pub once: Outcome,
    /// How the second run ended; `NotRun` if there was none.
    pub again: Outcome,
}

/// Where and after what a test is run twice (the modes of NIO 2022, 2, and the checks on them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Setting {
    /// In one VM after all tests that stand before it, each of them twice (entire-suite).
    Suite,
    /// In a VM of its own class, or file, after the tests of it that stand before (isolated-class).
    Class,
    /// In a VM of its own (isolated-method).
    Method,
    /// In a VM that others use too, on classes of the project that were loaded for it alone.
    Reloaded,
    /// In a new interpreter of its own, with the files as they were at the start (3.3).
    Confirm,
    /// In a new interpreter after other suspects, each of them twice, with the files as they were.
    Together,
    /// Once more as in `Suite`.
    Replay,
    /// In one VM after all tests that stand before it, each of them once, and itself once.
    Plain,
    /// As `Confirm`, with all shared fixtures torn down between the runs.
    TornDown,
    /// As `Confirm`, with the garbage collected between the runs.
    Collected,
    /// Once, in a VM of its own.
    Alone,
    /// Once, in a VM of its own after tests that were chosen for it.
    Ordered,
}

impl Setting {
    /// The word for it in reports.
    pub fn label(self) -> &'static str {
        match self {
            Self::Suite => "suite",
            Self::Class => "class",
            Self::Method => "method",
            Self::Reloaded => "reloaded",
            Self::Confirm => "confirm",
            Self::Together => "together",
            Self::Replay => "replay",
            Self::Plain => "plain",
            Self::TornDown => "torn-down",
            Self::Collected => "collected",
            Self::Alone => "alone",
            Self::Ordered => "ordered",
        }
    }

    /// Whether its VM is a copy of one that had only loaded the tests, where copies can be made.
    pub fn is_copied(self) -> bool {
        match self {
            Self::Class | Self::Method | Self::Alone | Self::Ordered => true,
            Self::Suite
            | Self::Reloaded
            | Self::Confirm
            | Self::Together
            | Self::Replay
            | Self::Plain
            | Self::TornDown
            | Self::Collected => false,
        }
    }

    /// Whether other tests ran before it in its VM.
    pub fn is_after_others(self) -> bool {
        match self {
            Self::Suite
            | Self::Class
            | Self::Reloaded
            | Self::Together
            | Self::Replay
            | Self::Plain
            | Self::Ordered => true,
            Self::Method | Self::Confirm | Self::TornDown | Self::Collected | Self::Alone => false,
        }
    }
}

/// What to do next about one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Run it twice in this setting.
    Run(Setting),
    /// It is decided; `None` if there is nothing to say about it.
    Conclude(Option<Verdict>),
}

/// What a test is that fails when it is run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nio {
    /// It takes shared fixtures that stay alive between the two runs, as they do in a suite.
    pub needs_shared_fixtures: bool,
    /// It passes the second time if the garbage is collected between the runs.
    pub depends_on_collector: bool,
}

/// So often a candidate must pass and then fail, each time in a new interpreter (NIO 2022, 3.3).
const CONFIRMATIONS: usize = 3;

/// How a pair ended, coarsely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Both passed.
    PassPass,
    /// Only the second failed.
    PassFail,
    /// Only the first failed.
    FailPass,
    /// Both failed, or the first took the VM with it.
    FailFail,
    /// One of them did not run the test, or could not.
    Skipped,
}

impl Pair {
    /// The pair that two trials of one setting make.
    pub fn of(once: &Trial, again: &Trial) -> Self {
        let setting = match once.rung {
            Rung::Once(setting) | Rung::Again(setting) => setting,
            Rung::Suite
            | Rung::OwnRerun
            | Rung::Immediate
            | Rung::End
            | Rung::Fresh
            | Rung::Look
            | Rung::AfterItself
            | Rung::Confirm
            | Rung::Replay
            | Rung::OtherSeed
            | Rung::InOrder
            | Rung::Alone
            | Rung::Base
            | Rung::Report => unreachable!("a pair is made of the two runs of a setting"),
        };
        Self {
            setting,
            once: once.outcome.clone(),
            again: again.outcome.clone(),
        }
    }

    /// Whether the test passed, or was skipped, both times.
    pub fn is_content(&self) -> bool {
        let is_skipped = |outcome: &Outcome| matches!(outcome, Outcome::Skipped);
        is_skipped(&self.once) && is_skipped(&self.again) || self.shape() == Shape::PassPass
    }

    /// How it ended, coarsely. A crash and a time-out are failures here: the test did not do its work.
    pub fn shape(&self) -> Shape {
        let first_is_pass = self.once.is_pass();
        let is_known = |outcome: &Outcome| outcome.is_pass() || outcome.is_failure();
        if self.once.ends_vm() && is_known(&self.once) {
            return Shape::FailFail;
        }
        if !is_known(&self.once) || !is_known(&self.again) {
            return Shape::Skipped;
        }
        match (first_is_pass, self.again.is_pass()) {
            (true, true) => Shape::PassPass,
            (true, false) => Shape::PassFail,
            (false, true) => Shape::FailPass,
            (false, false) => Shape::FailFail,
        }
    }

    /// Both outcomes in words: "passed, failed".
    pub fn label(&self) -> String {
        format!("{}, {}", self.once.label(), self.again.label())
    }
}

/// It has passed and then failed at least once. Is that its own doing, each time?
fn candidate(seen: Seen<'_>) -> Step {
    let done = seen.of(Setting::Confirm).count();
    let confirmed = seen.confirmations(Shape::PassFail);
    // Once it was seen alone, others may be in the same interpreter: they cannot be what it takes.
    let together = if confirmed > 0 && confirmed == done {
        seen.confirmed_together()
    } else {
        0
    };
    if done + together < CONFIRMATIONS {
        return Step::Run(Setting::Confirm);
    }
    if confirmed == done {
        return nio(seen);
    }
    if seen.confirmations(Shape::Skipped) == done {
        // A new interpreter does not list it, or skips it: nobody can say what it is.
        return Step::Conclude(Some(Verdict::Unclear(Doubt::NotRunAgain)));
    }
    if confirmed > 0 {
        return Step::Conclude(Some(Verdict::NonDeterministic));
    }
    if seen.confirmations(Shape::PassPass) == done {
        return after_others(seen);
    }
    let fails_alone = seen.confirmations(Shape::FailPass) + seen.confirmations(Shape::FailFail);
    // It passed in its place and fails alone: it needs what others set.
    let verdict = if fails_alone == done {
        Verdict::Brittle
    } else {
        Verdict::NonDeterministic
    };
    Step::Conclude(Some(verdict))
}

/// It is NIO. What does it take?
fn nio(seen: Seen<'_>) -> Step {
    let passes = |setting: Setting| {
        let mut pairs = seen.of(setting);
        pairs.next().map(|pair| pair.shape() == Shape::PassPass)
    };
    match (passes(Setting::TornDown), passes(Setting::Collected)) {
        (None, _) => Step::Run(Setting::TornDown),
        (Some(_), None) => Step::Run(Setting::Collected),
        (Some(needs_shared_fixtures), Some(depends_on_collector)) => {
            Step::Conclude(Some(Verdict::Nio(Nio {
                needs_shared_fixtures,
                depends_on_collector,
            })))
        }
    }
}

/// Alone it passes twice, each time. After others it did not: does it fail there again?
fn after_others(seen: Seen<'_>) -> Step {
    if !seen.detected().setting.is_after_others() {
        // Only a fork has seen it.
        return Step::Conclude(Some(Verdict::Unclear(Doubt::OnlyInForks)));
    }
    let replay = seen.of(Setting::Replay).next();
    match replay.map(Pair::shape) {
        None => Step::Run(Setting::Replay),
        Some(Shape::PassFail) => Step::Conclude(Some(Verdict::NioAfterOthers)),
        Some(Shape::FailFail | Shape::FailPass) => Step::Conclude(Some(Verdict::Victim)),
        Some(Shape::PassPass | Shape::Skipped) if seen.detected().setting.is_copied() => {
            Step::Conclude(Some(Verdict::Unclear(Doubt::OnlyInForks)))
        }
        Some(Shape::PassPass | Shape::Skipped) => Step::Conclude(Some(Verdict::NonDeterministic)),
    }
}

/// It failed and then passed: after itself, by chance, or because something came and went.
fn passed_later(seen: Seen<'_>) -> Step {
    let done = seen.of(Setting::Confirm).count();
    if done < CONFIRMATIONS {
        return Step::Run(Setting::Confirm);
    }
    let fails_first = seen.confirmations(Shape::FailPass) + seen.confirmations(Shape::FailFail);
    let verdict = if seen.confirmations(Shape::FailPass) == done {
        Verdict::Brittle
    } else if seen.confirmations(Shape::Skipped) == done {
        Verdict::Unclear(Doubt::NotRunAgain)
    } else if fails_first == done {
        Verdict::Broken
    } else {
        Verdict::NonDeterministic
    };
    Step::Conclude(Some(verdict))
}

/// It failed twice. Alone it passes (a victim), passes after itself (brittle), or fails again.
fn failed_twice(seen: Seen<'_>) -> Step {
    let Some(alone) = seen.of(Setting::Confirm).next() else {
        return Step::Run(Setting::Confirm);
    };
    let verdict = match alone.shape() {
        Shape::PassPass => return after_others(seen),
        Shape::PassFail => Verdict::NonDeterministic,
        Shape::FailPass => Verdict::Brittle,
        // The tests before it may set what it needs, and undo it when they are run twice.
        Shape::FailFail => match seen.of(Setting::Plain).next() {
            None => return Step::Run(Setting::Plain),
            Some(plain) if plain.once.is_pass() => Verdict::Brittle,
            Some(_) => Verdict::Broken,
        },
        Shape::Skipped => Verdict::Unclear(Doubt::NotRunAgain),
    };
    Step::Conclude(Some(verdict))
}

/// The questions that the technique asks of the pairs so far.
#[derive(Clone, Copy)]
struct Seen<'a> {
    pairs: &'a [Pair],
}

impl<'a> Seen<'a> {
    fn detected(self) -> &'a Pair {
        self.pairs
            .first()
            .expect("a test is run twice before anything is asked")
    }

    fn of(self, setting: Setting) -> impl Iterator<Item = &'a Pair> {
        self.pairs
            .iter()
            .filter(move |pair| pair.setting == setting)
    }

    /// How often it passed and then failed in a new interpreter among others. What else it did there says
    /// nothing: one of the others may have disturbed it.
    fn confirmed_together(self) -> usize {
        self.of(Setting::Together)
            .filter(|pair| pair.shape() == Shape::PassFail)
            .count()
    }

    fn confirmations(self, shape: Shape) -> usize {
        self.of(Setting::Confirm)
            .filter(|pair| pair.shape() == shape)
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(letter: char) -> Outcome {
        match letter {
            'p' => Outcome::Passed,
            'f' => Outcome::Failed,
            's' => Outcome::Skipped,
            'c' => Outcome::VmDied {
                how: "killed by signal 11".into(),
            },
            'n' => Outcome::NotRun,
            other => panic!("no outcome is written {other:?}"),
        }
    }

    fn pair(setting: Setting, letters: &str) -> Pair {
        let mut letters = letters.chars();
        let mut next = || outcome(letters.next().expect("two letters"));
        Pair {
            setting,
            once: next(),
            again: next(),
        }
    }

    /// Lets the technique go on with a test whose pair in each setting is given.
    fn hunt(
        detected: (Setting, &str),
        mut run: impl FnMut(Setting, usize) -> &'static str,
    ) -> Option<Verdict> {
        let mut pairs = vec![pair(detected.0, detected.1)];
        for number in 0..20 {
            match next_step(&pairs) {
                Step::Run(setting) => pairs.push(pair(setting, run(setting, number))),
                Step::Conclude(verdict) => return verdict,
            }
        }
        panic!("no end after {pairs:?}");
    }

    const PLAIN_NIO: Verdict = Verdict::Nio(Nio {
        needs_shared_fixtures: false,
        depends_on_collector: false,
    });

    #[test]
    fn three_of_three_make_it_nio_wherever_it_was_seen() {
        for setting in [Setting::Suite, Setting::Class, Setting::Method] {
            assert_eq!(hunt((setting, "pf"), |_, _| "pf"), Some(PLAIN_NIO));
        }
        assert_eq!(
            hunt((Setting::Suite, "pc"), |_, _| "pc"),
            Some(PLAIN_NIO),
            "a crash is a failure"
        );
    }

    #[test]
    fn confirmations_among_others_count_only_beside_one_alone() {
        let with = |alone: &[&str], together: &[&str]| {
            let mut pairs = vec![pair(Setting::Suite, "pf")];
            let add = |setting, letters: &&str| pair(setting, letters);
            pairs.extend(alone.iter().map(|one| add(Setting::Confirm, one)));
            pairs.extend(together.iter().map(|one| add(Setting::Together, one)));
            next_step(&pairs)
        };
        let more = Step::Run(Setting::Confirm);
        assert_eq!(with(&[], &["pf", "pf", "pf"]), more, "it may be brittle");
        assert_eq!(with(&["pf"], &["pf"]), more);
        assert_eq!(with(&["pf"], &["pf", "pf"]), Step::Run(Setting::TornDown));
        assert_eq!(
            with(&["pf"], &["pf", "pp"]),
            more,
            "it was disturbed, or it is chance"
        );
        assert_eq!(with(&["pp"], &["pf", "pf"]), more);
        let mixed = with(&["pf", "pp"], &["pf", "pf"]);
        assert_eq!(mixed, more, "what others take part in decides nothing");
        let chance = with(&["pf", "pp", "pf"], &["pf"]);
        assert_eq!(chance, Step::Conclude(Some(Verdict::NonDeterministic)));
    }

    #[test]
    fn a_victim_can_be_nio_as_well() {
        // testSize of NIO 2022, Fig. 4: it fails twice after others, and alone it passes and fails.
        assert_eq!(hunt((Setting::Suite, "ff"), |_, _| "pf"), Some(PLAIN_NIO));
    }

    #[test]
    fn what_a_nio_test_takes_is_told() {
        let only =
            |odd: Setting| move |setting: Setting, _| if setting == odd { "pp" } else { "pf" };
        let fixtures = Verdict::Nio(Nio {
            needs_shared_fixtures: true,
            depends_on_collector: false,
        });
        assert_eq!(
            hunt((Setting::Suite, "pf"), only(Setting::TornDown)),
            Some(fixtures)
        );
        let collector = Verdict::Nio(Nio {
            needs_shared_fixtures: false,
            depends_on_collector: true,
        });
        assert_eq!(
            hunt((Setting::Suite, "pf"), only(Setting::Collected)),
            Some(collector)
        );
    }

    #[test]
    fn look_alikes_have_their_own_names() {
        let broken = Verdict::Broken;
        let alone = |alone: &'static str, suite: &'static str| {
            move |setting: Setting, _| {
                if setting.is_after_others() {
                    suite
                } else {
                    alone
                }
            }
        };
        let suite = Setting::Suite;
        for (detected, alone, verdict) in [
            ("pf", alone("pp", "pf"), Verdict::NioAfterOthers),
            ("pf", alone("pp", "pp"), Verdict::NonDeterministic),
            ("pf", alone("fp", "pf"), Verdict::Brittle),
            ("pf", alone("ff", "pf"), Verdict::Brittle),
            ("ff", alone("pp", "ff"), Verdict::Victim),
            ("ff", alone("pp", "pp"), Verdict::NonDeterministic),
            ("ff", alone("fp", "ff"), Verdict::Brittle),
            ("ff", alone("ff", "fn"), broken),
            ("ff", alone("ff", "pn"), Verdict::Brittle),
            ("fp", alone("fp", "fp"), Verdict::Brittle),
            ("fp", alone("pp", "fp"), Verdict::NonDeterministic),
            ("cn", alone("cn", "cn"), broken),
            (
                "pf",
                alone("nn", "pf"),
                Verdict::Unclear(Doubt::NotRunAgain),
            ),
            (
                "fp",
                alone("nn", "fp"),
                Verdict::Unclear(Doubt::NotRunAgain),
            ),
            (
                "ff",
                alone("nn", "ff"),
                Verdict::Unclear(Doubt::NotRunAgain),
            ),
        ] {
            assert_eq!(hunt((suite, detected), alone), Some(verdict), "{detected}");
        }
    }

    #[test]
    fn a_test_that_fails_alone_and_passes_in_its_place_is_brittle_wherever_it_was_seen() {
        for setting in [Setting::Suite, Setting::Class, Setting::Method] {
            let run = |setting: Setting, _| {
                if setting == Setting::Plain {
                    "pn"
                } else {
                    "ff"
                }
            };
            assert_eq!(hunt((setting, "ff"), run), Some(Verdict::Brittle));
        }
    }

    #[test]
    fn what_only_a_copied_vm_has_seen_is_left_open() {
        let open = Some(Verdict::Unclear(Doubt::OnlyInForks));
        for setting in [Setting::Class, Setting::Method] {
            for letters in ["pf", "ff", "cn"] {
                assert_eq!(hunt((setting, letters), |_, _| "pp"), open, "{letters}");
            }
        }
    }

    #[test]
    fn mixed_confirmations_are_chance() {
        let once = |_: Setting, number: usize| if number == 1 { "pp" } else { "pf" };
        assert_eq!(
            hunt((Setting::Suite, "pf"), once),
            Some(Verdict::NonDeterministic)
        );
    }

    #[test]
    fn passes_and_skips_are_left_alone() {
        for letters in ["pp", "ss", "ps", "sp", "nn"] {
            assert_eq!(
                hunt((Setting::Suite, letters), |_, _| "pf"),
                None,
                "{letters}"
            );
        }
    }

    proptest::proptest! {
        /// Whatever happens, there is an end, and NIO is said only after three of three.
        #[test]
        fn nio_is_never_said_without_three_of_three(
            script in proptest::collection::vec(0usize..7, 1..30), start in 0usize..7,
        ) {
            let shapes = ["pp", "pf", "fp", "ff", "ss", "cn", "pc"];
            let mut confirmations = Vec::new();
            let verdict = hunt((Setting::Suite, shapes[start]), |setting, number| {
                let letters = shapes[script[number % script.len()]];
                if setting == Setting::Confirm {
                    confirmations.push(letters);
                }
                letters
            });
            if let Some(Verdict::Nio(_)) = verdict {
                assert_eq!(confirmations.len(), 3);
                assert!(confirmations.iter().all(|letters| ["pf", "pc"].contains(letters)));
            }
        }
    }
}
