//! The search for tests that depend on order, and for the tests that they depend on.
//!
//! Orders are run in copies of a VM that has only collected. What the outcomes mean, and which order is
//! to be run next, is decided in `unflake_core::order`.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use unflake_core::event::{Ending, Event, Note, Stage};
use unflake_core::nio::Setting;
use unflake_core::order::answers::Answers;
use unflake_core::order::orders::{neighbour_rows, neighbours, order};
use unflake_core::order::{Case, Dependence, Diagnosis, Role, Scope, Step, next_step};
use unflake_core::state::Cause;
use unflake_core::test::TestId;
use unflake_core::trial::{Rung, Trial};
use unflake_core::verdict::{Blame, Doubt, Reason, Verdict};

use crate::book::Book;
use crate::journal::Journal;
use crate::lane::Lane;
use crate::lanes::Manner;
use crate::run_error::RunError;
use crate::session::{Halt, Session, Suspect};

/// What is wanted of a search.
#[derive(Clone, Debug)]
pub struct Ordering {
    /// The tests to look into; all, if there are none.
    pub tests: Vec<String>,
    /// Fixes the orders.
    pub seed: u64,
    /// In how many orders the suite is run; `None` goes on while that is quick.
    pub rounds: Option<usize>,
    /// When to stop with what is known by then.
    pub budget: Option<Duration>,
    /// Where a search that was cut off is kept; `None` keeps nothing.
    pub journals: Option<Utf8PathBuf>,
}

impl Default for Ordering {
    fn default() -> Self {
        Self {
            tests: Vec::new(),
            seed: 1,
            rounds: None,
            budget: None,
            journals: None,
        }
    }
}

/// In so many orders the suite is run in any case.
const ROUNDS: usize = 10;
/// So many seconds may go into more orders.
const QUICK: f64 = 15.0;
/// So many more orders at most, and so many of them shuffled.
const MOST_ROUNDS: f64 = 400.0;
const SHUFFLED: usize = 40;
/// So many tests are run before the time is looked at.
const CHUNK: usize = 100;
/// So many sets of culprits are tried on all other tests.
const MOST_SETS: usize = 40;
/// So many leads are followed for one test.
const MOST_LEADS: usize = 3;

/// A search on its way.
struct Search {
    lanes: Vec<Lane>,
    /// What all tests did in all orders so far.
    book: Book,
    /// The answers about those that are looked into.
    answers: HashMap<TestId, Answers>,
    /// What was found, by test.
    found: BTreeMap<TestId, Found>,
    deadline: Option<Instant>,
    /// In how many orders the suite was run.
    orders: usize,
    journal: Option<Journal>,
    /// What a copy of a VM takes beside its tests, in seconds.
    fork: f64,
}

struct Found {
    dependence: Dependence,
    /// A run of each kind that shows it.
    trials: Vec<Trial>,
}

impl Search {
    fn is_over(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The sets of culprits that are known so far, those that were named first.
    fn sets(&self) -> Vec<Vec<TestId>> {
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
            fork: 0.0,
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
        self.look_into(&mut search, &named)?;
        let taken = search.journal.as_ref().map_or(0, |journal| journal.taken);
        if taken > 0 {
            self.note(Note::Resumed { orders: taken });
        }
        if search.is_over() {
            self.note(Note::BudgetSpent);
        } else if let Some(journal) = &search.journal {
            journal.remove();
        }
        let lanes = std::mem::take(&mut search.lanes);
        self.leave_lanes(lanes)?;
        self.conclude(search, &named)?;
        Ok(Ending::Completed)
    }

    /// The tests that these names mean.
    fn named(&self, names: &[String]) -> Result<Vec<TestId>, Halt> {
        let mut named = Vec::new();
        for name in names {
            let own = self.tests.iter().filter(|test| test.id.name() == name);
            let own: Vec<TestId> = own.map(|test| test.id.clone()).collect();
            if own.is_empty() {
                let name = name.clone();
                return Err(Halt::Error(RunError::NoSuchTest { name }));
            }
            named.extend(own);
        }
        Ok(named)
    }

    /// Runs each test alone, and the suite in several orders.
    fn detect_orders(&mut self, search: &mut Search, wish: &Ordering) -> Result<(), Halt> {
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
            let each = began.elapsed().as_secs_f64() / orders.len() as f64;
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
        let affordable = (time / each.max(1e-3)).min(MOST_ROUNDS) as usize;
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
    fn detect_named(
        &mut self,
        search: &mut Search,
        named: &[TestId],
        wish: &Ordering,
    ) -> Result<(), Halt> {
        let alone: Vec<Vec<TestId>> = named.iter().map(|test| vec![test.clone()]).collect();
        self.run_alone(search, &alone)?;
        for test in named {
            let place = self.places.get(test).copied().unwrap_or(0);
            let before = self.tests[..place].iter().map(|test| test.id.clone());
            let mut orders = vec![before.chain([test.clone()]).collect::<Vec<TestId>>()];
            for number in 0..wish.rounds.unwrap_or(ROUNDS) {
                let (_, mut all) = order(&self.tests, wish.seed, number);
                all.retain(|other| other != test);
                all.push(test.clone());
                orders.push(all);
            }
            self.run_orders(search, &orders, &Stage::Orders)?;
            // A test in between may undo in all these orders what another did.
            let singles = self
                .others(test)
                .into_iter()
                .map(|other| vec![other, test.clone()]);
            let singles: Vec<Vec<TestId>> = singles.collect();
            if !search.book.suspects(&self.tests).contains(test) {
                self.run_orders(search, &singles, &Stage::Setters(test.clone()))?;
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
        search.fork = copies / trials.len().max(1) as f64;
        Ok(())
    }

    /// All tests but one, in the suite's order.
    fn others(&self, test: &TestId) -> Vec<TestId> {
        let others = self.tests.iter().filter(|other| other.id != *test);
        others.map(|other| other.id.clone()).collect()
    }

    /// Runs orders while there is time, and books what came of them.
    fn run_orders(
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
                    trials
                        .iter()
                        .for_each(|trial| self.tell(Event::TrialEnded(trial.clone())));
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
            &project.folder,
            &project.python,
            &project.args,
            (wish.seed, wish.rounds, &wish.tests),
        );
        Some(Journal::open(folder, &self.tests, subject))
    }

    /// Looks into every test that ended in different ways, and then into those that the culprits of one
    /// may have as well, until there are no more.
    fn look_into(&mut self, search: &mut Search, named: &[TestId]) -> Result<(), Halt> {
        let mut tried: Vec<Vec<TestId>> = Vec::new();
        loop {
            let is_wanted = |test: &TestId| named.is_empty() || named.contains(test);
            let suspects = search.book.suspects(&self.tests).into_iter();
            let suspects = suspects.chain(search.book.never_passed(&self.tests));
            let open = suspects.filter(|test| is_wanted(test) && !search.found.contains_key(test));
            let open: Vec<TestId> = open.collect();
            for test in open {
                if search.is_over() {
                    return Ok(());
                }
                let mut found = self.diagnose(search, &test)?;
                if found.dependence.diagnosis.role == Role::Broken
                    && let Some((dependence, trials)) = self.find_imports(&test, false)?
                {
                    found = Found { dependence, trials };
                }
                search.found.insert(test, found);
            }
            let sets = search.sets();
            let Some(set) = sets.into_iter().find(|set| !tried.contains(set)) else {
                return Ok(());
            };
            if !named.is_empty() {
                return Ok(());
            }
            let others = self.tests.iter().filter(|test| !set.contains(&test.id));
            let others = others.filter(|test| !search.found.contains_key(&test.id));
            let orders = others.map(|test| [&set[..], &[test.id.clone()]].concat());
            let orders: Vec<Vec<TestId>> = orders.collect();
            self.run_orders(search, &orders, &Stage::Others(set.clone()))?;
            tried.push(set);
        }
    }

    /// Runs what the technique asks for until it concludes, or the time is over.
    fn diagnose(&mut self, search: &mut Search, test: &TestId) -> Result<Found, Halt> {
        let began = Instant::now();
        let others = self.others(test);
        let leads = search.book.leads(test, MOST_LEADS);
        let hints = search.sets().into_iter().filter(|set| !set.contains(test));
        let hints: Vec<Vec<TestId>> = hints.collect();
        let seconds = search.book.seconds();
        let fork = search.fork;
        let price = |order: &[TestId]| -> f64 {
            let one = |test: &TestId| seconds.get(test).copied().unwrap_or(0.0);
            fork + order.iter().chain([test]).map(one).sum::<f64>()
        };
        let case = Case {
            others: &others,
            leads: &leads,
            hints: &hints,
            width: search.lanes.len(),
            scope: Scope::All,
            price: &price,
        };
        let mut shown: Vec<Trial> = Vec::new();
        loop {
            let answers = search.answers.entry(test.clone()).or_default();
            match next_step(&case, answers) {
                Step::Conclude(diagnosis) => {
                    let dependence = Dependence {
                        diagnosis,
                        runs: answers.runs(),
                        spent: began.elapsed(),
                        is_cut: false,
                        by_import: false,
                    };
                    let trials = shown;
                    return Ok(Found { dependence, trials });
                }
                Step::Run(befores) => {
                    let orders = befores
                        .iter()
                        .map(|before| [&before[..], &[test.clone()]].concat());
                    let orders: Vec<Vec<TestId>> = orders.collect();
                    let done = self.run_orders(search, &orders, &Stage::Culprits(test.clone()))?;
                    let answers = search.answers.entry(test.clone()).or_default();
                    let is_whole = done.len() == orders.len();
                    for (before, trials) in befores.iter().zip(done) {
                        take_in(answers, test, before, trials, &mut shown);
                    }
                    if !is_whole {
                        let dependence = Dependence {
                            diagnosis: cut_short(&case, answers),
                            runs: answers.runs(),
                            spent: began.elapsed(),
                            is_cut: true,
                            by_import: false,
                        };
                        let trials = shown;
                        return Ok(Found { dependence, trials });
                    }
                }
            }
        }
    }

    /// Shows each dependence in new interpreters, and tells the verdicts.
    fn conclude(&mut self, search: Search, named: &[TestId]) -> Result<(), Halt> {
        let open = search.book.suspects(&self.tests).into_iter();
        let open = open.chain(search.book.never_passed(&self.tests));
        let is_wanted = |test: &TestId| named.is_empty() || named.contains(test);
        let open = open.filter(|test| is_wanted(test) && !search.found.contains_key(test));
        for test in open.collect::<Vec<TestId>>() {
            self.add_suspect(test, Vec::new(), None, None);
            let last = self.suspects.len() - 1;
            self.judge(last, Verdict::Unexamined(Reason::Cut), None);
        }
        for (test, found) in search.found {
            let Found {
                dependence,
                mut trials,
            } = found;
            let mut cause = None;
            let diagnosis = &dependence.diagnosis;
            let mut verdict = match diagnosis.role {
                Role::Victim => Verdict::Victim,
                Role::Brittle => Verdict::Brittle,
                Role::Random => Verdict::NonDeterministic,
                Role::Broken => Verdict::Broken(Blame::NotAsked),
                Role::Independent => continue,
            };
            if dependence.is_cut && diagnosis.culprits.is_empty() {
                verdict = Verdict::Unexamined(Reason::Cut);
            }
            self.tell(Event::Searching {
                stage: Stage::Showing(test.clone()),
                done: 0,
                total: 1,
            });
            if let Some(culprit) = diagnosis.culprits.first()
                && !dependence.by_import
            {
                let after = [&culprit.tests[..], &[test.clone()]].concat();
                let alone = self.run_in_new_interpreter(vec![test.clone()])?;
                let after = self.run_in_new_interpreter(after)?;
                let ends = |trials: &[Trial]| {
                    let own = trials.iter().rfind(|trial| trial.test == test);
                    own.map(|trial| trial.outcome.is_pass())
                };
                let is_victim = diagnosis.role == Role::Victim;
                let is_mixed = culprit.ends.passed > 0 && culprit.ends.failed > 0;
                let is_shown = ends(&alone) == Some(is_victim)
                    && (is_mixed || ends(&after) == Some(!is_victim));
                if is_shown {
                    let tests = culprit.tests.clone();
                    cause = self.find_cause(&tests, &test, is_victim)?;
                } else {
                    verdict = Verdict::Unclear(Doubt::OnlyInForks);
                }
                let own = alone
                    .into_iter()
                    .chain(after)
                    .filter(|trial| trial.test == test);
                trials = own.chain(trials).collect(); // Those with their whole text first.
            }
            let dependence = Some(Box::new(dependence));
            self.add_suspect(test, trials, dependence, cause.map(Box::new));
            self.judge(self.suspects.len() - 1, verdict, None);
        }
        Ok(())
    }

    fn add_suspect(
        &mut self,
        test: TestId,
        trials: Vec<Trial>,
        dependence: Option<Box<Dependence>>,
        cause: Option<Box<Cause>>,
    ) {
        self.suspects.push(Suspect {
            test,
            worker: None,
            trials,
            used: None,
            left_behind: Vec::new(),
            dependence,
            cause,
            is_judged: false,
        });
    }

    /// Runs tests once in a new interpreter, with all files as they were at the start.
    fn run_in_new_interpreter(&mut self, order: Vec<TestId>) -> Result<Vec<Trial>, Halt> {
        let mut lanes = [self.open_another_lane(None)?];
        let manner = Manner {
            is_apart: false,
            ..Manner::once(Setting::Ordered)
        };
        let trials = self.run_each(&mut lanes, &[order], manner)?;
        let [lane] = lanes;
        self.leave(Some(lane.vm))?;
        Ok(trials.into_iter().flatten().collect())
    }
}

/// How many of these orders run before the time is looked at: at least one in each lane.
fn chunk_size(orders: &[Vec<TestId>], lanes: usize) -> usize {
    let mut tests = 0;
    let long_enough = orders.iter().position(|order| {
        tests += order.len();
        tests >= CHUNK
    });
    let size = long_enough.map_or(orders.len(), |last| last + 1);
    size.max(lanes).min(orders.len())
}

/// Notes how a test ended after others; the first failure and the first pass are kept to be shown.
fn take_in(
    answers: &mut Answers,
    test: &TestId,
    before: &[TestId],
    trials: Vec<Trial>,
    shown: &mut Vec<Trial>,
) {
    // A test that took the VM with it: those after it ran in another.
    let is_whole = trials[..trials.len().saturating_sub(1)]
        .iter()
        .all(|trial| !trial.outcome.ends_vm());
    let last = trials
        .into_iter()
        .next_back()
        .filter(|trial| trial.test == *test);
    match last {
        Some(trial) if is_whole => {
            answers.note(before, &trial.outcome);
            let is_new = !shown
                .iter()
                .any(|one| one.outcome.is_pass() == trial.outcome.is_pass());
            if is_new {
                shown.push(trial);
            }
        }
        Some(_) | None => answers.note(before, &unflake_core::outcome::Outcome::NotRun),
    }
}

/// What can be said when the time is over: the first set of culprits, if it is known by now.
fn cut_short(case: &Case<'_>, answers: &Answers) -> Diagnosis {
    let first = Case {
        scope: Scope::First,
        ..*case
    };
    match next_step(&first, answers) {
        Step::Conclude(diagnosis) => diagnosis,
        Step::Run(_) => Diagnosis {
            role: Role::Random,
            alone: answers.after(&[]),
            culprits: Vec::new(),
            cleaners: Vec::new(),
            is_complete: false,
        },
    }
}
