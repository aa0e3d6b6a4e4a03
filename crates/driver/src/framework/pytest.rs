//! pytest as a framework: how a VM with our runner in it is started.

pub(crate) mod blocks;
pub mod hash_seed;
pub mod interpreter;
pub(crate) mod names;
pub(crate) mod requirements;

use std::fs;
use std::io;
use std::process::Command as Process;

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::test::TestId;

use crate::framework::pytest::hash_seed::HashSeed;
use crate::protocol::messages::{Collected, Command};

/// Files of the runner with their texts.
macro_rules! runner {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../../../runners/pytest/", $name)))),+]
    };
}

/// The runner, as it is written beside the channel of a run.
const RUNNER: &[(&str, &str)] = &runner![
    "unflake_pytest.py",
    "unflake_chance.py",
    "unflake_channel.py",
    "unflake_failures.py",
    "unflake_params.py",
    "unflake_guest.py",
    "unflake_installed.py",
    "unflake_environment.py",
    "unflake_items.py",
    "unflake_forks.py",
    "unflake_reports.py",
    "unflake_usage.py",
    "unflake_code.py",
    "unflake_files.py",
    "unflake_services.py",
    "unflake_blocks.py",
    "unflake_state.py",
    "unflake_state_files.py",
    "unflake_state_hidden.py",
    "unflake_state_modules.py",
    "unflake_state_nodes.py",
    "unflake_state_objects.py",
    "unflake_state_places.py",
    "unflake_state_probes.py",
    "unflake_state_process.py",
    "unflake_state_pytest.py",
    "unflake_state_settings.py",
    "unflake_state_values.py",
    "unflake_state_walk.py",
    "unflake_delays.py",
    "unflake_trace.py",
    "unflake_trace_cache.py",
    "unflake_trace_calls.py",
    "unflake_trace_children.py",
    "unflake_trace_file.py",
    "unflake_trace_kinds.py",
    "unflake_trace_leftovers.py",
    "unflake_trace_libraries.py",
    "unflake_trace_sites.py",
    "unflake_trace_strand.py",
    "unflake_trace_values.py",
    "children/sitecustomize.py",
];

/// Starts the runner. A process that tests spawn imports the main file again, so there is none.
const BOOTSTRAP: &str = "import sys; sys.path.insert(0, sys.argv[1]); import unflake_pytest; \
                         sys.exit(unflake_pytest.main())";

/// A project that is tested with pytest.
#[derive(Clone, Debug)]
pub struct Project {
    /// The folder in which pytest is started.
    pub folder: Utf8PathBuf,
    /// The project's own interpreter.
    pub python: Utf8PathBuf,
    /// The user's arguments for pytest.
    pub args: Vec<String>,
    /// Folders from which it imports before all others: none, unless the project was moved.
    pub import_first: Vec<Utf8PathBuf>,
    /// The folder for temporary files of its VMs, if not the usual one.
    pub temporary: Option<Utf8PathBuf>,
    /// The seed of hashes in all its VMs.
    pub hash_seed: HashSeed,
}

/// Under which configuration a project's tests run.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// The folder that names are relative to.
    pub(crate) root: Utf8PathBuf,
    /// pytest's configuration file, if there is one.
    pub(crate) config_file: Option<Utf8PathBuf>,
    /// The user's arguments without the paths and ids among them.
    pub(crate) options: Vec<String>,
    /// Arguments that make another VM behave as the first.
    pub(crate) replay: Vec<String>,
}

impl Setup {
    /// The project in another place.
    pub(crate) fn moved(&self, from: &Utf8Path, to: &Utf8Path) -> Self {
        let config_file = self.config_file.as_deref();
        Self {
            root: move_path(&self.root, from, to),
            config_file: config_file.map(|file| move_path(file, from, to)),
            options: move_args(&self.options, from, to),
            replay: self.replay.clone(),
        }
    }
}

fn move_path(path: &Utf8Path, from: &Utf8Path, to: &Utf8Path) -> Utf8PathBuf {
    let inside = path.strip_prefix(from);
    inside.map_or_else(|_| path.to_owned(), |inside| to.join(inside))
}

/// Arguments with the absolute paths among them moved, also those after a `=`.
fn move_args(args: &[String], from: &Utf8Path, to: &Utf8Path) -> Vec<String> {
    let moved = args.iter().map(|arg| {
        let (name, value) = arg.rsplit_once('=').unwrap_or(("", arg));
        let value = move_path(Utf8Path::new(value), from, to);
        if arg.contains('=') {
            format!("{name}={value}")
        } else {
            value.into_string()
        }
    });
    moved.collect()
}

/// A dump of stacks without the frames below a test, which are pytest's and ours.
pub(crate) fn without_framework(stacks: &str) -> String {
    let mut shown = Vec::new();
    let mut is_below = false;
    for line in stacks.lines() {
        let is_frame = line.starts_with("  File ");
        is_below =
            is_frame && (is_below || line.contains("/_pytest/") || line.contains("/pluggy/"));
        if !is_below {
            shown.push(line);
        }
    }
    shown.join("\n")
}

impl Project {
    /// Writes the runner into `folder`.
    pub(crate) fn install_runner(folder: &Utf8Path) -> io::Result<()> {
        let runner = folder.join("runner");
        fs::create_dir_all(runner.join("children"))?;
        for (name, text) in RUNNER {
            fs::write(runner.join(name), text)?;
        }
        Ok(())
    }

    /// The process of a VM whose runner was installed in `folder`.
    pub(crate) fn process(&self, folder: &Utf8Path) -> Process {
        let mut process = Process::new(&self.python);
        process
            .args(["-c", BOOTSTRAP])
            .arg(folder.join("runner"))
            .current_dir(&self.folder);
        if !self.import_first.is_empty() {
            let inherited = std::env::var("PYTHONPATH").ok();
            let folders = self.import_first.iter().map(ToString::to_string);
            let folders: Vec<String> = folders.chain(inherited).collect();
            process.env("PYTHONPATH", folders.join(":"));
        }
        if let Some(temporary) = &self.temporary {
            // A shell would have told it both.
            process.env("TMPDIR", temporary).env("PWD", &self.folder);
        }
        self.hash_seed.set(&mut process);
        process
    }

    /// The project in another place, where it imports from `import_first` before all else.
    pub(crate) fn moved(
        &self,
        from: &Utf8Path,
        to: &Utf8Path,
        import_first: impl Iterator<Item = Utf8PathBuf>,
    ) -> Self {
        Self {
            folder: move_path(&self.folder, from, to),
            python: self.python.clone(),
            args: move_args(&self.args, from, to),
            import_first: import_first.filter(|folder| folder.is_dir()).collect(),
            temporary: self.temporary.clone(),
            hash_seed: self.hash_seed.clone(),
        }
    }

    /// The project with another interpreter, if one is given.
    pub(crate) fn with_python(self, python: Option<Utf8PathBuf>) -> Self {
        Self {
            python: python.unwrap_or(self.python),
            ..self
        }
    }

    /// Starts pytest as the user would, or, as a guest, without its own reports.
    pub(crate) fn start(&self, guest: bool, replay: &[String]) -> Command {
        let args = self.args.iter().chain(replay).cloned().collect();
        Command::Start {
            args,
            guest,
            watch: false,
            trace: None,
            delays: None,
        }
    }

    /// Starts pytest for one test alone, under the configuration of the whole suite.
    ///
    /// `None` if the test's name does not begin with a file, so that pytest could not select it.
    pub(crate) fn start_alone(setup: &Setup, test: &TestId) -> Option<Command> {
        Self::start_among(setup, &[], std::slice::from_ref(test))
    }

    /// Starts pytest for some tests and some files before them.
    pub(crate) fn start_among(setup: &Setup, files: &[&str], tests: &[TestId]) -> Option<Command> {
        let root = &setup.root;
        let name = |test: &TestId| {
            let (file, rest) = test.name().split_once("::").unwrap_or((test.name(), ""));
            let separator = if rest.is_empty() { "" } else { "::" };
            let is_file = root.join(file).is_file() && !file.contains('[');
            is_file.then(|| format!("{}{separator}{rest}", root.join(file)))
        };
        let names: Vec<String> = tests.iter().map(name).collect::<Option<_>>()?;
        let mut args = setup.options.clone();
        let own_config = args
            .iter()
            .any(|arg| arg == "-c" || arg.starts_with("--config-file"));
        if let (Some(config_file), false) = (&setup.config_file, own_config) {
            args.extend(["-c".to_owned(), config_file.to_string()]);
        }
        args.push(format!("--rootdir={root}"));
        args.extend(setup.replay.iter().cloned());
        args.extend(files.iter().map(|file| root.join(file).into_string()));
        args.extend(names);
        Some(Command::Start {
            args,
            guest: true,
            watch: false,
            trace: None,
            delays: None,
        })
    }

    /// The user's arguments without the paths and ids among them.
    pub(crate) fn options(&self, suite: &Collected) -> Vec<String> {
        let mut args = self.args.clone();
        for positional in &suite.positional {
            // The value of an option, as in `-k net`, can be spelt like a path.
            let is_value = |at: usize| at > 0 && args[at - 1].starts_with('-');
            let mut places: Vec<usize> = (0..args.len())
                .filter(|at| args[*at] == *positional)
                .collect();
            places.sort_by_key(|at| is_value(*at));
            if let Some(at) = places.first() {
                args.remove(*at);
            }
        }
        args
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_ends_at_the_test() {
        let stacks = "Thread 0x1 (most recent call first):\n  File \"/lib/threading.py\", line 3 in wait\n\n\
                      Current thread 0x2 (most recent call first):\n  File \"/lib/socket.py\", line 1 in recv\n  \
                      File \"/shop/test_net.py\", line 9 in test_ping\n  \
                      File \"/lib/_pytest/python.py\", line 187 in pytest_pyfunc_call\n  \
                      File \"/tmp/unflake_guest.py\", line 2 in _run\n";
        let shown = without_framework(stacks);
        assert!(shown.ends_with("line 9 in test_ping"), "{shown}");
        assert!(shown.contains("in wait\n\nCurrent thread"), "{shown}");
    }
}
