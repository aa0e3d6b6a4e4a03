//! One of the two sides of a comparison: the project's tests in copies of the work tree, or of a checkout of the base.
//!
//! Both are made in the same way: a VM that has collected the whole suite and writes down what it uses, in a
//! copy of the files whose changes are undone after each run. A run is an order of tests in a copy of that VM, or in
//! a new one where VMs cannot be copied.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::sync::mpsc::channel;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::nio::Setting;
use unflake_core::state::Cause;
use unflake_core::test::TestId;
use unflake_core::trial::Trial;
use unflake_core::usage::Usage;

use crate::blame::comparison::chain;
use crate::cause::find::{Family, Reach};
use crate::files::names::Names;
use crate::files::workspace::Workspace;
use crate::framework::project::Project;
use crate::git::difference::Difference;
use crate::lab::lane::{Lane, Manner};
use crate::lab::listings;
use crate::lab::run_error::RunError;
use crate::lab::session::{Halt, Session, Wish};
use crate::usage::facts::{Facts, Ground};
use crate::usage::kernel::Watch;

/// One side of a comparison.
pub(crate) struct Side {
    session: Session,
    lane: Lane,
    names: Names,
    /// By their names at home.
    listed: HashSet<TestId>,
    /// What the user's tests are called there if their ids are others in each VM, by their names at home.
    renamed: HashMap<TestId, TestId>,
    /// The system's eye on the changed files.
    watch: Option<Watch>,
    /// Where what the last run used is written.
    last: Option<Written>,
    /// When the run began whose failures are asked about.
    began: SystemTime,
    runs: usize,
}

/// How the tests of one order ended.
pub(crate) struct Order {
    trials: Vec<Trial>,
    written: Written,
}

/// How one of them ended, and where what was used until then is written.
pub(crate) struct Made {
    pub(crate) trial: Trial,
    pub(crate) written: Written,
}

/// Where what a run used is written, by itself and by the system.
#[derive(Clone)]
pub(crate) struct Written {
    vm: Utf8PathBuf,
    own: Option<Utf8PathBuf>,
    /// When the first test of its order began.
    pub(crate) began: SystemTime,
    /// It counts until so many tests had ended.
    tests: usize,
    opened: Option<BTreeSet<String>>,
}

impl Order {
    /// The last of these tests, with which the order began; or why it did not come to it.
    pub(crate) fn last_of(&self, order: &[TestId]) -> Result<Made, String> {
        let count = order.len().min(self.trials.len());
        let Some((last, before)) = self.trials[..count].split_last() else {
            return Err("it did not run".to_owned());
        };
        // A test that took the VM with it: those after it ran in another.
        if let Some(lost) = before.iter().find(|trial| trial.outcome.ends_vm()) {
            let message = &lost.account.message;
            return Err(format!("{} ended its VM: {message}", lost.test));
        }
        if order.last() != Some(&last.test) {
            return Err("it did not come to its turn".to_owned());
        }
        let written = Written {
            tests: order.len(),
            ..self.written.clone()
        };
        let trial = last.clone();
        Ok(Made { trial, written })
    }
}

/// What a side is made of.
pub(crate) struct Site<'a> {
    /// The project there.
    pub(crate) project: Project,
    /// The user's work tree, if this is another: nothing may be imported from it.
    pub(crate) away_from: Option<&'a Utf8Path>,
    /// Files that came later are left out.
    pub(crate) until: Option<SystemTime>,
    /// Files that the system is to watch, from the root of what is copied.
    pub(crate) watched: Vec<String>,
    /// Whether its VMs write down what they use.
    pub(crate) is_watched: bool,
    /// What is known of its VMs.
    pub(crate) known: Known,
}

/// What one side has found out of its VMs, and another with the same files need not find out again.
#[derive(Clone, Default)]
pub(crate) struct Known {
    /// The folders into which they must look first, from the root of what is copied.
    pub(crate) imports_first_from: Vec<Utf8PathBuf>,
    /// The random generators that the project seeds.
    pub(crate) seeded: Option<BTreeSet<String>>,
}

impl Side {
    /// Starts a VM there. An inner error says why there is none.
    pub(crate) fn open(parent: &Session, site: Site<'_>) -> Result<Result<Self, String>, Halt> {
        match Self::try_open(parent, site) {
            Ok(opened) => Ok(match stray_import(&opened.session) {
                Some(folder) => Err(format!("it imports from {folder} of the work tree there")),
                None => Ok(opened),
            }),
            Err(Halt::Interrupted) => Err(Halt::Interrupted),
            Err(Halt::Error(error)) => Ok(Err(explain(&error))),
        }
    }

    fn try_open(parent: &Session, site: Site<'_>) -> Result<Self, Halt> {
        let wish = Wish {
            project: site.project,
            against: None,
            jobs: Some(1),
            vms_before: parent.fleet.next_number(),
            ..parent.wish.clone()
        };
        // Nobody listens: what happens here is told as a part of the answer.
        let (sender, _) = channel();
        let mut session = Session::beside(parent, wish, sender)?;
        session.is_watching = site.is_watched;
        session.move_in_before(site.until);
        session.import_first_from(&site.known.imports_first_from);
        session.home.away_from = site.away_from.map(Utf8Path::to_owned);
        let mut watch = None;
        let lane = session.open_lane_in_sight(|files| {
            let paths = site.watched.iter().map(String::as_str);
            watch = Watch::begin(files, paths);
        })?;
        session.listings.alike = site.known.seeded;
        session.learn_chance()?;
        let names = Names::new(&session.place(lane.workspace.as_ref()), &parent.place(None));
        let listed = session.tests.iter().map(|test| names.at_home(&test.id));
        let listed = listed.collect();
        let asked = parent.suspects.iter().map(|suspect| &suspect.test);
        let asked: HashSet<&TestId> = asked.collect();
        let renamed = listings::renamed(parent.listed(), session.listed()).into_iter();
        // What is called otherwise at the base may have been renamed by the change.
        let is_base = site.away_from.is_some();
        let is_own = |here: &TestId| !is_base || parent.listings.is_renamed(here);
        let renamed = renamed.filter(|(here, _)| !asked.contains(here) && is_own(here));
        let renamed = renamed.map(|(here, there)| (here, names.at_home(&there)));
        let renamed = renamed.collect();
        session.listings.asked = asked.into_iter().map(|test| names.in_copy(test)).collect();
        Ok(Self {
            session,
            lane,
            names,
            listed,
            renamed,
            watch,
            last: None,
            began: parent.began,
            runs: 0,
        })
    }

    /// What is known of its VMs by now.
    pub(crate) fn known(&self) -> Known {
        Known {
            imports_first_from: self.session.imports_first_from(),
            seeded: self.session.listings.alike.clone(),
        }
    }

    /// Whether a test is there.
    pub(crate) fn lists(&self, test: &TestId) -> bool {
        self.listed.contains(test)
    }

    /// What a test is called there, by its own name or by its place.
    pub(crate) fn name_of<'a>(&'a self, test: &'a TestId) -> Option<&'a TestId> {
        let is_there = self.lists(test);
        Some(test)
            .filter(|_| is_there)
            .or_else(|| self.renamed.get(test))
    }

    /// All tests that are there.
    pub(crate) fn tests(&self) -> impl Iterator<Item = &TestId> {
        self.listed.iter()
    }

    /// Whether a test is there that is not among these.
    pub(crate) fn lists_more_than(&self, tests: &HashMap<TestId, usize>) -> bool {
        self.listed.iter().any(|test| !tests.contains_key(test))
    }

    /// What could not be collected there, if anything could not: then a test that is not listed may be there.
    pub(crate) fn trouble(&self) -> Option<String> {
        let error = self.session.listed().errors.first()?;
        let last = error.text.trim_end().lines().last().unwrap_or_default();
        Some(format!(
            "{} cannot be collected there: {}",
            error.place,
            last.trim()
        ))
    }

    /// What tells the parameters of a test there from others, if it has some.
    pub(crate) fn params(&self, test: &TestId) -> Option<&str> {
        params(&self.session, &self.names.in_copy(test))
    }

    /// The tests that stand before a test in the side's own order.
    pub(crate) fn before(&self, test: &TestId) -> Vec<TestId> {
        let tests = self.session.tests.iter();
        let tests = tests.map(|one| self.names.at_home(&one.id));
        tests.take_while(|one| one != test).collect()
    }

    /// Runs tests one after the other; or why none ran.
    pub(crate) fn run(&mut self, order: &[TestId]) -> Result<Result<Order, String>, Halt> {
        self.runs += 1;
        // What a module drew while it was imported is one draw for all copies of a VM.
        let is_worn = self.runs > 2 && self.runs.is_power_of_two();
        self.lane.is_spent |= is_worn && self.session.home.project.can_copy();
        self.lane.facts = Some(format!("run{}.usage", self.runs));
        let began = SystemTime::now();
        let manner = Manner {
            is_brief: false,
            ..Manner::once(Setting::Ordered)
        };
        let there = |test| self.names.in_copy(self.name_of(test).unwrap_or(test));
        let order = order.iter().map(there).collect();
        let lanes = std::slice::from_mut(&mut self.lane);
        let mut trials = match self.session.run_each(lanes, &[order], manner) {
            Ok(mut trials) => trials.pop().unwrap_or_default(),
            Err(Halt::Interrupted) => return Err(Halt::Interrupted),
            Err(Halt::Error(error)) => return Ok(Err(explain(&error))),
        };
        for trial in &mut trials {
            trial.test = self.names.at_home(&trial.test);
        }
        let written = self.written(began);
        self.last = Some(written.clone());
        Ok(Ok(Order { trials, written }))
    }

    /// What of the state that polluters leave makes a test fail, where that can be shown.
    pub(crate) fn find_leftovers(
        &mut self,
        polluters: &[TestId],
        test: &TestId,
    ) -> Result<Option<Cause>, Halt> {
        let in_copy = |test| self.names.in_copy(self.name_of(test).unwrap_or(test));
        let family = Family {
            culprits: polluters.iter().map(in_copy).collect(),
            tests: vec![in_copy(test)],
            passes_alone: true,
            by_import: false,
            reach: Reach::Suite,
        };
        let is_watching = std::mem::replace(&mut self.session.is_watching, false);
        let causes = self.session.find_state(&family);
        self.session.is_watching = is_watching;
        match causes {
            Ok(mut causes) => Ok(causes.pop().flatten().filter(|one| !one.shown.is_empty())),
            Err(Halt::Interrupted) => Err(Halt::Interrupted),
            // Whose failure it is does not hang on it.
            Err(Halt::Error(_)) => Ok(None),
        }
    }

    /// Where what a run used is written, now that it has ended.
    fn written(&self, began: SystemTime) -> Written {
        let folder = self.session.fleet.folder();
        Written {
            vm: folder.join(format!("{}.usage", self.lane.vm.0)),
            own: self.lane.facts.as_ref().map(|name| folder.join(name)),
            began,
            tests: usize::MAX,
            opened: self.watch.as_ref().and_then(Watch::opened),
        }
    }

    /// What the last run used, as if it had been in `root`.
    pub(crate) fn last_facts(&self, root: &Utf8Path) -> io::Result<Facts> {
        let last = self.last.as_ref();
        self.facts(last.ok_or(io::ErrorKind::NotFound)?, root)
    }

    /// What a run used, as if it had been in `root`.
    pub(crate) fn facts(&self, written: &Written, root: &Utf8Path) -> io::Result<Facts> {
        let copy = self.files();
        let mut facts = Facts::read_moved(&written.vm, &copy, root, written.tests)?;
        facts.add_loaded(&written.vm.with_extension("classes"))?;
        if let Some(own) = written.own.as_ref().filter(|own| own.exists()) {
            facts.add(Facts::read_moved(own, &copy, root, written.tests)?);
        }
        Ok(facts)
    }

    /// The same in terms of the repository.
    pub(crate) fn to_usage(
        &self,
        (facts, written): (&Facts, &Written),
        difference: &Difference,
        test: &Utf8Path,
        base_tree: Option<&Utf8Path>,
    ) -> Usage {
        let ground = Ground {
            test: Some(test),
            opened: written.opened.as_ref(),
            base_tree,
            ..difference.ground(self.began)
        };
        facts.to_usage(&ground)
    }

    /// Where its files are.
    pub(crate) fn files(&self) -> Utf8PathBuf {
        self.session.place(self.lane.workspace.as_ref())
    }

    /// Where its runs put temporary files, if not in the usual place.
    pub(crate) fn temporary(&self) -> Option<Utf8PathBuf> {
        self.lane.workspace.as_ref().map(Workspace::temporary)
    }

    /// Ends its VM.
    pub(crate) fn close(mut self) -> Result<(), Halt> {
        self.session.leave_lanes(vec![self.lane])
    }
}

/// What tells the parameters of a test in a session's list from others.
pub(crate) fn params<'a>(session: &'a Session, test: &TestId) -> Option<&'a str> {
    let place = *session.places.get(test)?;
    session.listed().tests[place].params.as_deref()
}

/// A folder of the user's work tree from which a VM imports that is to use another, if there is one.
fn stray_import(session: &Session) -> Option<String> {
    let away_from = session.home.away_from.as_deref()?;
    let imported = session.listed().imported_from.iter();
    let mut strays = imported.filter(|folder| {
        let folder = Utf8Path::new(folder.as_str());
        let real = folder.canonicalize_utf8();
        let real = real.as_deref().unwrap_or(folder);
        real.starts_with(away_from)
    });
    strays.next().cloned()
}

/// An error in a line: its last words say most.
fn explain(error: &RunError) -> String {
    let text = chain(error);
    let output = match error {
        RunError::EndedEarly { output, .. } => output.trim_end().lines().last(),
        RunError::NoTests { .. }
        | RunError::Interrupted
        | RunError::Start(_)
        | RunError::Protocol { .. }
        | RunError::Interactive
        | RunError::CollectOnly
        | RunError::NoPytest { .. }
        | RunError::NoJunit { .. }
        | RunError::OldPytest { .. }
        | RunError::OldPython { .. }
        | RunError::NoSuchTest { .. }
        | RunError::Against(_) => None,
    };
    output.map_or(text.clone(), |last| format!("{text}: {}", last.trim()))
}
