//! The search for tests that depend on order, and for the tests that they depend on.
//!
//! Orders are run in copies of a VM that has only collected. What the outcomes mean, and which order is
//! to be run next, is decided in `unflake_core::order`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use unflake_core::event::{Ending, Event, Note, Stage};
use unflake_core::nio::Setting;
use unflake_core::order::Dependence;
use unflake_core::order::answers::Answers;
use unflake_core::order::work::Work;
use unflake_core::test::TestId;
use unflake_core::trial::{Rung, Trial};

use crate::framework::pytest::interpreter::packages_changed;
use crate::lab::lane::{Lane, Manner};
use crate::lab::run_error::RunError;
use crate::lab::session::{Halt, Session};
use crate::order::journal::Journal;
use crate::order::outcomes::Book;
use crate::order::suspects::MOST_PATIENCE;

/// The settings of a search.
#[derive(Clone, Debug)]
pub struct Ordering {
    /// The tests to look into; all, if there are none.
    pub tests: Vec<String>,
    /// Fixes the orders.
    pub seed: u64,
    /// The number of orders in which the suite runs; with `None` there are more while that is quick.
    pub rounds: Option<usize>,
    /// The time after which the search stops with what is known by then.
    pub budget: Option<Duration>,
    /// Whether to look for state that is left changed without a failure.
    pub latent: bool,
    /// The folder for the journal of a search that is cut off; `None` keeps nothing.
    pub journals: Option<Utf8PathBuf>,
}

impl Default for Ordering {
    fn default() -> Self {
        Self {
            tests: Vec::new(),
            seed: 1,
            rounds: None,
            budget: None,
            latent: false,
            journals: None,
        }
    }
}

/// The number of tests that run before the time is looked at.
const CHUNK: usize = 100;
/// The most culprit sets that are tried on all other tests.
const MOST_SETS: usize = 40;

/// A search on its way.
pub(crate) struct Search {
    pub(crate) lanes: Vec<Lane>,
    /// The outcomes of all tests in all orders so far.
    pub(crate) book: Book,
    /// The answers about the tests that are examined.
    pub(crate) answers: HashMap<TestId, Answers>,
    /// The findings, by test.
    pub(crate) found: BTreeMap<TestId, Found>,
    pub(crate) deadline: Option<Instant>,
    /// The number of orders in which the suite ran.
    pub(crate) orders: usize,
    pub(crate) journal: Option<Journal>,
    /// The most work for runs of one test after each of the others.
    pub(crate) patience: Work,
    /// The tests that ended in different ways in copies that left one run.
    pub(crate) along: BTreeSet<TestId>,
    /// The tests for which no such runs are made any more.
    pub(crate) unshared: BTreeSet<TestId>,
}

pub(crate) struct Found {
    pub(crate) dependence: Dependence,
    /// A run of each kind that shows it.
    pub(crate) trials: Vec<Trial>,
}

impl Search {
    pub(crate) fn is_over(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The sets of culprits that are known so far, those that were named first.
    pub(crate) fn sets(&self) -> Vec<Vec<TestId>> {
        let mut sets: Vec<Vec<TestId>> = Vec::new();
        let tested = self
            .found
            .values()
            .filter(|found| !found.dependence.by_import);
        for found in tested {
            for culprit in &found.dependence.diagnosis.culprits {
                if !sets.contains(&culprit.tests) {
                    sets.push(culprit.tests.clone());
                }
            }
        }
        sets.truncate(MOST_SETS);
        sets
    }
}

impl Session {
    /// Looks for tests that depend on order, and for those that they depend on.
    pub fn order(mut self, wish: &Ordering) -> Result<(), RunError> {
        let ending = self.order_tests(wish);
        self.close(ending)
    }

    fn order_tests(&mut self, wish: &Ordering) -> Result<Ending, Halt> {
        let began = Instant::now();
        self.move_in();
        let first = self.open_lane()?;
        let named = self.named(&wish.tests)?;
        self.announce(self.tests.clone());
        if self.listed().blocked || self.tests.is_empty() {
            self.finish(first.vm)?;
            return Ok(Ending::Completed);
        }
        self.learn_chance()?;
        let mut lanes = vec![first];
        while lanes.len() < self.wish.jobs.unwrap_or(1) {
            lanes.push(self.open_another_lane(self.worker(lanes.len()))?);
        }
        let mut search = Search {
            lanes,
            book: Book::default(),
            answers: HashMap::new(),
            found: BTreeMap::new(),
            deadline: wish.budget.map(|budget| began + budget),
            orders: 0,
            journal: self.open_journal(wish),
            patience: MOST_PATIENCE,
            along: BTreeSet::new(),
            unshared: BTreeSet::new(),
        };
        if named.is_empty() {
            self.detect_orders(&mut search, wish)?;
        } else {
            self.detect_named(&mut search, &named, wish)?;
        }
        self.tell(Event::Detected {
            suspects: search.book.suspects(&self.tests).len(),
            orders: search.orders,
            elapsed: began.elapsed(),
        });
        self.look_into(&mut search, &named, wish)?;
        if wish.latent {
            self.find_latent(&search)?;
        }
        let taken = search.journal.as_ref().map_or(0, |journal| journal.taken);
        if taken > 0 {
            self.note(Note::Resumed { orders: taken });
        }
        let is_over = search.is_over();
        if is_over {
            self.note(Note::BudgetSpent);
        }
        let journal = search.journal.take().filter(|_| !is_over);
        let is_whole = !named.is_empty() || search.book.has_all(&self.tests);
        let lanes = std::mem::take(&mut search.lanes);
        self.leave_lanes(lanes)?;
        self.conclude(search, &named)?;
        // Not before: showing can be interrupted too.
        if let Some(journal) = journal {
            journal.remove();
        }
        Ok(if is_over && !is_whole {
            Ending::OutOfTime
        } else {
            Ending::Completed
        })
    }

    /// The tests that these names mean.
    fn named(&self, names: &[String]) -> Result<Vec<TestId>, Halt> {
        let mut found = Vec::new();
        for name in names {
            let own = self.tests.iter().filter(|test| test.id.name() == name);
            let own: Vec<TestId> = own.map(|test| test.id.clone()).collect();
            if own.is_empty() {
                let name = name.clone();
                return Err(Halt::Error(RunError::NoSuchTest { name }));
            }
            found.extend(own);
        }
        Ok(found)
    }

    /// All tests but one, in the suite's order.
    pub(crate) fn others(&self, test: &TestId) -> Vec<TestId> {
        let others = self.tests.iter().filter(|other| other.id != *test);
        others.map(|other| other.id.clone()).collect()
    }

    /// Runs orders while there is time, and books what came of them.
    pub(crate) fn run_orders(
        &mut self,
        search: &mut Search,
        orders: &[Vec<TestId>],
        stage: &Stage,
    ) -> Result<Vec<Vec<Trial>>, Halt> {
        let setting = match stage {
            Stage::Alone => Setting::Alone,
            Stage::Orders
            | Stage::Setters(_)
            | Stage::Culprits(_)
            | Stage::Others(_)
            | Stage::Leftovers
            | Stage::Showing(_) => Setting::Ordered,
        };
        let mut all: Vec<Vec<Trial>> = Vec::new();
        while all.len() < orders.len() && !search.is_over() {
            let rest = &orders[all.len()..];
            let chunk = &rest[..chunk_size(rest, search.lanes.len())];
            for trials in self.run_or_recall(search, chunk, setting)? {
                search.book.note(&trials);
                search.orders += usize::from(*stage == Stage::Orders);
                all.push(trials);
            }
            self.tell(Event::Searching {
                stage: stage.clone(),
                done: all.len(),
                total: orders.len(),
            });
        }
        Ok(all)
    }

    /// Runs orders that no earlier search has run.
    fn run_or_recall(
        &mut self,
        search: &mut Search,
        orders: &[Vec<TestId>],
        setting: Setting,
    ) -> Result<Vec<Vec<Trial>>, Halt> {
        let rung = Rung::Once(setting);
        let Search { lanes, journal, .. } = search;
        let mut done: Vec<Option<Vec<Trial>>> = orders
            .iter()
            .map(|order| journal.as_mut()?.recall(order, rung))
            .collect();
        let open = orders.iter().zip(&done).filter(|(_, done)| done.is_none());
        let open: Vec<Vec<TestId>> = open.map(|(order, _)| order.clone()).collect();
        let mut made = self
            .run_each(lanes, &open, Manner::once(setting))?
            .into_iter();
        for (order, slot) in orders.iter().zip(&mut done) {
            if let Some(trials) = slot {
                if setting == Setting::Alone {
                    for trial in trials.iter() {
                        self.tell(Event::TrialEnded(trial.clone()));
                    }
                }
                continue;
            }
            let trials = made.next().unwrap_or_default();
            if let Some(journal) = journal {
                journal.note(order, &trials);
            }
            *slot = Some(trials);
        }
        Ok(done.into_iter().flatten().collect())
    }

    /// The journal of this very search: of these files, this interpreter and these arguments.
    fn open_journal(&self, wish: &Ordering) -> Option<Journal> {
        let folder = wish.journals.as_ref()?;
        let project = &self.home.project;
        let subject = (
            self.fingerprint()?,
            project.subject(),
            project.python().map(packages_changed),
            (wish.seed, wish.rounds, &wish.tests),
        );
        Some(Journal::open(folder, &self.tests, subject))
    }
}

/// The number of these orders that run before the time is looked at and the journal is written: with several lanes it
/// is large enough that none waits for long.
fn chunk_size(orders: &[Vec<TestId>], lanes: usize) -> usize {
    if lanes == 1 {
        return 1;
    }
    let mut tests = 0;
    let long_enough = orders.iter().position(|order| {
        tests += order.len();
        tests >= CHUNK
    });
    let size = long_enough.map_or(orders.len(), |last| last + 1);
    size.max(lanes).min(orders.len())
}
