//! Runs that several suspects share: an order that is run for one of them goes on to those that come later in it.
//!
//! Each suspect has a run of its own order either way, made in turn with one on the other side. Only its later
//! neighbours in the same run are not started again from the beginning.

use std::collections::{HashMap, VecDeque};

use unflake_core::blame::question::Side as Where;
use unflake_core::test::TestId;

use super::side::{Made, Side};
use super::sides::Sides;
use crate::lab::session::{Halt, Session};

/// How much longer an order may become for others, in seconds, beside twice its own length.
const LEAST_DETOUR: f64 = 2.0;
/// For how many others an order is looked at.
const MOST_OTHERS: usize = 20;

/// Runs that were made along with those of other suspects, and the suspects that still wait.
#[derive(Default)]
pub(super) struct SharedRuns {
    waiting: VecDeque<usize>,
    made: HashMap<(usize, Where), VecDeque<Made>>,
}

impl SharedRuns {
    /// Begins with these suspects, in the order in which they are asked about.
    pub(super) fn begin(&mut self, waiting: impl Iterator<Item = usize>) {
        self.waiting = waiting.collect();
    }

    /// A suspect waits no longer.
    pub(super) fn leave(&mut self, at: usize) {
        self.waiting.retain(|one| *one != at);
    }
}

impl Session {
    /// The order in which a suspect is run on a side, with the suspect at its end; `None` if it is not there.
    pub(super) fn order_on(&self, at: usize, place: Where, side: &Side) -> Option<Vec<TestId>> {
        let test = match place {
            Where::Here | Where::HereWatched => {
                let test = &self.suspects[at].test;
                self.has_same_params(test, side).then(|| test.clone())?
            }
            Where::Base | Where::BaseWatched | Where::BaseInThisOrder => {
                self.name_at_base(at, side)?
            }
        };
        let own = match place {
            Where::Base | Where::BaseWatched => self.own_before(at, side, &test),
            Where::Here | Where::HereWatched | Where::BaseInThisOrder => None,
        };
        let before = own.unwrap_or_else(|| self.shared_before(at, side));
        Some(before.into_iter().chain([test]).collect())
    }

    /// Runs a suspect in its order on a side that is open, or takes such a run that was made before.
    pub(super) fn run_in_order(
        &mut self,
        at: usize,
        place: Where,
        sides: &mut Sides,
    ) -> Result<Result<Made, String>, Halt> {
        let made = sides.shared.made.get_mut(&(at, place));
        if let Some(made) = made.and_then(VecDeque::pop_front) {
            return Ok(Ok(made));
        }
        let seat = self.seat(place);
        let is_cut = seat.is_watched && !seat.is_base;
        let waiting = sides.shared.waiting.clone();
        let side = sides
            .get_mut(seat)
            .expect("whoever runs something there has opened it");
        let Some(order) = self.order_on(at, place, side) else {
            return Ok(Err("it is not there".to_owned()));
        };
        // Where what was used cannot be told apart by tests, each suspect has runs of its own.
        let may_share = !is_cut || self.home.project.tells_tests_apart();
        let others: Vec<(usize, Vec<TestId>)> = waiting
            .into_iter()
            .filter(|other| may_share && *other != at && self.is_beside(at, *other))
            .take(MOST_OTHERS)
            .filter_map(|other| Some((other, self.order_on(other, place, side)?)))
            .collect();
        let most = self.longest_detour(&order);
        let longer = others.iter().map(|(_, other)| other);
        let longer = longer.filter(|other| other.len() <= most && other.starts_with(&order));
        let whole = longer.max_by_key(|other| other.len()).unwrap_or(&order);
        let run = match side.run(whole)? {
            Ok(run) => run,
            Err(why) => return Ok(Err(why)),
        };
        for (other, own) in &others {
            if whole.starts_with(own)
                && let Ok(made) = run.last_of(own)
            {
                let made_before = sides.shared.made.entry((*other, place)).or_default();
                made_before.push_back(made);
            }
        }
        Ok(run.last_of(&order))
    }

    /// Whether another suspect failed in the same VM as this one, and left it alive.
    fn is_beside(&self, at: usize, other: usize) -> bool {
        let firsts = [at, other].map(|one| self.suspects[one].trials.first());
        matches!(firsts, [Some(own), Some(other)] if own.vm == other.vm && !other.outcome.ends_vm())
    }

    /// How many tests an order may have at the most when it goes on to others.
    fn longest_detour(&self, order: &[TestId]) -> usize {
        let seconds = self.suite_elapsed.as_secs_f64();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of tests, rounded down"
        )]
        let detour = if seconds > 0.0 {
            (LEAST_DETOUR * self.tests.len() as f64 / seconds) as usize
        } else {
            0
        };
        (2 * order.len()).saturating_add(detour)
    }
}
