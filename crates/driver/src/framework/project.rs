//! A project and its framework: how its VMs are started. Everything else asks through here.

use std::io;
use std::process::Command as Process;

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::test::TestId;

use crate::framework::maven;
use crate::framework::maven::debugger::Looking;
use crate::framework::pytest;
use crate::framework::pytest::Setup;
use crate::protocol::messages::{Collected, Command};

/// The place of a test: two versions of it may share it and have different ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its source, as a whole path.
    pub(crate) source: Utf8PathBuf,
    /// Its function.
    pub(crate) function: String,
}

/// A project that is tested.
#[derive(Clone, Debug)]
pub enum Project {
    /// With pytest.
    Pytest(pytest::Project),
    /// With JUnit, one module of a Maven build.
    Maven(maven::Project),
}

impl Project {
    /// The folder in which the framework is started by its user.
    pub fn folder(&self) -> &Utf8Path {
        match self {
            Self::Pytest(project) => &project.folder,
            Self::Maven(project) => &project.folder,
        }
    }

    /// The name of what starts the tests, in messages.
    pub fn framework(&self) -> &'static str {
        match self {
            Self::Pytest(_) => "pytest",
            Self::Maven(_) => "the JVM of the tests",
        }
    }

    /// The interpreter that reads the project's Python sources, if it has one.
    pub(crate) fn python(&self) -> Option<&Utf8Path> {
        match self {
            Self::Pytest(project) => Some(&project.python),
            Self::Maven(_) => None,
        }
    }

    /// The seed of Python's hashes in all its VMs, if it was drawn for this run.
    pub fn hash_seed(&self) -> Option<u32> {
        match self {
            Self::Pytest(project) => project.hash_seed.drawn(),
            Self::Maven(_) => None,
        }
    }

    /// Gives a process of it a seed of hashes of its own, unless the user's environment sets one.
    pub(crate) fn vary_hash_seed(&self, process: &mut Process, seed: u32) {
        match self {
            Self::Pytest(project) => project.hash_seed.vary(process, seed),
            Self::Maven(_) => {}
        }
    }

    /// The place of a test, if ids begin in the folder `root`; `None` if its id does not say it.
    pub(crate) fn place_of(&self, test: &TestId, root: &Utf8Path) -> Option<Place> {
        match self {
            Self::Pytest(_) => pytest::names::place_of(test, root),
            Self::Maven(project) => maven::names::place_of(test, &project.module.sources),
        }
    }

    /// The id that a test would have at another place.
    pub(crate) fn id_at(&self, test: &TestId, root: &Utf8Path, place: &Place) -> Option<TestId> {
        match self {
            Self::Pytest(_) => pytest::names::id_at(test, root, place),
            Self::Maven(project) => maven::names::id_at(test, &project.module.sources, place),
        }
    }

    /// The name of a function among the frames of a test, where the test has another id; `None` if it is not the
    /// test's own.
    pub(crate) fn in_frames(&self, frame: &str, old: &TestId, new: &TestId) -> Option<String> {
        match self {
            Self::Pytest(_) => pytest::names::in_frames(frame, old, new),
            Self::Maven(_) => maven::names::in_frames(frame, old, new),
        }
    }

    /// The functions of a source of tests, each with its text without its own name.
    pub(crate) fn functions(&self, source: &str) -> Vec<(String, String)> {
        match self {
            Self::Pytest(_) => pytest::names::functions(source),
            Self::Maven(_) => maven::names::functions(source),
        }
    }

    /// The facts that tell one way to start its tests from another.
    pub(crate) fn subject(&self) -> (Utf8PathBuf, String, Vec<String>) {
        match self {
            Self::Pytest(one) => (one.folder.clone(), one.python.to_string(), one.args.clone()),
            Self::Maven(one) => (
                one.folder.clone(),
                one.module.name.clone(),
                one.args.clone(),
            ),
        }
    }

    /// Whether the tests of a file run together, so that they are reported together.
    pub(crate) fn runs_by_class(&self) -> bool {
        matches!(self, Self::Maven(_))
    }

    /// The project's settings that one VM, in which one test runs after the other, cannot have; and whether
    /// they give each test class a VM of its own.
    pub(crate) fn differences(&self) -> (Vec<String>, bool) {
        match self {
            Self::Pytest(_) => (Vec::new(), false),
            Self::Maven(project) => {
                let module = &project.module;
                (module.differences.clone(), module.is_forked_by_class)
            }
        }
    }

    /// Whether its runner can report changes of the state, and undo them.
    pub(crate) fn tells_state(&self) -> bool {
        match self {
            Self::Pytest(_) | Self::Maven(_) => true,
        }
    }

    /// Whether its runner sees the state only from the first use of a class on: a VM must have shown which classes are
    /// used before another one can compare them.
    pub(crate) fn learns_state(&self) -> bool {
        matches!(self, Self::Maven(_))
    }

    /// Whether its runner can record the calls of its code.
    pub fn can_trace(&self) -> bool {
        matches!(self, Self::Pytest(_))
    }

    /// Why its runner cannot say which lines write the state; `None` if it may be able to.
    pub(crate) fn why_no_places(&self) -> Option<&'static str> {
        match self {
            Self::Pytest(_) => None,
            Self::Maven(project) => project.why_no_places(),
        }
    }

    /// Whether a VM can be copied; else every fresh VM is a new process.
    pub(crate) fn can_copy(&self) -> bool {
        matches!(self, Self::Pytest(_))
    }

    /// Whether the record of what a run used also tells which tests of an order had ended by then.
    pub(crate) fn tells_tests_apart(&self) -> bool {
        match self {
            Self::Pytest(_) => true,
            Self::Maven(_) => false,
        }
    }

    /// Whether a VM that records what it uses is as fast as any other.
    pub(crate) fn is_watched_for_nothing(&self) -> bool {
        match self {
            Self::Pytest(_) => false,
            Self::Maven(_) => true,
        }
    }

    /// Whether a VM can run a test on classes that are loaded for it alone. In a module of Java's own kind they
    /// would not be that module's.
    pub(crate) fn can_reload(&self) -> bool {
        match self {
            Self::Pytest(_) => false,
            Self::Maven(project) => project.module.modular.is_empty(),
        }
    }

    /// Makes a changed source count; false if it cannot be compiled.
    pub(crate) fn rebuild(&self, source: &Utf8Path) -> io::Result<bool> {
        match self {
            Self::Pytest(_) => Ok(true),
            Self::Maven(project) => project.compile(source),
        }
    }

    /// Whether its VMs are worth starting before they are needed: they take long, and cannot be copied.
    pub(crate) fn starts_ahead(&self) -> bool {
        matches!(self, Self::Maven(_))
    }

    /// Whether something can be done once so that many new processes start sooner.
    pub(crate) fn wants_archive(&self) -> bool {
        match self {
            Self::Pytest(_) => false,
            Self::Maven(project) => project.wants_archive(),
        }
    }

    /// Sets whether fresh VMs record the classes that they load, for the archive.
    pub(crate) fn list_classes(&mut self, lists_classes: bool) {
        match self {
            Self::Pytest(_) => {}
            Self::Maven(project) => project.lists_classes = lists_classes,
        }
    }

    /// Sets the facts that are looked for in VMs which start from now on.
    pub(crate) fn look_for(&mut self, looking: Looking) {
        match self {
            Self::Pytest(_) => {}
            Self::Maven(project) => project.looking = looking,
        }
    }

    /// Makes the archive from what was written down.
    pub(crate) fn make_archive(&self, folder: &Utf8Path) -> io::Result<()> {
        match self {
            Self::Pytest(_) => Ok(()),
            Self::Maven(project) => project.make_archive(folder),
        }
    }

    /// Starts the framework for some tests only, if it can select them; else for all.
    pub(crate) fn start_for(&self, tests: &[TestId], replay: &[String]) -> Command {
        match self {
            Self::Pytest(project) => project.start(true, replay),
            Self::Maven(_) => maven::Project::start(true, tests),
        }
    }

    /// Writes the runner into `folder`.
    pub(crate) fn install_runner(&self, folder: &Utf8Path) -> io::Result<()> {
        match self {
            Self::Pytest(_) => pytest::Project::install_runner(folder),
            Self::Maven(project) => project.install_runner(folder),
        }
    }

    /// The process of a VM whose runner was installed in `folder`, and that will be told to start so.
    pub(crate) fn process(&self, folder: &Utf8Path, start: &Command) -> io::Result<Process> {
        match self {
            Self::Pytest(project) => Ok(project.process(folder)),
            Self::Maven(project) => project.process(folder, start),
        }
    }

    /// The project in another place, where it imports from `import_first` before all else.
    pub(crate) fn moved(
        &self,
        from: &Utf8Path,
        to: &Utf8Path,
        import_first: impl Iterator<Item = Utf8PathBuf>,
    ) -> Self {
        match self {
            Self::Pytest(project) => Self::Pytest(project.moved(from, to, import_first)),
            Self::Maven(project) => Self::Maven(project.moved(from, to)),
        }
    }

    /// The project without the user's paths and ids that do not exist, for the checkout of another revision.
    pub(crate) fn with_paths_that_exist(self, suite: &Collected) -> Self {
        match self {
            Self::Pytest(mut project) => {
                let (folder, named) = (project.folder.clone(), &suite.positional);
                project.args.retain(|arg| {
                    let file = arg.split("::").next().unwrap_or(arg);
                    !named.contains(arg) || folder.join(file).exists()
                });
                Self::Pytest(project)
            }
            Self::Maven(project) => Self::Maven(project),
        }
    }

    /// The project with another seed of hashes, if the language has one.
    pub(crate) fn with_other_seed(self, number: usize) -> Self {
        match self {
            Self::Pytest(mut project) => {
                project.hash_seed = project.hash_seed.another(number);
                Self::Pytest(project)
            }
            Self::Maven(project) => Self::Maven(project),
        }
    }

    /// The project with one test only, or with those of its class if the framework runs classes.
    #[must_use]
    pub fn only(self, test: &TestId) -> Self {
        match self {
            Self::Pytest(mut project) => {
                project.args.push(test.name().to_owned());
                Self::Pytest(project)
            }
            Self::Maven(project) => Self::Maven(maven::Project {
                only: vec![test.clone()],
                ..project
            }),
        }
    }

    /// The project with its own place for temporary files.
    pub(crate) fn with_temporary(self, temporary: Utf8PathBuf) -> Self {
        let temporary = Some(temporary);
        match self {
            Self::Pytest(project) => Self::Pytest(pytest::Project {
                temporary,
                ..project
            }),
            Self::Maven(project) => Self::Maven(maven::Project {
                temporary,
                ..project
            }),
        }
    }

    /// Starts the framework as the user would, or, as a guest, without its own reports.
    pub(crate) fn start(&self, guest: bool, replay: &[String]) -> Command {
        match self {
            Self::Pytest(project) => project.start(guest, replay),
            Self::Maven(project) => maven::Project::start(guest, &project.only),
        }
    }

    /// The configuration under which the suite runs.
    pub(crate) fn setup(&self, suite: &Collected) -> Setup {
        Setup {
            root: Utf8PathBuf::from(&suite.root),
            config_file: suite.config_file.as_ref().map(Utf8PathBuf::from),
            options: self.options(suite),
            replay: suite.replay.clone(),
        }
    }

    /// Starts the framework for one test alone, under the configuration of the whole suite.
    ///
    /// `None` if the framework cannot select it by its name.
    pub(crate) fn start_alone(&self, setup: &Setup, test: &TestId) -> Option<Command> {
        match self {
            Self::Pytest(_) => pytest::Project::start_alone(setup, test),
            Self::Maven(_) => Some(maven::Project::start(true, std::slice::from_ref(test))),
        }
    }

    /// Starts the framework for some tests and some files before them; `None` if it cannot do that.
    pub(crate) fn start_among(
        &self,
        setup: &Setup,
        files: &[&str],
        tests: &[TestId],
    ) -> Option<Command> {
        match self {
            Self::Pytest(_) => pytest::Project::start_among(setup, files, tests),
            // Nothing runs when a class is loaded for the list.
            Self::Maven(_) if files.is_empty() => Some(maven::Project::start(true, tests)),
            Self::Maven(_) => None,
        }
    }

    /// The user's arguments without the paths and ids among them.
    pub(crate) fn options(&self, suite: &Collected) -> Vec<String> {
        match self {
            Self::Pytest(project) => project.options(suite),
            Self::Maven(project) => project.args.clone(),
        }
    }
}
