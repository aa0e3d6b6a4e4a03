//! Which tests depend on order: each test alone, and the suite in several orders.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use unflake_core::event::Stage;
use unflake_core::order::orders::{neighbour_rows, neighbours, order};
use unflake_core::order::trunk::find_trunk;
use unflake_core::test::TestId;

use crate::ordering::{Ordering, Search};
use crate::session::{Halt, Session};

/// In so many orders the suite is run in any case.
const ROUNDS: usize = 10;
/// So many seconds may go into more orders.
const QUICK: f64 = 15.0;
/// So many more orders at most, and so many of them shuffled.
const MOST_ROUNDS: usize = 400;
const SHUFFLED: usize = 40;
/// A test that the user names runs after each so many of the others, unless it takes longer than so many
/// seconds. A copy of a VM takes as long as ten quick tests.
const EVERY: usize = 40;
const SLOW: f64 = 0.2;

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
        self.run_alone(search, &alone)?;
        let began = Instant::now();
        let rounds = wish.rounds.unwrap_or(ROUNDS);
        let orders = (0..rounds).map(|number| order(&self.tests, wish.seed, number).1);
        let orders: Vec<Vec<TestId>> = orders.collect();
        self.run_orders(search, &orders, &Stage::Orders)?;
        if wish.rounds.is_none() {
            let each = began.elapsed().as_secs_f64() / count(orders.len());
            self.detect_neighbours(search, wish, each)?;
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
    fn detect_neighbours(
        &mut self,
        search: &mut Search,
        wish: &Ordering,
        each: f64,
    ) -> Result<(), Halt> {
        let time = wish
            .budget
            .map_or(QUICK, |budget| budget.as_secs_f64() / 3.0);
        // So many as there is time for.
        let affordable = (1..=MOST_ROUNDS)
            .take_while(|rounds| count(*rounds) * each <= time)
            .count();
        let rows = neighbour_rows(self.tests.len());
        let is_whole = rows <= affordable;
        let next_to = (0..rows.min(affordable)).map(|row| neighbours(&self.tests, wish.seed, row));
        let shuffled = if is_whole {
            (affordable - rows).min(SHUFFLED)
        } else {
            0
        };
        // From the first number on, every fourth order is a shuffle of all.
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
        self.run_alone(search, &alone)?;
        for test in named {
            self.detect_along(search, test)?;
            if !search.along.contains(test) {
                self.detect_plainly(search, test, wish)?;
            }
        }
        Ok(())
    }

    /// Runs a test after more and more of the others, all in one run that it leaves in copies.
    fn detect_along(&mut self, search: &mut Search, test: &TestId) -> Result<(), Halt> {
        let others = self.others(test);
        let own = search.book.seconds().get(test).copied().unwrap_or(0.0);
        let probes = if own > SLOW { 0 } else { others.len() / EVERY };
        let place = self.places.get(test).copied().unwrap_or(0);
        let cuts = (1..=probes).map(|at| others.len() * at / probes);
        let cuts: BTreeSet<usize> = cuts.chain([place]).filter(|cut| *cut > 0).collect();
        let orders = cuts.iter();
        let orders = orders.map(|cut| [&others[..*cut], std::slice::from_ref(test)].concat());
        let mut open: Vec<Vec<TestId>> = orders.collect();
        // Once more if an earlier search has run some of them: then those are only recalled.
        while let Some(trunk) = find_trunk(&open)
            && !search.is_over()
            && !search.unshared.contains(test)
        {
            let done = self.run_shared(search, &open, &trunk)?;
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

    /// Runs tests alone; what that takes beside them is what a copy of a VM costs.
    fn run_alone(&mut self, search: &mut Search, alone: &[Vec<TestId>]) -> Result<(), Halt> {
        let began = Instant::now();
        let trials = self.run_orders(search, alone, &Stage::Alone)?;
        let tests: Duration = trials.iter().flatten().map(|trial| trial.duration).sum();
        let copies = began.elapsed().saturating_sub(tests).as_secs_f64();
        search.fork = copies / count(trials.len().max(1));
        Ok(())
    }
}

pub(crate) fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
