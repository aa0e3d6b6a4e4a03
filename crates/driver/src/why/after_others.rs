//! The outcome of a test after the tests that stand before it, when it always ends the same way alone.
//!
//! A test that ends otherwise there depends on their order. `unflake order` finds out on which of them.

use std::fs;

use unflake_core::sequential::Tally;
use unflake_core::test::TestId;
use unflake_core::why::ledger::Side;

use crate::files::workspace::Workspace;
use crate::lab::session::{Halt, Session};
use crate::why::gather::Bench;
use crate::why::inquiry::{Inquiry, Probe};

/// The most tests that run before it, of those that stand before it: the nearest.
const MOST_TESTS: usize = 200;
/// The number of runs that show that it is not chance, and give traces to compare.
const RUNS: u32 = 4;

/// The outcomes of a test after others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// The number of tests that ran before it.
    pub tests: usize,
    /// The number of runs that failed (hits) and passed.
    pub tally: Tally,
}

impl Beside {
    /// Whether it always ended in the other way than alone.
    pub fn differs(self, alone: Tally) -> bool {
        let is_steady = self.tally.is_steady() && alone.is_steady();
        let runs = self.tally.runs() >= RUNS && alone.runs() > 0;
        is_steady && runs && (self.tally.hits > 0) != (alone.hits > 0)
    }
}

impl Session {
    /// Runs a test after those that stand before it, if it always ends the same way alone. Traces of runs
    /// that end in the other way go to the bench.
    pub(crate) fn look_beside(
        &mut self,
        test: &TestId,
        inquiry: &Inquiry,
        bench: &mut Bench,
        workspace: &mut Option<Workspace>,
    ) -> Result<Option<Beside>, Halt> {
        let alone = bench.traced;
        let before = self.tests.iter().map(|test| test.id.clone());
        let before: Vec<TestId> = before.take_while(|other| other != test).collect();
        if before.is_empty() || !alone.is_steady() || alone.runs() == 0 {
            return Ok(None);
        }
        let nearest = before.len().saturating_sub(MOST_TESTS);
        let mut order = before[nearest..].to_vec();
        order.push(test.clone());
        let usual = if alone.hits > 0 {
            Side::Failing
        } else {
            Side::Passing
        };
        let mut tally = Tally::default();
        let mut odd = Vec::new();
        for number in 1..=RUNS {
            let (trial, file) = self.run_varied(&order, workspace, number, Probe::Traced)?;
            tally.hits += u32::from(trial.outcome.is_failure());
            tally.misses += u32::from(trial.outcome.is_pass());
            let is_odd = match usual {
                Side::Passing => trial.outcome.is_failure(),
                Side::Failing => trial.outcome.is_pass(),
            };
            if !is_odd {
                break;
            }
            let trace = file.with_file_name(format!("traces/after-{number}.trace"));
            // A VM that ended before the test began has written none.
            let is_there = fs::rename(&file, &trace).is_ok();
            odd.push((trial, is_there.then_some(trace)));
        }
        let beside = Beside {
            tests: order.len() - 1,
            tally,
        };
        if beside.differs(alone) {
            for (trial, trace) in odd {
                bench.take(&trial, trace, inquiry.keep.as_deref())?;
            }
        }
        bench.traced = alone;
        Ok(Some(beside))
    }
}
