//! The user's command that makes a checkout of the base ready to run: a build, generated code, an environment.

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::blame::question::BaseEnvironment;
use unflake_core::rules::says_installed;

use super::base::Unready;
use crate::git::difference::Difference;
use crate::lab::session::Halt;
use crate::vm::errand::{Errand, Limit};

/// Runs the command in a shell, in the checkout's folder; an inner error says why the base is not ready.
pub(crate) fn run(
    command: &str,
    folder: &Utf8Path,
    limit: &Limit,
) -> Result<Result<(), Unready>, Halt> {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(folder)
        // An active environment is that of the work tree.
        .env_remove("VIRTUAL_ENV");
    let unready = match limit.run(&mut shell) {
        Ok(Errand::Interrupted) => return Err(Halt::Interrupted),
        Ok(Errand::Ended { status, .. }) if status.success() => return Ok(Ok(())),
        Ok(Errand::Ended { status, output }) => {
            let last = output.trim_end().lines().last();
            let last = last.map_or_else(String::new, |line| format!(": {}", line.trim()));
            Unready::CannotRun(format!("its setup `{command}` failed ({status}){last}"))
        }
        Ok(Errand::TooLate { after }) => Unready::TooSlow(format!(
            "its setup `{command}` had not ended after {:.0} s",
            after.as_secs_f64()
        )),
        Err(error) => {
            Unready::CannotRun(format!("its setup `{command}` cannot be started: {error}"))
        }
    };
    Ok(Err(unready))
}

/// The interpreter of an environment in a folder or above it, up to the top of the checkout, and not of a link to one
/// elsewhere.
pub(crate) fn interpreter_in(folder: &Utf8Path, top: &Utf8Path) -> Option<Utf8PathBuf> {
    let folders = folder.ancestors().take_while(|one| one.starts_with(top));
    let mut homes = folders.flat_map(|one| [".venv", "venv"].map(|name| one.join(name)));
    let home = homes.find(|home| {
        let real = home.canonicalize_utf8();
        let is_inside = real.is_ok_and(|real| real.starts_with(top));
        is_inside && home.join("pyvenv.cfg").is_file() && home.join("bin/python").is_file()
    })?;
    Some(home.join("bin/python"))
}

/// What the base runs with after the command: its own packages only if that made an environment for them, and nothing
/// of the user's is found before or beside those.
pub(crate) fn environment(made: Option<&Utf8Path>, difference: &Difference) -> BaseEnvironment {
    let shared = made.map_or_else(
        || Some("its setup made no .venv in the checkout".to_owned()),
        |python| shares_packages(python, &difference.root),
    );
    let changed = difference.changes.iter().map(|change| &change.file.path);
    let settled = changed.filter(|path| shared.is_none() && says_installed(path));
    BaseEnvironment {
        settled: settled.cloned().collect(),
        why: shared,
    }
}

/// Why an environment has packages that the user's has too, if it has.
fn shares_packages(python: &Utf8Path, root: &Utf8Path) -> Option<String> {
    let home = python.parent().and_then(Utf8Path::parent)?;
    let text = std::fs::read_to_string(home.join("pyvenv.cfg")).unwrap_or_default();
    let is_open = |line: &str| {
        let (key, value) = line.split_once('=').unwrap_or_default();
        key.trim() == "include-system-site-packages" && value.trim().eq_ignore_ascii_case("true")
    };
    if text.lines().any(is_open) {
        return Some("its setup made an environment with the system's packages".to_owned());
    }
    let named = std::env::var("PYTHONPATH").unwrap_or_default();
    let mut named = named.split(':').map(Utf8Path::new);
    let shared = named.find(|folder| !folder.starts_with(root) && has_packages(folder))?;
    Some(format!("PYTHONPATH names {shared}, which has packages"))
}

fn has_packages(folder: &Utf8Path) -> bool {
    let mut entries = folder.read_dir_utf8().into_iter().flatten().flatten();
    entries.any(|entry| {
        let extension = entry.path().extension();
        matches!(extension, Some("dist-info" | "egg-info" | "egg-link"))
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::vm::interrupter::Interrupter;

    fn run_for(command: &str, folder: &Utf8Path, time: Option<Duration>) -> Result<(), Unready> {
        let limit = Limit {
            interrupter: Interrupter::default(),
            deadline: time.map(|time| Instant::now() + time),
        };
        run(command, folder, &limit).unwrap_or_else(|_| panic!("nobody interrupted it"))
    }

    #[test]
    fn a_command_that_fails_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        assert_eq!(run_for("touch made", folder, None), Ok(()));
        assert!(folder.join("made").exists());
        let error = run_for("echo no compiler >&2; exit 3", folder, None).unwrap_err();
        let error = error.why();
        assert!(
            error.contains("exit status: 3") && error.ends_with("no compiler"),
            "{error}"
        );
    }

    #[test]
    fn a_command_that_has_no_time_says_that() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let error = run_for("sleep 1000", folder, Some(Duration::from_millis(10)));
        let why = "its setup `sleep 1000` had not ended after 0 s".to_owned();
        assert_eq!(error, Err(Unready::TooSlow(why)));
    }

    #[test]
    fn an_environment_is_the_bases_own_only_if_it_lies_there() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let folder = folder.canonicalize_utf8().unwrap();
        let top = folder.join("base");
        let place = |home: &Utf8Path| {
            std::fs::create_dir_all(home.join("bin")).unwrap();
            std::fs::write(home.join("bin/python"), "").unwrap();
            std::fs::write(home.join("pyvenv.cfg"), "").unwrap();
        };
        std::fs::create_dir_all(top.join("service")).unwrap();
        place(&folder.join(".venv"));
        std::os::unix::fs::symlink(folder.join(".venv"), top.join("service/.venv")).unwrap();
        assert_eq!(interpreter_in(&top.join("service"), &top), None);
        place(&top.join("venv"));
        let own = interpreter_in(&top.join("service"), &top);
        assert_eq!(own, Some(top.join("venv/bin/python")));
    }
}
