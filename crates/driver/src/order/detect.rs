//! The search for tests that depend on order: each test alone, and the suite in several orders.

use std::collections::BTreeSet;

use unflake_core::event::Stage;
use unflake_core::order::orders::{neighbour_rows, neighbours, order};
use unflake_core::order::trunk::find_trunk;
use unflake_core::order::work::Work;
use unflake_core::test::TestId;

use crate::lab::session::{Halt, Session};
use crate::lab::shared_prefix::Until;
use crate::order::search::{Ordering, Search};

/// The number of orders in which the suite runs if the user sets none; more follow if they are cheap.
const ROUNDS: usize = 10;
/// The work that may be spent on more orders, if the user sets no budget.
const QUICK: Work = Work(15_000);
/// The most additional orders, and the most of them that are shuffled.
const MOST_ROUNDS: usize = 400;
const SHUFFLED: usize = 40;
/// The step between the numbers of other tests before a test that the user names, about. There is only one number if
/// the test itself takes more work than `SLOW`.
const EVERY: usize = 40;
const SLOW: Work = Work(200);

impl Session {
    /// Runs each test alone, and the suite in several orders.
    pub(crate) fn detect_orders(
        &mut self,
        search: &mut Search,
        wish: &Ordering,
    ) -> Result<(), Halt> {
        let alone: Vec<Vec<TestId>> = self
            .tests
            .iter()
            .map(|test| vec![test.id.clone()])
            .collect();
        self.run_orders(search, &alone, &Stage::Alone)?;
        let rounds = wish.rounds.unwrap_or(ROUNDS);
        let orders = (0..rounds).map(|number| order(&self.tests, wish.seed, number).1);
        let orders: Vec<Vec<TestId>> = orders.collect();
        self.run_orders(search, &orders, &Stage::Orders)?;
        if wish.rounds.is_none() {
            self.detect_neighbours(search, wish)?;
        }
        // A test that has never passed may need one that is undone by the next in all these orders.
        for test in search.book.never_passed(&self.tests) {
            let singles = self
                .others(&test)
                .into_iter()
                .map(|other| vec![other, test.clone()]);
            let singles: Vec<Vec<TestId>> = singles.collect();
            self.run_orders(search, &singles, &Stage::Setters(test))?;
        }
        Ok(())
    }

    /// Lets each test run right after each other one, as far as there is time, and then by chance.
    fn detect_neighbours(&mut self, search: &mut Search, wish: &Ordering) -> Result<(), Halt> {
        let tests: Work = search.book.work().into_values().sum();
        let each = self.fresh_work() + tests;
        // A third of the user's time, if it is limited: what a unit stands for is a millisecond.
        let third = wish.budget.map(|budget| budget / 3);
        let third = third.map(|time| Work(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)));
        let affordable = third.unwrap_or(QUICK).holds(each).min(MOST_ROUNDS);
        let rows = neighbour_rows(self.tests.len());
        let is_whole = rows <= affordable;
        let next_to = (0..rows.min(affordable)).map(|row| neighbours(&self.tests, wish.seed, row));
        let shuffled = if is_whole {
            (affordable - rows).min(SHUFFLED)
        } else {
            0
        };
        // Every fourth order from this number on is a shuffle of all tests.
        let shuffled = (0..shuffled).map(|at| order(&self.tests, wish.seed, ROUNDS + 4 * at).1);
        let orders: Vec<Vec<TestId>> = next_to.chain(shuffled).collect();
        self.run_orders(search, &orders, &Stage::Orders)?;
        Ok(())
    }

    /// Runs tests alone, and after all others in several orders.
    pub(crate) fn detect_named(
        &mut self,
        search: &mut Search,
        named: &[TestId],
        wish: &Ordering,
    ) -> Result<(), Halt> {
        let alone: Vec<Vec<TestId>> = named.iter().map(|test| vec![test.clone()]).collect();
        self.run_orders(search, &alone, &Stage::Alone)?;
        for test in named {
            self.detect_along(search, test)?;
            if !search.along.contains(test) {
                self.detect_plainly(search, test, wish)?;
            }
        }
        Ok(())
    }

    /// Runs a test after more and more of the others, all in one run that it leaves in copies, until it ends
    /// otherwise than alone: that is enough to begin with.
    fn detect_along(&mut self, search: &mut Search, test: &TestId) -> Result<(), Halt> {
        let others = self.others(test);
        let own = search.book.work().get(test).copied().unwrap_or(Work(1));
        let probes = if own > SLOW { 0 } else { others.len() / EVERY };
        let place = self.places.get(test).copied().unwrap_or(0);
        let cuts = (1..=probes).map(|at| others.len() * at / probes);
        let cuts: BTreeSet<usize> = cuts.chain([place]).filter(|cut| *cut > 0).collect();
        let orders = cuts.iter();
        let orders = orders.map(|cut| [&others[..*cut], std::slice::from_ref(test)].concat());
        let mut open: Vec<Vec<TestId>> = orders.collect();
        let passes_alone = search.book.passes_alone(test);
        let until = Until::Other { passes_alone };
        // Once more if an earlier search has run some of them: then those are only recalled.
        while let Some(trunk) = find_trunk(&open)
            && !search.book.suspects(&self.tests).contains(test)
            && !search.is_over()
            && !search.unshared.contains(test)
        {
            let done = self.run_shared(search, &open, &trunk, until)?;
            search.orders += done.len();
            let done: BTreeSet<usize> = done.into_iter().map(|(order, _)| order).collect();
            let all = open.into_iter().enumerate();
            let rest = all.filter(|(order, _)| !done.contains(order));
            open = rest.map(|(_, tests)| tests).collect();
        }
        if search.book.suspects(&self.tests).contains(test) {
            search.along.insert(test.clone());
        }
        Ok(())
    }

    /// Runs a test after all others in several orders, each by itself, until it ends in two ways there.
    pub(crate) fn detect_plainly(
        &mut self,
        search: &mut Search,
        test: &TestId,
        wish: &Ordering,
    ) -> Result<(), Halt> {
        let place = self.places.get(test).copied().unwrap_or(0);
        let before = self.tests[..place].iter().map(|test| test.id.clone());
        let own: Vec<TestId> = before.chain([test.clone()]).collect();
        let others = (0..wish.rounds.unwrap_or(ROUNDS)).map(|number| {
            let (_, mut all) = order(&self.tests, wish.seed, number);
            all.retain(|other| other != test);
            all.push(test.clone());
            all
        });
        let others: Vec<Vec<TestId>> = others.collect();
        // A test in between may undo in all these orders what another did.
        let singles = self
            .others(test)
            .into_iter()
            .map(|other| vec![other, test.clone()]);
        let singles: Vec<Vec<TestId>> = singles.collect();
        // One order in which it ends otherwise than alone is enough to begin with.
        let batches = [
            (vec![own], Stage::Orders),
            (others, Stage::Orders),
            (singles, Stage::Setters(test.clone())),
        ];
        for (orders, stage) in batches {
            if !search.book.suspects(&self.tests).contains(test) {
                self.run_orders(search, &orders, &stage)?;
            }
        }
        Ok(())
    }

    /// The work of a fresh VM besides its tests.
    pub(crate) fn fresh_work(&self) -> Work {
        if self.wish.project.can_copy() {
            Work::COPY
        } else {
            Work::START
        }
    }
}
