//! A module of a Maven build whose tests are JUnit's: how a JVM with our runner in it is started.
//!
//! The JVM is the one that Surefire would start, by what was written down when Maven was asked
//! (`capture`), with our runner last on its class path.

mod agents;
mod archive;
pub mod capture;
mod compile;
pub mod debugger;
mod inputs;
pub mod module;
pub(crate) mod names;
mod nearby;

use std::fs;
use std::io;
use std::process::Command as Process;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::test::TestId;

use crate::framework::maven::agents::beside_the_suite;
use crate::framework::maven::archive::{Archive, split};
use crate::framework::maven::capture::{CaptureError, capture};
use crate::framework::maven::debugger::{Looking, options, version};
use crate::framework::maven::module::Module;
use crate::protocol::messages::Command;

/// The runner and the Maven extension as a jar; empty in a binary that was built without a JDK.
pub(crate) const JAR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runner.jar"));

/// The class that a JVM begins with.
const MAIN: &str = "unflake.junit.Main";

/// Starts a JVM without our variables in its environment: Java cannot take them out by itself. A watched
/// one logs the classes that it loads, one whose state is looked at those that it initialises. To see what
/// writes it, a debugger of ours is started first and says where it listens; it ends with the JVM. Without one,
/// as with a JDK that has no such module, the JVM runs by itself.
const BOOTSTRAP: &str = r#"channel=$UNFLAKE_CHANNEL; vm=$UNFLAKE_VM; watch=$UNFLAKE_WATCH; look=$UNFLAKE_LOOK
java=$1; shift
unset UNFLAKE_CHANNEL UNFLAKE_VM UNFLAKE_WATCH UNFLAKE_LOOK
if [ -n "$watch" ]; then set -- "-Xlog:class+load=info:file=$channel/$vm.classes:none" "$@"; fi
if [ -n "$look" ]; then
  set -- "-Xlog:class+init=info:file=$channel/$vm.initialised:none:filecount=0" "$@"
fi
if [ "$look" = writes ]; then
  at=$(JAVA_TOOL_OPTIONS= JDK_JAVA_OPTIONS= "$java" -Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC \
    --add-modules jdk.jdi,jdk.jdwp.agent -cp "$channel/runner.jar" unflake.debugger.Main \
    </dev/null 2>/dev/null &)
  case $at in
    127.0.0.1:*) set -- "-agentlib:jdwp=transport=dt_socket,server=n,suspend=y,address=$at" "$@" ;;
  esac
fi
exec "$java" "$@" "$channel" "$vm""#;

/// A module of a Maven build.
#[derive(Clone, Debug)]
pub struct Project {
    /// The folder in which Maven is started.
    pub folder: Utf8PathBuf,
    /// The user's arguments for Maven.
    pub args: Vec<String>,
    /// The way in which Surefire starts the JVM of its tests.
    pub module: Arc<Module>,
    /// The folder that the module was moved from, and where it is now.
    pub moved: Option<(Utf8PathBuf, Utf8PathBuf)>,
    /// The folder for temporary files of its VMs, if not the usual one.
    pub temporary: Option<Utf8PathBuf>,
    /// The file in which the runner reads how the tests are started, if not beside itself.
    pub record: Option<Utf8PathBuf>,
    /// The tests whose classes are run; all, if there are none.
    pub only: Vec<TestId>,
    /// Whether its fresh VMs record the classes that they load.
    pub lists_classes: bool,
    /// The facts that are looked for in its VMs.
    pub looking: Looking,
}

impl Project {
    /// Writes the runner and what it must know into `folder`.
    pub(crate) fn install_runner(&self, folder: &Utf8Path) -> io::Result<()> {
        fs::write(folder.join("runner.jar"), JAR)?;
        fs::write(folder.join("module.json"), &self.module.text)
    }

    /// The project in another place.
    pub(crate) fn moved(&self, from: &Utf8Path, to: &Utf8Path) -> Self {
        Self {
            moved: Some((from.to_owned(), to.to_owned())),
            ..self.clone()
        }
    }

    /// The same module in another version of the project, which Maven builds first.
    pub(crate) fn built_in(
        &self,
        folder: &Utf8Path,
        cache: &Utf8Path,
    ) -> Result<Self, CaptureError> {
        let modules = capture(folder, &self.args, cache, |_| ())?;
        let mut modules = modules.into_iter();
        let own = modules.find(|module| module.name == self.module.name);
        let module = own.ok_or_else(|| CaptureError::NoTests {
            folder: folder.to_owned(),
            skipped: Vec::new(),
            selecting: None,
        })?;
        // The runner's facts stand here: they differ from those in the work tree.
        let record = cache.join("module.json");
        std::fs::write(&record, &module.text).map_err(|source| CaptureError::Keep {
            folder: cache.to_owned(),
            source,
        })?;
        Ok(Self {
            folder: folder.to_owned(),
            module: Arc::new(module),
            record: Some(record),
            ..self.clone()
        })
    }

    /// Starts the list of all tests, or of those of the classes of some.
    pub(crate) fn start(guest: bool, tests: &[TestId]) -> Command {
        Command::Start {
            args: tests.iter().map(|test| test.name().to_owned()).collect(),
            guest,
            watch: false,
            trace: None,
            delays: None,
        }
    }

    /// The process of a VM whose runner was installed in `folder`.
    pub(crate) fn process(&self, folder: &Utf8Path, start: &Command) -> io::Result<Process> {
        let module = &self.module;
        let (is_alone, is_guest, is_watched) = wishes(start);
        let mut process = Process::new("/bin/sh");
        process.args(["-c", BOOTSTRAP, "unflake"]).arg(&module.java);
        let own = module.jvm_args.iter().map(|arg| self.place(arg));
        let mut own: Vec<String> = own.collect();
        if is_guest {
            own = beside_the_suite(&own, folder);
        }
        let archive = Archive::of(module).filter(|_| is_alone);
        let shared = archive.as_ref().and_then(Archive::file);
        if is_alone {
            process.args(QUICK_START);
        }
        if let Some(archive) = archive.filter(|_| self.lists_classes) {
            process.arg(format!("-XX:DumpLoadedClassList={}", archive.list()));
        } else if let Some(file) = &shared {
            process.args([&format!("-XX:SharedArchiveFile={file}"), "-Xlog:cds=off"]);
        }
        if let Some(temporary) = &self.temporary
            && !own.iter().any(|arg| arg.starts_with("-Djava.io.tmpdir="))
        {
            process.arg(format!("-Djava.io.tmpdir={temporary}"));
            process.env("TMPDIR", temporary);
        }
        let version = version(&module.java);
        if is_watched && version != Some(8) {
            process.env("UNFLAKE_WATCH", "yes");
        }
        if let Some(word) = self.looking.word().filter(|_| version != Some(8)) {
            process.env("UNFLAKE_LOOK", word).args(options(version));
        }
        process.args(&own);
        process.args(self.classpath_args(folder, shared.is_some())?);
        let record = self.record.clone();
        let record = record.unwrap_or_else(|| folder.join("module.json"));
        process.arg(MAIN).arg(record);
        let (from, to) = match &self.moved {
            Some((from, to)) => (from.as_str(), to.as_str()),
            None => (self.folder.as_str(), self.folder.as_str()),
        };
        process.args([from, to]);
        let working = self.place(module.folder.as_str());
        process.current_dir(&working).env("PWD", &working);
        for name in &module.unset {
            process.env_remove(name);
        }
        process.envs(
            module
                .set
                .iter()
                .map(|(name, value)| (name, self.place(value))),
        );
        Ok(process)
    }

    /// Why nobody can see what writes the state of its VMs.
    pub(crate) fn why_no_places(&self) -> Option<&'static str> {
        let has_debugger = |arg: &String| arg.contains("jdwp");
        if self.module.jvm_args.iter().any(has_debugger) {
            return Some("the project's own settings start the JVM with a debugger");
        }
        (version(&self.module.java) == Some(8)).then_some("it takes a JDK after 8")
    }

    /// Whether an archive of classes is worth a try.
    pub(crate) fn wants_archive(&self) -> bool {
        Archive::of(&self.module).is_some_and(|archive| !archive.is_settled())
    }

    /// Makes the archive of classes from those that were written down.
    pub(crate) fn make_archive(&self, folder: &Utf8Path) -> io::Result<()> {
        let Some(archive) = Archive::of(&self.module) else {
            return Ok(());
        };
        archive.make(&folder.join("runner.jar"))
    }

    /// The class path, and for a module of Java's own kind all that goes with it.
    fn classpath_args(&self, folder: &Utf8Path, is_shared: bool) -> io::Result<Vec<String>> {
        let module = &self.module;
        let runner = folder.join("runner.jar").into_string();
        if module.modular.is_empty() {
            let own: Vec<String> = if is_shared {
                let (jars, others) = split(module);
                jars.into_iter().chain(others).collect()
            } else {
                let own = module.classpath.iter().chain(module.framework());
                own.cloned().collect()
            };
            let parts = own.iter().map(|part| self.place(part));
            let parts: Vec<String> = parts.chain([runner]).collect();
            let classpath = parts.join(":");
            if classpath.len() < LONGEST_ARGUMENT {
                return Ok(vec!["-cp".to_owned(), classpath]);
            }
            let lines = format!("-cp\n{}\n", quote(&classpath));
            return self.argument_file(folder, &lines);
        }
        let mut lines = String::new();
        let mut is_classpath = false;
        for line in &module.modular {
            if line.contains("ForkedBooter") {
                continue;
            }
            let line = self.place(line);
            if is_classpath {
                let known = line.trim_matches('"').to_owned();
                let more = module.framework().map(|part| self.place(part));
                let parts: Vec<String> = std::iter::once(known).chain(more).collect();
                let classpath = parts.join(":");
                lines.extend(["\"", &classpath, ":", &runner, "\"\n"]);
            } else {
                lines.push_str(&line);
                lines.push('\n');
            }
            is_classpath = matches!(line.as_str(), "--class-path" | "-cp" | "-classpath");
        }
        self.argument_file(folder, &lines)
    }

    fn argument_file(&self, folder: &Utf8Path, lines: &str) -> io::Result<Vec<String>> {
        let place = self.moved.as_ref().map_or("home", |(_, to)| {
            to.parent().and_then(Utf8Path::file_name).unwrap_or("moved")
        });
        let file = folder.join(format!("arguments-{place}"));
        fs::write(&file, lines)?;
        Ok(vec![format!("@{file}")])
    }

    /// A text with paths as they are where the project is now.
    fn place(&self, text: &str) -> String {
        match &self.moved {
            Some((from, to)) => text.replace(from.as_str(), to.as_str()),
            None => text.to_owned(),
        }
    }
}

/// Whether a VM is for some tests only, whether it is not the first, and whether it is to say what it uses.
fn wishes(start: &Command) -> (bool, bool, bool) {
    match start {
        Command::Start {
            args, guest, watch, ..
        } => (!args.is_empty(), *guest, *watch),
        Command::Collect { .. }
        | Command::Run { .. }
        | Command::Rerun { .. }
        | Command::Twice { .. }
        | Command::Go {}
        | Command::Mark {}
        | Command::Compare { .. }
        | Command::Locate { .. }
        | Command::Fork { .. }
        | Command::Finish {} => (false, true, false),
    }
}

/// Linux takes no argument of 128 KiB.
const LONGEST_ARGUMENT: usize = 120_000;

/// The options with which a JVM that runs one test and ends starts quickly. The collector is that of the suite's JVM:
/// with another one, less of the same heap can be used.
const QUICK_START: [&str; 2] = ["-Xshare:auto", "-XX:TieredStopAtLevel=1"];

/// A text as one word of an argument file.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
