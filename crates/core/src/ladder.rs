//! The rerun ladder: is this failure flaky? (Eloussi 2015, Ch. 3, Fig. 3.1 and 3.2)
//!
//! RERUN at once in the same VM, POSTPONE to the end of the suite, FORK into a fresh VM. It goes
//! beyond the paper in four places. The threshold has an absolute floor, because one failure is
//! already 5 % of a suite of 20. A pass after the test's own failed run is checked in a fresh VM,
//! because the failed run may have made the state that the test needs. What only forked VMs saw is
//! confirmed in a new interpreter. And a kind of flakiness is told only where chance is excluded
//! (`settle`). It says how a test fails; whose failure that is, `blame` finds out.

mod other_seeds;

use crate::sequential::{Tally, chance_of};
use crate::trial::{Birth, Fixtures, Rung, Trial};
use crate::verdict::{Doubt, Flakiness, Reason, Verdict};

/// What to do next about one failed test. Call it again after each trial.
///
/// `trials` are those of the one test, in the order they were made; the first is the failure in the
/// suite, so it is never empty. A step in the same VM is asked for only while that VM can take it.
pub fn next_step(rungs: Rungs, trials: &[Trial], stage: Stage) -> Step {
    let seen = Seen { trials };
    if let Stage::SuiteEnded {
        too_many_failures: true,
        ..
    } = stage
    {
        return Step::Conclude(Verdict::Unexamined(Reason::TooManyFailures));
    }
    if trials[0].fixtures == Fixtures::EndedBadly {
        return shared_tear_down(seen, stage);
    }
    match (seen.same_vm_pass(), stage) {
        (Some(_), Stage::SuiteRunning) => Step::Wait,
        (Some(rung), Stage::SuiteEnded { .. }) => look(rungs, seen, rung),
        (None, Stage::SuiteRunning) => {
            if seen.vm_is_usable() && seen.count(Rung::Immediate) < rungs.immediate {
                Step::Rerun(Rung::Immediate, Place::SuiteVm)
            } else {
                Step::Wait
            }
        }
        (None, Stage::SuiteEnded { suite_vm_alive, .. }) => {
            let can_end = suite_vm_alive && seen.vm_is_usable();
            if can_end && seen.fresh_count() == 0 && seen.count(Rung::End) < rungs.end {
                Step::Rerun(Rung::End, Place::SuiteVm)
            } else {
                fresh(rungs, seen)
            }
        }
    }
}

/// How many reruns each rung has: `C_IMM`, `C_END` and `C_NEW` of Eloussi 2015, 3.1. Each may be 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rungs {
    /// Right after the failure, in the same VM.
    pub immediate: u32,
    /// After the suite, in the same VM.
    pub end: u32,
    /// Each in a VM of its own.
    pub fresh: u32,
    /// In a new interpreter, each with another hash seed, for a test that failed everywhere else.
    pub other_seeds: u32,
}

impl Default for Rungs {
    fn default() -> Self {
        Self {
            immediate: 1,
            end: 1,
            fresh: 2,
            other_seeds: 0,
        }
    }
}

impl Rungs {
    /// What is left of it for a test that failed together with another, in the same way: one confirming rerun.
    #[must_use]
    pub fn confirming(self) -> Self {
        Self {
            end: 0,
            fresh: self.fresh.min(1),
            other_seeds: 0,
            ..self
        }
    }

    /// The same for a test that fails everywhere and not through the change: it may be its hash seed. There is time for
    /// so many runs.
    #[must_use]
    pub fn seeking_a_seed(self, most: u32) -> Self {
        Self {
            other_seeds: other_seeds::SOUGHT.min(most),
            ..self
        }
    }
}

/// Where the suite is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Tests of the suite are still to come.
    SuiteRunning,
    /// Every test of the suite has run.
    SuiteEnded {
        /// Whether the failures reached the threshold.
        too_many_failures: bool,
        /// Whether the VM in which the test failed is still there.
        suite_vm_alive: bool,
    },
}

/// What to do next about one failed test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing until the suite has ended.
    Wait,
    /// Run it once more.
    Rerun(Rung, Place),
    /// It is decided.
    Conclude(Verdict),
}

/// Where to run it once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the VM in which it failed in the suite.
    SuiteVm,
    /// In the VM of its last trial.
    LastVm,
    /// In a fresh VM, made the cheapest way there is.
    CheapestVm,
    /// In a new interpreter.
    NewInterpreter,
    /// In a new interpreter with another hash seed.
    OtherSeed,
}

/// The tear-down of fixtures that others set up failed after this test. Only their order can show
/// that again: if it does, something is broken; if not, we do not know.
fn shared_tear_down(seen: Seen<'_>, stage: Stage) -> Step {
    let last = seen.last();
    match stage {
        Stage::SuiteRunning => Step::Wait,
        Stage::SuiteEnded { .. } if last.rung == Rung::Suite => {
            Step::Rerun(Rung::Replay, Place::CheapestVm)
        }
        Stage::SuiteEnded { .. } if last.outcome.is_failure() => Step::Conclude(Verdict::Broken),
        Stage::SuiteEnded { .. } => Step::Conclude(Verdict::Unclear(Doubt::SharedTearDown)),
    }
}

/// So often a test must fail in fresh VMs before it is called brittle after a same-VM pass.
const LOOKS: u32 = 3;

/// The test passed in its own VM after its own failure. Is that its own doing?
fn look(rungs: Rungs, seen: Seen<'_>, passed_on: Rung) -> Step {
    if seen.has_pass(Rung::Look) {
        return pass_in_both(passed_on);
    }
    if let Some(step) = after_itself(seen, Rung::Look) {
        return step;
    }
    let looks = seen.count(Rung::Look);
    let wanted = rungs.fresh.max(LOOKS);
    if looks < wanted {
        Step::Rerun(Rung::Look, fresh_place(looks, wanted))
    } else if seen.all_fail(Rung::Look) {
        unless_disturbed(seen, needs_itself(seen))
    } else {
        Step::Conclude(Verdict::Unclear(Doubt::NotRunAgain))
    }
}

/// The test never passed in its own VM. Does it in a fresh one?
fn fresh(rungs: Rungs, seen: Seen<'_>) -> Step {
    if seen.has_sure_pass() {
        return Step::Conclude(Verdict::Flaky(Flakiness::Unplaced));
    }
    if let Some(doubt) = seen.doubtful_pass() {
        return if seen.count(Rung::Confirm) < rungs.fresh.max(1) {
            Step::Rerun(Rung::Confirm, Place::NewInterpreter)
        } else {
            Step::Conclude(Verdict::Unclear(doubt))
        };
    }
    let done = seen.count(Rung::Fresh);
    // That it needs its own earlier run takes as many looks as after a pass in its own VM.
    let mut after = seen.after_itself().into_iter();
    let is_brittle = after.any(|trial| trial.outcome.is_pass());
    if done < rungs.fresh && !is_brittle {
        return Step::Rerun(Rung::Fresh, fresh_place(done, rungs.fresh));
    }
    if let Some(step) = after_itself(seen, Rung::Fresh) {
        return step;
    }
    if is_brittle && seen.after_itself().len() < LOOKS as usize && !seen.last().outcome.ends_vm() {
        return Step::Rerun(Rung::Fresh, Place::CheapestVm);
    }
    let mut reruns = seen.trials[1..].iter();
    if reruns.len() == 0 {
        Step::Conclude(Verdict::Unexamined(Reason::RerunsOff))
    } else if is_brittle {
        unless_disturbed(seen, needs_itself(seen))
    } else if reruns.all(|trial| {
        let is_aside = matches!(trial.rung, Rung::Replay | Rung::OtherSeed);
        trial.outcome.is_failure() || is_aside
    }) {
        match other_seeds::next(rungs, seen) {
            Some(step) => step,
            None => unless_disturbed(seen, Verdict::Broken),
        }
    } else {
        Step::Conclude(Verdict::Unclear(Doubt::NotRunAgain))
    }
}

/// A failure in a fresh VM is followed by another run there: does the test pass after itself?
fn after_itself(seen: Seen<'_>, rung: Rung) -> Option<Step> {
    let last = seen.last();
    let is_failed = last.rung == rung && last.outcome.is_failure() && !last.outcome.ends_vm();
    is_failed.then_some(Step::Rerun(Rung::AfterItself, Place::LastVm))
}

/// The test passed in its own VM and in a fresh one. One pass does not tell why it failed.
fn pass_in_both(passed_on: Rung) -> Step {
    let is_at_once = matches!(passed_on, Rung::Immediate | Rung::OwnRerun);
    Step::Conclude(Verdict::Flaky(if is_at_once {
        Flakiness::NonBursty
    } else {
        Flakiness::Unplaced
    }))
}

/// A test that failed in every fresh VM and passed after itself: brittle, unless chance can have done that.
fn needs_itself(seen: Seen<'_>) -> Verdict {
    let tally = |rungs: &[Rung]| {
        let trials = seen
            .trials
            .iter()
            .filter(|trial| rungs.contains(&trial.rung));
        Tally::of_failures(trials.map(|trial| &trial.outcome))
    };
    let fresh = tally(&[Rung::Fresh, Rung::Look]);
    let after = Tally::of_failures(seen.after_itself().iter().map(|trial| &trial.outcome));
    if fresh.misses == 0 && after.hits == 0 && chance_of(after, fresh) <= EXCLUDED {
        Verdict::Brittle
    } else if after.hits > 0 && after.misses > 0 {
        // After itself it passes and fails: its own run is not what it needs.
        Verdict::Flaky(Flakiness::Unplaced)
    } else {
        Verdict::Unclear(Doubt::Mixed)
    }
}

/// What has at most this probability by chance is told as something else.
pub(crate) const EXCLUDED: f64 = 0.05 + 1e-9;

/// Concludes that the code is at fault, unless our own reruns may be: a test that found shared
/// fixtures rebuilt gets the chance to pass in its own order, with nothing rerun before it.
fn unless_disturbed(seen: Seen<'_>, verdict: Verdict) -> Step {
    let is_suspected = seen.trials[0].fixtures == Fixtures::Rebuilt;
    let replays: Vec<&Trial> = seen.of(Rung::Replay).collect();
    let passes = |birth: Birth| {
        let mut replays = replays.iter();
        replays.any(|trial| trial.birth == birth && trial.outcome.is_pass())
    };
    if passes(Birth::Exec) {
        Step::Conclude(Verdict::Flaky(Flakiness::Unplaced))
    } else if is_suspected && replays.is_empty() {
        Step::Rerun(Rung::Replay, Place::CheapestVm)
    } else if is_suspected && passes(Birth::Fork) && replays.len() == 1 {
        Step::Rerun(Rung::Replay, Place::NewInterpreter)
    } else {
        Step::Conclude(verdict)
    }
}

/// The last of several fresh trials is a new interpreter, so that no verdict rests on forks alone:
/// a fork has imported every test file, and that alone can break a test.
fn fresh_place(done: u32, wanted: u32) -> Place {
    if done + 1 >= wanted {
        Place::NewInterpreter
    } else {
        Place::CheapestVm
    }
}

/// The questions that the ladder asks of the trials so far.
#[derive(Clone, Copy)]
struct Seen<'a> {
    trials: &'a [Trial],
}

impl<'a> Seen<'a> {
    fn of(self, rung: Rung) -> impl Iterator<Item = &'a Trial> {
        self.trials.iter().filter(move |trial| trial.rung == rung)
    }

    fn last(self) -> &'a Trial {
        self.trials
            .last()
            .expect("a suspect has at least the trial in which it failed")
    }

    fn count(self, rung: Rung) -> u32 {
        u32::try_from(self.of(rung).count()).expect("reruns are counted in u32")
    }

    fn fresh_count(self) -> u32 {
        self.count(Rung::Fresh)
    }

    fn has_pass(self, rung: Rung) -> bool {
        self.of(rung).any(|trial| trial.outcome.is_pass())
    }

    fn all_fail(self, rung: Rung) -> bool {
        self.of(rung).all(|trial| trial.outcome.is_failure())
    }

    /// The runs that found what the test's own earlier run had left, shared fixtures included: the last in each VM.
    fn after_itself(self) -> Vec<&'a Trial> {
        let mut last: Vec<&Trial> = Vec::new();
        for trial in self.of(Rung::AfterItself) {
            match last.last_mut() {
                Some(before) if before.vm == trial.vm => *before = trial,
                Some(_) | None => last.push(trial),
            }
        }
        last
    }

    fn same_vm_pass(self) -> Option<Rung> {
        [Rung::OwnRerun, Rung::Immediate, Rung::End]
            .into_iter()
            .find(|rung| self.has_pass(*rung))
    }

    fn fresh_passes(self) -> impl Iterator<Item = &'a Trial> {
        let fresh = self.of(Rung::Fresh).chain(self.of(Rung::Confirm));
        fresh.filter(|trial| trial.outcome.is_pass())
    }

    /// A pass in a new interpreter that nobody watched.
    fn has_sure_pass(self) -> bool {
        let mut passes = self.fresh_passes();
        passes.any(|trial| trial.birth == Birth::Exec && !trial.is_watched)
    }

    /// A pass in a fresh VM that a fork, or being watched, may have made.
    fn doubtful_pass(self) -> Option<Doubt> {
        let pass = self.fresh_passes().next()?;
        Some(if pass.birth == Birth::Fork {
            Doubt::OnlyInForks
        } else {
            Doubt::OnlyWatched
        })
    }

    fn vm_is_usable(self) -> bool {
        self.trials
            .iter()
            .filter(|trial| trial.rung.is_same_vm())
            .all(|trial| !trial.outcome.ends_vm())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::outcome::Outcome;
    use crate::test::TestId;
    use crate::trial::{Account, VmId};

    const ENDED: Stage = Stage::SuiteEnded {
        too_many_failures: false,
        suite_vm_alive: true,
    };

    fn died() -> Outcome {
        Outcome::VmDied {
            how: "killed by signal 11".into(),
        }
    }

    fn trial(rung: Rung, birth: Birth, outcome: Outcome) -> Trial {
        Trial {
            test: TestId::new("t"),
            rung,
            vm: VmId(0),
            birth,
            before: 1,
            is_watched: false,
            fixtures: Fixtures::AsInPlainRun,
            outcome,
            duration: Duration::ZERO,
            cost: Duration::ZERO,
            account: Account::default(),
        }
    }

    /// Climbs the ladder for a test whose every outcome is given by `outcome`, and returns the
    /// verdict with the rungs that were climbed.
    fn climb(
        rungs: Rungs,
        suite_vm_alive: bool,
        mut outcome: impl FnMut(Rung, Birth, usize) -> Outcome,
    ) -> (Verdict, Vec<(Rung, Birth)>) {
        let mut trials = vec![trial(
            Rung::Suite,
            Birth::Exec,
            outcome(Rung::Suite, Birth::Exec, 0),
        )];
        let mut stage = Stage::SuiteRunning;
        for _ in 0..100 {
            match next_step(rungs, &trials, stage) {
                Step::Wait => {
                    stage = Stage::SuiteEnded {
                        too_many_failures: false,
                        suite_vm_alive,
                    }
                }
                Step::Rerun(rung, place) => {
                    let birth = match place {
                        Place::CheapestVm => Birth::Fork,
                        Place::LastVm => trials.last().unwrap().birth,
                        Place::SuiteVm | Place::NewInterpreter | Place::OtherSeed => Birth::Exec,
                    };
                    let outcome = outcome(rung, birth, trials.len());
                    let vm = match place {
                        Place::SuiteVm => VmId(0),
                        Place::LastVm => trials.last().unwrap().vm,
                        Place::CheapestVm | Place::NewInterpreter | Place::OtherSeed => {
                            VmId(u32::try_from(trials.len()).unwrap())
                        }
                    };
                    trials.push(Trial {
                        vm,
                        ..trial(rung, birth, outcome)
                    });
                }
                Step::Conclude(verdict) => {
                    let climbed = trials.iter().map(|t| (t.rung, t.birth)).collect();
                    return (verdict, climbed);
                }
            }
        }
        panic!("the ladder has no end: {trials:?}");
    }

    fn count(climbed: &[(Rung, Birth)], wanted: Rung) -> usize {
        climbed.iter().filter(|(rung, _)| *rung == wanted).count()
    }

    fn passes_if(holds: bool) -> Outcome {
        if holds {
            Outcome::Passed
        } else {
            Outcome::Failed
        }
    }

    #[test]
    fn a_test_that_passes_at_once_and_alone_is_non_bursty() {
        let (verdict, climbed) = climb(Rungs::default(), true, |_, _, n| passes_if(n > 0));
        assert_eq!(verdict, Verdict::Flaky(Flakiness::NonBursty));
        let rungs: Vec<Rung> = climbed.iter().map(|(rung, _)| *rung).collect();
        assert_eq!(rungs, [Rung::Suite, Rung::Immediate, Rung::Look]);
    }

    #[test]
    fn one_pass_at_the_end_does_not_tell_why() {
        let (verdict, _) = climb(Rungs::default(), true, |rung, _, _| {
            passes_if(rung == Rung::End || rung == Rung::Look)
        });
        assert_eq!(verdict, Verdict::Flaky(Flakiness::Unplaced));
    }

    #[test]
    fn a_pass_in_a_fork_is_confirmed_in_an_interpreter() {
        let (verdict, climbed) = climb(Rungs::default(), true, |rung, _, _| {
            passes_if(!rung.is_same_vm())
        });
        assert_eq!(verdict, Verdict::Flaky(Flakiness::Unplaced));
        assert_eq!(
            climbed[3..],
            [(Rung::Fresh, Birth::Fork), (Rung::Confirm, Birth::Exec)]
        );
    }

    #[test]
    fn a_test_that_passes_only_after_itself_is_brittle() {
        let (verdict, climbed) = climb(Rungs::default(), true, |rung, _, _| {
            passes_if(rung == Rung::Immediate || rung == Rung::AfterItself)
        });
        assert_eq!(verdict, Verdict::Brittle);
        let looks: Vec<Birth> = climbed
            .iter()
            .filter_map(|(rung, birth)| (*rung == Rung::Look).then_some(*birth))
            .collect();
        assert_eq!(looks, [Birth::Fork, Birth::Fork, Birth::Exec]);
    }

    #[test]
    fn one_pass_in_a_fresh_vm_is_enough_against_brittle() {
        let (verdict, _) = climb(Rungs::default(), true, |rung, birth, _| {
            passes_if(rung == Rung::Immediate || (rung == Rung::Look && birth == Birth::Exec))
        });
        assert_eq!(verdict, Verdict::Flaky(Flakiness::NonBursty));
    }

    #[test]
    fn a_test_that_fails_each_time_is_broken_and_was_tried_in_a_new_interpreter() {
        let (verdict, climbed) = climb(Rungs::default(), true, |_, _, _| Outcome::Failed);
        assert_eq!(verdict, Verdict::Broken);
        assert_eq!(
            climbed[1..],
            [
                (Rung::Immediate, Birth::Exec),
                (Rung::End, Birth::Exec),
                (Rung::Fresh, Birth::Fork),
                (Rung::Fresh, Birth::Exec),
                (Rung::AfterItself, Birth::Exec),
            ]
        );
    }

    #[test]
    fn a_test_that_passes_with_other_hash_seeds_only_depends_on_them() {
        let rungs = Rungs {
            other_seeds: 3,
            ..Rungs::default()
        };
        let (verdict, _) = climb(rungs, true, |rung, _, _| passes_if(rung == Rung::OtherSeed));
        assert_eq!(verdict, Verdict::Flaky(Flakiness::HashSeed));
        let mut tried = 0;
        let (verdict, climbed) = climb(rungs, true, |rung, _, _| {
            tried += u32::from(rung == Rung::OtherSeed);
            passes_if(rung == Rung::OtherSeed && tried == 1)
        });
        assert_eq!(verdict, Verdict::Flaky(Flakiness::Unplaced));
        assert_eq!(count(&climbed, Rung::OtherSeed), 2);
        let mut is_over = false;
        let (verdict, _) = climb(rungs, true, |rung, _, _| {
            is_over |= rung == Rung::OtherSeed;
            passes_if(is_over)
        });
        assert_eq!(
            verdict,
            Verdict::Flaky(Flakiness::Unplaced),
            "an outage ended meanwhile"
        );
    }

    #[test]
    fn one_seed_after_the_other_is_tried_and_the_one_it_passes_with_again() {
        let rungs = Rungs::default().seeking_a_seed(u32::MAX);
        let mut tried = 0;
        let (verdict, climbed) = climb(rungs, true, |rung, _, _| {
            tried += u32::from(rung == Rung::OtherSeed);
            passes_if(rung == Rung::OtherSeed && tried > 4)
        });
        assert_eq!(verdict, Verdict::Flaky(Flakiness::HashSeed));
        assert_eq!(count(&climbed, Rung::OtherSeed), 4 + 3);
        let confirming = Rungs::default().confirming().seeking_a_seed(u32::MAX);
        let (verdict, _) = climb(confirming, false, |rung, _, _| {
            passes_if(rung == Rung::OtherSeed)
        });
        assert_eq!(verdict, Verdict::Flaky(Flakiness::HashSeed));
    }

    #[test]
    fn what_passes_with_no_seed_is_broken() {
        let rungs = Rungs::default().seeking_a_seed(u32::MAX);
        let (verdict, climbed) = climb(rungs, true, |_, _, _| Outcome::Failed);
        assert_eq!(verdict, Verdict::Broken);
        assert_eq!(count(&climbed, Rung::OtherSeed), rungs.other_seeds as usize);
        let (verdict, climbed) = climb(rungs, true, |rung, _, _| {
            if rung == Rung::OtherSeed {
                Outcome::NotRun
            } else {
                Outcome::Failed
            }
        });
        assert_eq!(
            verdict,
            Verdict::Broken,
            "another test stands under its name there"
        );
        assert_eq!(count(&climbed, Rung::OtherSeed), 1);
    }

    #[test]
    fn a_pass_that_only_forks_show_is_not_called_flaky() {
        let (verdict, climbed) = climb(Rungs::default(), true, |_, birth, _| {
            passes_if(birth == Birth::Fork)
        });
        assert_eq!(verdict, Verdict::Unclear(Doubt::OnlyInForks));
        let confirms = climbed.iter().filter(|(rung, _)| *rung == Rung::Confirm);
        assert_eq!(confirms.count(), 2);
    }

    #[test]
    fn a_skip_on_a_rerun_is_never_a_pass() {
        for rung_that_skips in [Rung::Immediate, Rung::End, Rung::Fresh] {
            let (verdict, _) = climb(Rungs::default(), true, |rung, _, _| {
                if rung == rung_that_skips {
                    Outcome::Skipped
                } else {
                    Outcome::Failed
                }
            });
            assert_eq!(verdict, Verdict::Unclear(Doubt::NotRunAgain));
        }
        let (verdict, _) = climb(Rungs::default(), true, |rung, _, _| match rung {
            Rung::Immediate => Outcome::Passed,
            Rung::Look => Outcome::Skipped,
            Rung::Suite
            | Rung::OwnRerun
            | Rung::End
            | Rung::Fresh
            | Rung::AfterItself
            | Rung::Confirm
            | Rung::Replay
            | Rung::OtherSeed
            | Rung::InOrder
            | Rung::Alone
            | Rung::Base
            | Rung::Report
            | Rung::Once(_)
            | Rung::Again(_) => Outcome::Failed,
        });
        assert_eq!(verdict, Verdict::Unclear(Doubt::NotRunAgain));
    }

    #[test]
    fn a_crashed_test_is_not_rerun_in_the_vm_that_died() {
        let (verdict, climbed) = climb(Rungs::default(), true, |rung, _, _| {
            if rung == Rung::Suite {
                died()
            } else {
                Outcome::Passed
            }
        });
        assert_eq!(verdict, Verdict::Flaky(Flakiness::Unplaced));
        assert!(
            climbed[1..].iter().all(|(rung, _)| !rung.is_same_vm()),
            "{climbed:?}"
        );
    }

    #[test]
    fn the_end_rung_is_left_out_when_another_test_killed_the_vm() {
        let (_, climbed) = climb(Rungs::default(), false, |_, _, _| Outcome::Failed);
        assert!(
            climbed.iter().all(|(rung, _)| *rung != Rung::End),
            "{climbed:?}"
        );
    }

    #[test]
    fn without_reruns_a_failure_is_unexamined() {
        let off = Rungs {
            immediate: 0,
            end: 0,
            fresh: 0,
            other_seeds: 0,
        };
        let (verdict, climbed) = climb(off, true, |_, _, _| Outcome::Failed);
        assert_eq!(verdict, Verdict::Unexamined(Reason::RerunsOff));
        assert_eq!(climbed.len(), 1);
    }

    #[test]
    fn too_many_failures_stop_all_reruns() {
        let flood = Stage::SuiteEnded {
            too_many_failures: true,
            suite_vm_alive: true,
        };
        let failed = trial(Rung::Suite, Birth::Exec, Outcome::Failed);
        let again = trial(Rung::Immediate, Birth::Exec, Outcome::Failed);
        let passed = trial(Rung::Immediate, Birth::Exec, Outcome::Passed);
        let torn_down = Trial {
            fixtures: Fixtures::EndedBadly,
            ..failed.clone()
        };
        for trials in [
            vec![failed.clone(), again],
            vec![failed, passed],
            vec![torn_down],
        ] {
            let step = next_step(Rungs::default(), &trials, flood);
            let unexamined = Verdict::Unexamined(Reason::TooManyFailures);
            assert_eq!(step, Step::Conclude(unexamined), "{trials:?}");
        }
    }

    /// The same trial with shared fixtures rebuilt.
    fn rebuilt(trial: Trial) -> Trial {
        let fixtures = Fixtures::Rebuilt;
        Trial { fixtures, ..trial }
    }

    #[test]
    fn a_test_that_sometimes_passes_after_itself_does_not_need_itself() {
        let mut after = 0;
        let (verdict, _) = climb(Rungs::default(), true, |rung, _, _| {
            after += u32::from(rung == Rung::AfterItself);
            passes_if(rung == Rung::AfterItself && after == 1)
        });
        assert_eq!(verdict, Verdict::Flaky(Flakiness::Unplaced));
    }

    #[test]
    fn a_test_that_our_own_reruns_disturbed_is_not_called_broken() {
        let fail = |rung, birth| trial(rung, birth, Outcome::Failed);
        let mut trials = vec![
            rebuilt(fail(Rung::Suite, Birth::Exec)),
            rebuilt(fail(Rung::Immediate, Birth::Exec)),
            fail(Rung::End, Birth::Exec),
            fail(Rung::Fresh, Birth::Fork),
            fail(Rung::Fresh, Birth::Exec),
            fail(Rung::AfterItself, Birth::Exec),
        ];
        let step = |trials: &[Trial]| next_step(Rungs::default(), trials, ENDED);
        assert_eq!(step(&trials), Step::Rerun(Rung::Replay, Place::CheapestVm));
        trials.push(fail(Rung::Replay, Birth::Fork));
        assert_eq!(step(&trials), Step::Conclude(Verdict::Broken));
        trials[6].outcome = Outcome::Passed;
        assert_eq!(
            step(&trials),
            Step::Rerun(Rung::Replay, Place::NewInterpreter)
        );
        trials.push(trial(Rung::Replay, Birth::Exec, Outcome::Passed));
        let flaky = Verdict::Flaky(Flakiness::Unplaced);
        assert_eq!(step(&trials), Step::Conclude(flaky));
        trials[7].outcome = Outcome::Failed;
        assert_eq!(step(&trials), Step::Conclude(Verdict::Broken));
    }

    #[test]
    fn a_pass_that_was_watched_is_confirmed_by_one_that_was_not() {
        let watched = Trial {
            is_watched: true,
            ..trial(Rung::Fresh, Birth::Exec, Outcome::Passed)
        };
        let failed = trial(Rung::Suite, Birth::Exec, Outcome::Failed);
        let mut trials = vec![failed.clone(), watched];
        let rungs = Rungs {
            immediate: 0,
            end: 0,
            fresh: 1,
            other_seeds: 0,
        };
        let step = |trials: &[Trial]| next_step(rungs, trials, ENDED);
        let confirm = Step::Rerun(Rung::Confirm, Place::NewInterpreter);
        assert_eq!(step(&trials), confirm);
        trials.push(trial(Rung::Confirm, Birth::Exec, Outcome::Failed));
        let unclear = Verdict::Unclear(Doubt::OnlyWatched);
        assert_eq!(step(&trials), Step::Conclude(unclear));
        trials[2].outcome = Outcome::Passed;
        let flaky = Verdict::Flaky(Flakiness::Unplaced);
        assert_eq!(step(&trials), Step::Conclude(flaky));
    }

    #[test]
    fn a_test_that_fails_everywhere_but_after_itself_is_brittle() {
        let (verdict, _) = climb(Rungs::default(), true, |rung, _, _| {
            passes_if(rung == Rung::AfterItself)
        });
        assert_eq!(verdict, Verdict::Brittle);
    }

    #[test]
    fn a_shared_tear_down_that_fails_is_never_called_flaky() {
        let fixtures = Fixtures::EndedBadly;
        let first = trial(Rung::Suite, Birth::Exec, Outcome::Errored);
        let mut trials = vec![Trial { fixtures, ..first }];
        let step = |trials: &[Trial], stage| next_step(Rungs::default(), trials, stage);
        assert_eq!(step(&trials, Stage::SuiteRunning), Step::Wait);
        assert_eq!(
            step(&trials, ENDED),
            Step::Rerun(Rung::Replay, Place::CheapestVm)
        );
        trials.push(trial(Rung::Replay, Birth::Fork, Outcome::Errored));
        assert_eq!(step(&trials, ENDED), Step::Conclude(Verdict::Broken));
        trials[1].outcome = Outcome::Passed;
        let unclear = Verdict::Unclear(Doubt::SharedTearDown);
        assert_eq!(step(&trials, ENDED), Step::Conclude(unclear));
    }

    #[test]
    fn a_fresh_vm_that_cannot_run_the_test_shows_nothing() {
        let (verdict, climbed) = climb(Rungs::default(), true, |rung, _, _| {
            if rung.is_same_vm() {
                Outcome::Failed
            } else {
                Outcome::NotRun
            }
        });
        assert_eq!(verdict, Verdict::Unclear(Doubt::NotRunAgain));
        let rungs: Vec<Rung> = climbed.iter().map(|(rung, _)| *rung).collect();
        assert!(!rungs.contains(&Rung::AfterItself), "there is no VM for it");
    }

    #[test]
    fn a_step_in_the_suites_vm_is_never_asked_for_after_a_fresh_one() {
        let trials = [
            trial(Rung::Suite, Birth::Exec, Outcome::Failed),
            trial(Rung::Fresh, Birth::Fork, Outcome::Failed),
        ];
        assert!(matches!(
            next_step(Rungs::default(), &trials, ENDED),
            Step::Rerun(Rung::Fresh, _)
        ));
    }

    proptest::proptest! {
        /// What we plant is what we find: whatever the settings, a failure is called flaky only if
        /// some rerun passed, and broken only if every rerun failed; and the ladder has an end.
        #[test]
        fn a_verdict_never_says_more_than_the_trials(
            immediate in 0u32..4, end in 0u32..4, fresh in 0u32..4, alive: bool,
            script in proptest::collection::vec(0u8..6, 40),
        ) {
            let mut outcomes = Vec::new();
            let (verdict, climbed) = climb(Rungs { immediate, end, fresh, other_seeds: 0 }, alive, |rung, _, n| {
                let outcome = match script[n % script.len()] {
                    _ if rung == Rung::Suite => Outcome::Failed,
                    0 | 1 => Outcome::Passed,
                    2 => Outcome::Skipped,
                    3 => died(),
                    4 => Outcome::NotRun,
                    _ => Outcome::Failed,
                };
                outcomes.push(outcome.clone());
                outcome
            });
            let reruns = &outcomes[1..];
            let fresh_passed = climbed.iter().zip(&outcomes).any(|((rung, _), outcome)| {
                !rung.is_same_vm() && outcome.is_pass()
            });
            match verdict {
                Verdict::Brittle => assert!(!fresh_passed && reruns.iter().any(Outcome::is_pass)),
                Verdict::Broken => {
                    assert!(!reruns.is_empty() && reruns.iter().all(Outcome::is_failure));
                }
                Verdict::Flaky(_) => {
                    let after = climbed.iter().zip(&outcomes);
                    let after = after.filter(|((rung, _), _)| *rung == Rung::AfterItself);
                    let after = Tally::of_failures(after.map(|(_, outcome)| outcome));
                    assert!(fresh_passed || after.hits > 0 && after.misses > 0);
                }
                Verdict::Unclear(Doubt::OnlyInForks | Doubt::OnlyWatched) => {
                    assert!(fresh_passed);
                }
                Verdict::Unclear(Doubt::NotRunAgain | Doubt::Mixed) => assert!(!fresh_passed),
                Verdict::Nio(_)
                | Verdict::NioAfterOthers
                | Verdict::Victim
                | Verdict::NonDeterministic
                | Verdict::Unclear(Doubt::SharedTearDown | Doubt::OldReport | Doubt::OtherMachine) => {
                    panic!("nothing of that was planted")
                }
                Verdict::Unexamined(_) => assert!(reruns.is_empty()),
            }
        }
    }
}
