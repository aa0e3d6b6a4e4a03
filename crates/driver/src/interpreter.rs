//! Which Python the project uses.

use std::env;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};

/// The oldest Python that the runner works on.
pub const OLDEST: (u32, u32) = (3, 8);

/// The project's interpreter: the active virtualenv's, the project's `.venv` or `venv`, the active
/// conda environment's, or the first on the path.
pub fn find_interpreter(folder: &Utf8Path) -> Option<Utf8PathBuf> {
    let active = |variable: &str| env::var(variable).ok().map(Utf8PathBuf::from);
    let folders = [
        active("VIRTUAL_ENV"),
        Some(folder.join(".venv")),
        Some(folder.join("venv")),
        active("CONDA_PREFIX"),
    ];
    let mut inside = folders
        .into_iter()
        .flatten()
        .map(|home| home.join("bin/python"));
    inside.find(|python| python.is_file()).or_else(on_path)
}

fn on_path() -> Option<Utf8PathBuf> {
    let path = env::var("PATH").ok()?;
    let names = ["python3", "python"];
    let mut candidates = names.iter().flat_map(|name| {
        let folders = path.split(':').filter(|folder| !folder.is_empty());
        folders.map(move |folder| Utf8Path::new(folder).join(name))
    });
    candidates.find(|python| python.is_file())
}

/// The version of an interpreter, asked of itself; `None` if it does not answer like Python.
pub fn ask_version(python: &Utf8Path) -> Option<(u32, u32)> {
    let question = "import sys; print('%d %d' % sys.version_info[:2])";
    let answer = Command::new(python).args(["-c", question]).output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
