//! The tests whose leftovers make a suspect fail, and what they leave, found in the copies in which it was compared.

use std::time::Instant;

use unflake_core::blame::polluters::Search;
use unflake_core::blame::question::{Ended, Side as Where};
use unflake_core::test::TestId;

use super::sides::Sides;
use crate::lab::session::{Halt, Session};

impl Session {
    /// A smallest set of tests after which a suspect still fails in the same way; none if there was no time for it. Of
    /// the first suspect with these polluters it is also found out which of their leftovers matters.
    pub(super) fn find_polluters(
        &mut self,
        at: usize,
        sides: &mut Sides,
        deadline: Option<Instant>,
    ) -> Result<Vec<TestId>, Halt> {
        let test = self.suspects[at].test.clone();
        let mut search = Search::among(self.before_here(at), &sides.polluters);
        while let Some(mut order) = search.next() {
            let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let Some(side) = sides.get_mut(self.seat(Where::Here)) else {
                return Ok(Vec::new());
            };
            if is_over {
                return Ok(Vec::new());
            }
            order.push(test.clone());
            let run = side.run(&order)?;
            let made = run.and_then(|run| run.last_of(&order));
            let ended = made.map(|made| self.ended(at, false, &made.trial));
            search.hear(ended == Ok(Ended::Alike));
        }
        let found = search.found().unwrap_or_default().to_vec();
        if !found.is_empty() && !sides.polluters.contains(&found) {
            sides.polluters.push(found.clone());
            self.find_leftovers(at, &found, sides, deadline)?;
        }
        Ok(found)
    }

    /// Shows what of the state that the polluters leave makes a suspect fail, if there is time for it.
    fn find_leftovers(
        &mut self,
        at: usize,
        polluters: &[TestId],
        sides: &mut Sides,
        deadline: Option<Instant>,
    ) -> Result<(), Halt> {
        let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let side = sides.get_mut(self.seat(Where::Here));
        if let Some(side) = side.filter(|_| !is_over) {
            let cause = side.find_leftovers(polluters, &self.suspects[at].test)?;
            self.suspects[at].cause = cause.map(Box::new);
        }
        Ok(())
    }
}
