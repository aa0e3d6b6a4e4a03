//! An error for people: what we tried, why it failed, and what to do next.

use std::path::PathBuf;

use anyhow::Error;
use camino::Utf8PathBuf;
use unflake_dashboard::ServeError;
use unflake_dashboard::tokens::TokenError;
use unflake_driver::framework::maven::capture::CaptureError;
use unflake_driver::lab::run_error::RunError;
use unflake_driver::lab::start_error::StartError;
use unflake_history::import::ColumnError;
use unflake_history::periods::PeriodError;
use unflake_history::store::StoreError;

use crate::Exit;
use crate::config::ConfigError;
use crate::view::printable::printable_lines;
use crate::view::report::plural;

/// Trouble with what the user gave us, found before anything ran.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("no Python was found")]
    NoPython,
    #[error("there is no Python at `{python}`")]
    NoSuchPython { python: Utf8PathBuf },
    #[error("there is no pom.xml in {folder}")]
    NoPom { folder: Utf8PathBuf },
    #[error("{folder} is a project of {tool}, and unflake runs tests with pytest or Maven")]
    OtherBuild {
        folder: Utf8PathBuf,
        tool: &'static str,
        /// The way in which its reports come into the history.
        reports: &'static str,
    },
    #[error("the calls of JUnit tests cannot be traced yet")]
    NoTracer,
    #[error("cannot write {file}")]
    ReportFile {
        file: Utf8PathBuf,
        source: std::io::Error,
    },
    #[error("cannot read the report {file}")]
    Report {
        file: Utf8PathBuf,
        source: anyhow::Error,
    },
    #[error("there is no *.xml in {folder}")]
    NoReports { folder: Utf8PathBuf },
    #[error("`{text}` is no date")]
    Date { text: String },
    #[error("the level of confidence is not between 0 and 100 %")]
    Level,
    #[error(transparent)]
    Columns(ColumnError),
    #[error("there is nothing to record at {path}")]
    NothingToRecord { path: Utf8PathBuf },
    #[error("cannot read the quarantine {path}: {why}")]
    Quarantine { path: Utf8PathBuf, why: String },
    #[error("`{url}` is no address of a server")]
    Server { url: String },
    #[error("no test of the history is in this project")]
    NothingToRun,
    #[error("the current folder's name is not valid UTF-8: {}", .path.display())]
    FolderName { path: PathBuf },
}

/// The most lines of the framework's output that are shown with an error: its last ones.
const SHOWN_LINES: usize = 30;

/// The text for standard error, and the exit code.
pub(crate) fn explain(error: &Error) -> (String, Exit) {
    let (more, exit) = advise(error);
    let causes = error
        .chain()
        .skip(1)
        .map(|cause| ("cause:", cause.to_string()));
    let mut text = format!("error: {error}");
    for (title, lines) in causes.chain(more) {
        let indented = lines.replace('\n', "\n         ");
        text = format!("{text}\n  {title:<6} {indented}");
    }
    (printable_lines(&text), exit)
}

fn advise(error: &Error) -> (Vec<(&'static str, String)>, Exit) {
    let help = |text: &str| vec![("help:", text.to_owned())];
    if let Some(error) = error.downcast_ref::<RunError>() {
        return advise_run(error);
    }
    if let Some(error) = error.downcast_ref::<CaptureError>() {
        return advise_capture(error);
    }
    if error.downcast_ref::<ConfigError>().is_some() {
        let text = "docs/guide.md lists the keys of unflake.toml";
        return (help(text), Exit::Usage);
    }
    if let Some(trouble) = error.downcast_ref::<Trouble>() {
        let text = match trouble {
            Trouble::NoPython => {
                "activate the project's virtualenv, or name its interpreter with --python PATH"
            }
            Trouble::NoSuchPython { .. } => {
                "--python takes an interpreter, the folder of a virtualenv, or a command on the path"
            }
            Trouble::NoPom { .. } => {
                "go to the root of the Maven project, or of one of its modules"
            }
            Trouble::OtherBuild { reports, .. } => {
                let text = format!(
                    "{reports} into the history, and `unflake rates`, `unstable` and `next` answer from it; for \
                     Python tests name an interpreter with --python"
                );
                return (help(&text), Exit::Usage);
            }
            Trouble::NoTracer => {
                "`unflake why` works for pytest only; try `unflake run` and `unflake order` for JUnit tests"
            }
            Trouble::ReportFile { .. } => "nothing was run; name a file in a folder that exists",
            Trouble::Report { .. } | Trouble::NoReports { .. } => {
                "triage reads JUnit XML, as `pytest --junitxml report.xml` writes it"
            }
            Trouble::Date { .. } => "dates are written 2019-04-15",
            Trouble::Level => "--level is a share: 95% or 0.95",
            Trouble::Columns(_) => "write --column test=TestCase, once for each column",
            Trouble::NothingToRecord { .. } => {
                "name files, folders with *.xml, *.csv or *.ndjson in them, or `-` for standard input"
            }
            Trouble::Quarantine { .. } => {
                "each test has a table [[quarantine]] with the keys test, reason and until; owner is optional"
            }
            Trouble::Server { .. } => "an address is written http://127.0.0.1:7777 or https://…",
            Trouble::NothingToRun => "`unflake list` shows the tests of this project",
            Trouble::FolderName { .. } => "move the project to a folder with a plain name",
        };
        return (help(text), Exit::Usage);
    }
    if let Some(error) = error.downcast_ref::<StoreError>() {
        return advise_store(error);
    }
    if let Some(error) = error.downcast_ref::<ServeError>() {
        return advise_serve(error);
    }
    if let Some(error) = error.downcast_ref::<TokenError>() {
        return (help(advise_token(error)), Exit::Usage);
    }
    if let Some(error) = error.downcast_ref::<PeriodError>() {
        let text = match error {
            PeriodError::NoRuns => {
                "`unflake run` adds its runs, and `unflake record` those of other tools"
            }
            PeriodError::NoRelease { .. } => {
                "name one of these, or leave --release out to compare days with days"
            }
            PeriodError::Store(error) => return advise_store(error),
        };
        return (help(text), Exit::Usage);
    }
    (Vec::new(), Exit::CannotRun)
}

fn advise_capture(error: &CaptureError) -> (Vec<(&'static str, String)>, Exit) {
    let mut parts = Vec::new();
    let help = match error {
        CaptureError::NoSupport => {
            "install a JDK and build unflake again: it compiles its runner for JUnit with `javac`"
        }
        CaptureError::NoMaven { .. } => "install Maven, or add the project's `mvnw`",
        CaptureError::Failed {
            output, command, ..
        } => {
            parts.push(("wrote:", last_lines(output)));
            parts.push((
                "help:",
                format!("make `{command}` work, then start unflake again"),
            ));
            return (parts, Exit::CannotRun);
        }
        CaptureError::NoTests { skipped, .. } if !skipped.is_empty() => {
            let names = skipped.join(", ");
            let text =
                format!("the build's settings skip the tests of {names}: look for skipTests");
            return (vec![("help:", text)], Exit::CannotRun);
        }
        CaptureError::NoTests {
            selecting: Some(option),
            ..
        } => {
            let text = format!("no test matches `{option}`; `unflake list` shows the tests");
            return (vec![("help:", text)], Exit::CannotRun);
        }
        CaptureError::NoTests { .. } => {
            "go to the project's root; Surefire looks for classes that are named *Test, Test* or *Tests"
        }
        CaptureError::Unsupported { .. } => {
            "unflake runs JUnit 4, JUnit 5 and JUnit 3 classes on JUnit 4; name other modules: \
             `unflake run -- -pl MODULE`"
        }
        CaptureError::NotStarted { .. } => {
            "this is a bug in unflake, or an unknown Surefire: please report it with its version"
        }
        CaptureError::Keep { .. } => "check that the folder can be written and has room",
    };
    parts.push(("help:", help.to_owned()));
    (parts, Exit::CannotRun)
}

fn advise_serve(error: &ServeError) -> (Vec<(&'static str, String)>, Exit) {
    let (text, exit) = match error {
        ServeError::NeedsTokens { .. } => (
            "`unflake token add NAME --role edit --tokens FILE` makes one; then start with --tokens FILE, \
             or listen on 127.0.0.1",
            Exit::Usage,
        ),
        ServeError::Listen { .. } => (
            "another program may use the port: name another with --listen 127.0.0.1:PORT",
            Exit::CannotRun,
        ),
        ServeError::Start(_) => (
            "check the limits on threads and open files",
            Exit::CannotRun,
        ),
        ServeError::Store(error) => return advise_store(error),
    };
    (vec![("help:", text.to_owned())], exit)
}

fn advise_token(error: &TokenError) -> &'static str {
    match error {
        TokenError::File { .. } => {
            "`unflake token add NAME --role report` makes it; --tokens names another"
        }
        TokenError::Syntax { .. } => "name another with --tokens, or make it anew",
        TokenError::Taken { .. } => "revoke it first, or choose another name",
        TokenError::Missing { .. } => "`unflake token list` shows those that there are",
        TokenError::Random => "try again in a moment",
    }
}

fn advise_store(error: &StoreError) -> (Vec<(&'static str, String)>, Exit) {
    let text = match error {
        StoreError::Missing { .. } => {
            "`unflake run` makes it with its first run, `unflake record` with the first report; \
             --store names another"
        }
        StoreError::Open { .. } => "check that its folder exists and may be written to",
        StoreError::Newer { .. } => "use the unflake that made it, or a newer one",
        StoreError::Damaged { .. } => {
            "nothing was changed; name another with --store, or restore it from a backup"
        }
        StoreError::Busy { .. } => "try again when the other process has ended",
        StoreError::Write { .. } => "check the room on its disk, and that it may be written to",
    };
    (vec![("help:", text.to_owned())], Exit::CannotRun)
}

fn advise_ended(framework: &str, output: &str) -> Vec<(&'static str, String)> {
    let mut parts = Vec::new();
    if !output.trim().is_empty() {
        parts.push(("wrote:", last_lines(output)));
    }
    let text = if framework == "pytest" {
        "run `python -m pytest --collect-only` to see pytest's full message"
    } else {
        "run `mvn test` to see whether Surefire's own JVM starts"
    };
    parts.push(("help:", text.to_owned()));
    parts
}

fn advise_run(error: &RunError) -> (Vec<(&'static str, String)>, Exit) {
    let help = |text: String| vec![("help:", text)];
    match error {
        RunError::EndedEarly {
            framework, output, ..
        } => (advise_ended(framework, output), Exit::CannotRun),
        RunError::NoPytest { python, detail } => {
            let text = format!(
                "install it with `{python} -m pip install pytest`, or name the project's \
                 interpreter with --python"
            );
            (
                vec![("cause:", detail.clone()), ("help:", text)],
                Exit::CannotRun,
            )
        }
        RunError::NoJunit { detail } => {
            let text = "add JUnit to the test dependencies of the module".to_owned();
            (
                vec![("cause:", detail.clone()), ("help:", text)],
                Exit::CannotRun,
            )
        }
        RunError::OldPytest { python, .. } => (
            help(format!(
                "upgrade it with `{python} -m pip install -U pytest`"
            )),
            Exit::CannotRun,
        ),
        RunError::OldPython { .. } => (
            help("name a newer interpreter of the project with --python".to_owned()),
            Exit::Usage,
        ),
        RunError::NoTests { deselected: 0, .. } => (
            help(
                "go to the project's root, or name paths after `--`: `unflake run -- tests/`; \
                 pytest looks for test_*.py"
                    .to_owned(),
            ),
            Exit::CannotRun,
        ),
        RunError::NoTests { deselected, .. } => (
            help(format!(
                "{} found and deselected: check -k, -m and --deselect",
                plural(*deselected, "test was", "tests were")
            )),
            Exit::CannotRun,
        ),
        RunError::NoSuchTest { .. } => (
            help(
                "`unflake list` shows the tests; paths and options for pytest go after `--`"
                    .to_owned(),
            ),
            Exit::Usage,
        ),
        RunError::Interactive => (
            help("leave --pdb and --trace out: unflake reads what pytest writes".to_owned()),
            Exit::Usage,
        ),
        RunError::CollectOnly => (
            help("`unflake list` shows the tests".to_owned()),
            Exit::Usage,
        ),
        RunError::Protocol { .. } => (
            help("this is a bug in unflake: please report it with this message".to_owned()),
            Exit::OurBug,
        ),
        RunError::Start(StartError::Protocol { .. }) => (
            help("two versions of unflake are mixed: install one of them again".to_owned()),
            Exit::OurBug,
        ),
        RunError::Start(StartError::Scratch(_)) => (
            help("check that the temporary folder (TMPDIR) exists and has room".to_owned()),
            Exit::CannotRun,
        ),
        RunError::Start(StartError::Spawn { .. }) => (
            help(
                "for pytest, name the project's interpreter with --python PATH; for JUnit, see \
                 that JAVA_HOME names a JDK"
                    .to_owned(),
            ),
            Exit::CannotRun,
        ),
        RunError::Against(error) => {
            let text = match error.fetch_command() {
                Some(fetch) => format!("run `{fetch}`, or name another revision with --base"),
                None => "name a revision of this repository with --base, or leave --base, \
                         --intersect and --check-base out"
                    .to_owned(),
            };
            (help(text), Exit::Usage)
        }
        RunError::Interrupted => (Vec::new(), Exit::Interrupted),
    }
}

fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}
