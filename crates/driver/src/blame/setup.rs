//! The user's command that makes a checkout of the base ready to run: a build, generated code, an environment.

use std::process::{Command, Stdio};

use camino::Utf8Path;

/// Runs the command in a shell, in the checkout's folder; an error says why it failed.
pub(crate) fn run(command: &str, folder: &Utf8Path) -> Result<(), String> {
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .stdin(Stdio::null())
        // An active environment is that of the work tree.
        .env_remove("VIRTUAL_ENV")
        .output();
    let output =
        output.map_err(|error| format!("its setup `{command}` cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let last = text.trim_end().lines().last().unwrap_or_default().trim();
    Err(format!(
        "its setup `{command}` failed ({}): {last}",
        output.status
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        assert_eq!(run("touch made", folder), Ok(()));
        assert!(folder.join("made").exists());
        let error = run("echo no compiler >&2; exit 3", folder).unwrap_err();
        assert!(
            error.contains("exit status: 3") && error.ends_with("no compiler"),
            "{error}"
        );
    }
}
