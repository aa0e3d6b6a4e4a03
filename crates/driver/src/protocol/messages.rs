//! The messages between driver and runner, as `docs/protocol.md` describes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unflake_core::test::TestId;

use crate::protocol::delays::WireDelays;
use crate::protocol::hello::{Hello, Inability};
use crate::protocol::result::{Ran, StopKind};
use crate::protocol::state::{WirePiece, WirePlace};

/// The version of the protocol that this driver speaks.
pub(crate) const PROTOCOL: u32 = 1;

/// A command of the driver to a runner.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Command {
    /// Start the framework with these arguments.
    Start {
        /// The user's framework arguments.
        args: Vec<String>,
        /// Whether the framework's own reports and caches belong to another VM.
        guest: bool,
        /// Whether the VM records what it uses in `<vm>.usage` beside the channel.
        watch: bool,
        /// The folder whose code is to tell of its calls, into `<vm>.trace` beside the channel.
        #[serde(skip_serializing_if = "Option::is_none")]
        trace: Option<String>,
        /// The places at which traced code is delayed; the possible places are written into `<vm>.points`.
        #[serde(skip_serializing_if = "Option::is_none")]
        delays: Option<WireDelays>,
    },
    /// Collect the tests, as this one of several parallel VMs, or alone.
    Collect {
        /// Its number, if there are several workers.
        worker: Option<Worker>,
    },
    /// Run tests one after the other as the framework would, until one of them does not pass.
    Run {
        /// The tests.
        tests: Vec<Name>,
        /// The test that follows the last of them in this VM.
        next: Option<Name>,
    },
    /// Run a test again, unseen by the framework's own reports and plugins that rerun.
    Rerun {
        /// The test, and what follows it; itself, if it is to run once more.
        #[serde(flatten)]
        target: Target,
        /// Whether wider fixtures stay alive; if not, all are torn down first and set up anew.
        keep: bool,
    },
    /// Run each test two times in a row, unseen by reports and plugins that rerun.
    Twice {
        /// The tests.
        tests: Vec<Name>,
        /// The work between the two runs; with `None` each test runs once only.
        between: Option<Between>,
        /// The test that follows the last of them in this VM.
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<Name>,
        /// The pieces of state that are put back before the first.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        restore: Vec<String>,
        /// Whether the state is compared after the last.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        compare: bool,
        /// Whether failures need no text but their message.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        brief: bool,
        /// Whether a copy of this VM does the work, and then ends.
        apart: bool,
        /// The file beside the channel into which a copy writes what it uses from now on.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<String>,
        /// Whether each test has classes that are loaded for it alone.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        reload: bool,
        /// The random generators that a copy draws anew.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        redraw: Vec<String>,
        /// Other tests that copies of that copy run on the way.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        branches: Vec<WireBranch>,
    },
    /// Let the copy that was announced begin.
    Go {},
    /// Remember how the state is now.
    Mark {},
    /// Say what is different from what was marked.
    Compare {
        /// Test files that are imported before.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        import: Vec<String>,
    },
    /// Run tests once, and say where pieces of state are written.
    Locate {
        /// The pieces.
        keys: Vec<String>,
        /// The tests.
        tests: Vec<Name>,
        /// Test files that are imported before.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        import: Vec<String>,
        /// The test that follows the last of them in this VM.
        next: Option<Name>,
    },
    /// Make a copy of this VM that answers as VM `vm`.
    Fork {
        /// The number of the copy.
        vm: u32,
        /// The random generators that it draws anew.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        redraw: Vec<String>,
    },
    /// End the session.
    Finish {},
}

impl Command {
    /// The command as it goes over the channel.
    pub(crate) fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("commands hold only text and numbers");
        line.push(b'\n');
        line
    }
}

/// The work between two runs of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Between {
    /// Nothing: shared fixtures stay alive, as between two tests of a suite.
    Nothing,
    /// All fixtures are torn down.
    TearDown,
    /// The garbage is collected.
    Collect,
}

/// Tests that a copy runs after the first tests of what its original runs.
#[derive(Clone, Debug, Serialize)]
pub struct WireBranch {
    /// The number of tests after which this happens.
    pub after: usize,
    /// The tests.
    pub tests: Vec<Name>,
}

/// One of several VMs that share a suite.
#[derive(Clone, Debug, Serialize)]
pub struct Worker {
    /// Its number, from 0.
    pub number: usize,
    /// The number of workers.
    pub count: usize,
    /// An id that all VMs of the run share.
    pub run: String,
}

/// A test to run, and the test that follows it in this VM.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// The test.
    #[serde(flatten)]
    pub test: Name,
    /// The test that runs next here, so that wider fixtures live as long as in a plain run.
    pub next: Option<Name>,
}

/// A test's id on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// The framework's own name.
    pub test: String,
    /// The place among tests of the same name.
    pub copy: u32,
}

impl From<&TestId> for Name {
    fn from(test_id: &TestId) -> Self {
        Self {
            test: test_id.name().to_owned(),
            copy: test_id.copy(),
        }
    }
}

impl Name {
    /// The name with its place.
    pub(crate) fn as_pair(&self) -> (&str, u32) {
        (&self.test, self.copy)
    }

    /// The id that it stands for.
    pub fn to_id(&self) -> TestId {
        TestId::copy_of(&self.test, self.copy)
    }
}

/// A message of a runner.
#[derive(Debug, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(crate) enum Message {
    /// The runner is there.
    Hello(Hello),
    /// A test had closed the channel, and this connection takes its place.
    Back {},
    /// The runner cannot work in this VM.
    Unable {
        /// The kind of trouble.
        why: Inability,
        /// The details.
        detail: String,
    },
    /// The framework has read its configuration.
    Parsed(Parsed),
    /// The framework has collected.
    Tests(Collected),
    /// A test has run.
    Ran(Ran),
    /// This VM has no such test.
    Unknown {},
    /// A test ended the whole session; the VM ends by itself.
    Stopped {
        /// The way in which it did that.
        why: StopKind,
        /// Its message.
        message: String,
    },
    /// The framework's session is over.
    Finished {
        /// The exit status that the framework is going to end with.
        status: i32,
        /// The number of failures beyond those of tests and of collection.
        extra: u32,
    },
    /// A copy is going to make a copy of itself for a branch, as soon as it gets the command for that.
    Branching {},
    /// A copy of the VM is going to obey the VM's last command, and speaks in place of the VM.
    Apart {
        /// The copy's process.
        pid: i32,
    },
    /// That copy has ended.
    Rejoined {
        /// How, if not as it should.
        how: Option<String>,
    },
    /// The state is remembered.
    Marked {
        /// The state that could not be examined.
        unseen: Vec<String>,
    },
    /// The differences from the state that was marked.
    Changed {
        /// The differences.
        pieces: Vec<WirePiece>,
        /// The state that could not be examined.
        unseen: Vec<String>,
    },
    /// The places at which pieces of state were written.
    Located {
        /// One for each piece.
        places: Vec<WirePlace>,
        /// Why nobody could look, if so.
        #[serde(default)]
        why: Option<String>,
    },
    /// A copy of the VM was made.
    Forked {},
    /// No copy of the VM can be made.
    Unforked {
        /// The number that the copy would have had; none for one that was to work in its place.
        vm: Option<u32>,
        /// Why not.
        why: String,
    },
}

impl Message {
    /// Whether the runner goes on by itself after it.
    pub(crate) fn goes_on(&self) -> bool {
        matches!(self, Self::Ran(ran) if !ran.held)
    }
}

/// The wishes in the framework's configuration.
#[derive(Debug, Deserialize)]
pub struct Parsed {
    /// The number of parallel workers that the project's own options switch on.
    pub workers: Option<Workers>,
    /// Whether the options want a debugger.
    pub interactive: bool,
    /// Whether the options want no test to run.
    pub collect_only: bool,
}

/// A number of workers.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Workers {
    /// This many.
    Count(usize),
    /// As many as there are processors, by whatever word.
    Automatic(String),
}

/// The result of the framework's collection.
#[derive(Debug, Deserialize)]
pub struct Collected {
    /// The folder that names are relative to.
    pub root: String,
    /// The framework's configuration file, if there is one.
    pub config_file: Option<String>,
    /// The tests in the framework's own order.
    pub tests: Vec<Listed>,
    /// The errors of the collection.
    pub errors: Vec<Error>,
    /// Whether the framework runs no test because of these errors.
    pub blocked: bool,
    /// The number of tests that its options leave out.
    pub deselected: usize,
    /// Arguments that make another VM behave as this one.
    pub replay: Vec<String>,
    /// The paths and ids among the arguments.
    pub positional: Vec<String>,
    /// The framework's own reports that its options ask for and that are not written.
    pub left_out: Vec<String>,
    /// The folders from which modules were imported that are not installed.
    pub imported_from: Vec<String>,
    /// The folders in which modules are looked for; not known without it.
    #[serde(default)]
    pub search_path: Option<Vec<String>>,
    /// The packages that are installed beside the project, each with its version; `None` if that is not known.
    #[serde(default)]
    pub installed: Option<Vec<String>>,
    /// The random generators, each with a digest of its state; without one, nobody has seeded it.
    #[serde(default)]
    pub chance: BTreeMap<String, Option<String>>,
}

/// A test in a list.
#[derive(Debug, Deserialize)]
pub struct Listed {
    /// Its name.
    #[serde(flatten)]
    pub name: Name,
    /// The file that defines it, relative to the root.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// A digest of its parameters, if it has any and they can be looked at.
    #[serde(default)]
    pub params: Option<String>,
}

/// Something that could not be collected.
#[derive(Debug, Deserialize)]
pub struct Error {
    /// What.
    #[serde(rename = "where")]
    pub place: String,
    /// The framework's own text.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_one_flat_object() {
        let name = Name::from(&TestId::new("a.py::t[x\ny]"));
        let target = Target {
            test: name.clone(),
            next: Some(name),
        };
        let command = Command::Rerun { target, keep: true };
        assert_eq!(
            serde_json::to_string(&command).unwrap(),
            r#"{"do":"rerun","test":"a.py::t[x\ny]","copy":0,"next":{"test":"a.py::t[x\ny]","copy":0},"keep":true}"#
        );
        assert_eq!(
            serde_json::to_string(&Command::Finish {}).unwrap(),
            r#"{"do":"finish"}"#
        );
    }

    #[test]
    fn unknown_fields_are_ignored_and_unknown_messages_are_not() {
        let known = r#"{"say":"back","vm":3,"mood":"fine"}"#;
        assert!(matches!(
            serde_json::from_str(known).unwrap(),
            Message::Back {}
        ));
        assert!(serde_json::from_str::<Message>(r#"{"say":"sing"}"#).is_err());
    }

    #[test]
    fn the_driver_understands_what_runners_say_in_the_transcripts() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../protocol/transcripts");
        let mut understood = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            for line in text.lines() {
                let step: serde_json::Value = serde_json::from_str(line).unwrap();
                let said = &step["runner"];
                // A transcript may leave out what changes from run to run; these are whole.
                let is_whole = ["ran", "unknown", "forked", "unforked", "parsed"];
                if is_whole.iter().any(|word| said["say"] == *word) {
                    serde_json::from_value::<Message>(complete(said)).expect(line);
                    understood += 1;
                }
            }
        }
        assert!(understood > 5, "the transcripts are not where they were");
    }

    /// An answer with the fields that a transcript leaves out because they vary.
    fn complete(said: &serde_json::Value) -> serde_json::Value {
        let mut said = said.clone();
        if let Some(attempts) = said["attempts"].as_array_mut() {
            for attempt in attempts {
                let varying =
                    serde_json::json!({"seconds": 0.0, "message": "", "text": "", "output": ""});
                for (key, value) in varying.as_object().unwrap() {
                    let attempt = attempt.as_object_mut().unwrap();
                    attempt.entry(key).or_insert_with(|| value.clone());
                }
            }
        }
        said
    }
}
