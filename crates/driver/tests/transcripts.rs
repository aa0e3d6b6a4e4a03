//! The contract between driver and runner: each transcript in `protocol/transcripts` is played
//! against the real runner. That the driver understands the same words is tested beside its types.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::Value;
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// How the driver starts the runner.
const BOOTSTRAP: &str = "import sys; sys.path.insert(0, sys.argv[1]); import unflake_pytest; \
                         sys.exit(unflake_pytest.main())";

/// One VM's end of a conversation.
struct Line {
    messages: BufReader<File>,
    commands: File,
}

impl Line {
    /// Waits for a runner to open the pipes of its VM.
    fn open(folder: &Path, vm: u64) -> Self {
        let messages = File::open(folder.join(format!("{vm}.messages"))).unwrap();
        let commands = folder.join(format!("{vm}.commands"));
        Self {
            messages: BufReader::new(messages),
            commands: OpenOptions::new().write(true).open(commands).unwrap(),
        }
    }

    fn say(&mut self, command: &Value) {
        let line = format!("{command}\n");
        self.commands.write_all(line.as_bytes()).unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.messages.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the runner has hung up");
        serde_json::from_str(&line).unwrap()
    }
}

/// A runner on a project, and the connections that it has made.
struct Stage {
    folder: TempDir,
    lines: BTreeMap<u64, Line>,
    runner: Child,
}

impl Stage {
    fn set(project: &Value, python: &Path) -> Self {
        let folder = TempDir::with_prefix("unflake-transcript-").unwrap();
        let work = folder.path().join("project");
        fs::create_dir(&work).unwrap();
        for (name, text) in project.as_object().unwrap() {
            fs::write(work.join(name), text.as_str().unwrap()).unwrap();
        }
        for vm in 0..2 {
            for pipe in ["messages", "commands"] {
                mkfifo(&folder.path().join(format!("{vm}.{pipe}")), Mode::S_IRWXU).unwrap();
            }
        }
        let runner = Command::new(python)
            .args(["-c", BOOTSTRAP])
            .arg(root().join("runners/pytest"))
            .env("UNFLAKE_CHANNEL", folder.path())
            .env("UNFLAKE_VM", "0")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(work)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            folder,
            lines: BTreeMap::new(),
            runner,
        }
    }

    /// The connection of a VM, which may have to be made first.
    fn line(&mut self, vm: u64) -> &mut Line {
        let folder = self.folder.path();
        self.lines
            .entry(vm)
            .or_insert_with(|| Line::open(folder, vm))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A runner whose driver hangs up ends by itself; one that hangs is killed.
        self.lines.clear();
        drop(self.runner.kill());
        self.runner.wait().unwrap();
    }
}

/// Whether `said` has at least what `expected` has.
fn holds(expected: &Value, said: &Value) -> bool {
    match (expected, said) {
        (Value::Object(expected), Value::Object(said)) => expected
            .iter()
            .all(|(key, value)| said.get(key).is_some_and(|said| holds(value, said))),
        (Value::Array(expected), Value::Array(said)) => {
            expected.len() == said.len()
                && expected.iter().zip(said).all(|(one, two)| holds(one, two))
        }
        (expected, said) => expected == said,
    }
}

fn play(path: &Path, python: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let mut script = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let head = script.next().unwrap();
    let mut stage = Stage::set(&head["project"], python);
    let mut answers = 0;
    for step in script {
        let line = stage.line(step["vm"].as_u64().unwrap_or(0));
        if let Some(command) = step.get("driver") {
            line.say(command);
        } else {
            let (expected, said) = (&step["runner"], line.hear());
            let name = path.display();
            assert!(
                holds(expected, &said),
                "{name}: expected {expected}\nsaid {said}"
            );
            answers += 1;
        }
    }
    assert!(answers > 1, "{} says nothing", path.display());
}

#[test]
fn the_runner_keeps_to_every_transcript() {
    let Some(python) = std::env::var_os("UNFLAKE_TEST_PYTHON") else {
        assert!(
            std::env::var_os("CI").is_none(),
            "UNFLAKE_TEST_PYTHON is not set: run `make test`"
        );
        return;
    };
    let mut paths: Vec<PathBuf> = fs::read_dir(root().join("protocol/transcripts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        play(&path, Path::new(&python));
    }
}
