//! The Python that the project uses.

use std::env;
use std::process::Command;
use std::time::SystemTime;

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

/// The folders of the packages beside an interpreter.
pub(crate) fn package_folders(python: &Utf8Path) -> Vec<Utf8PathBuf> {
    let home = python.parent().and_then(Utf8Path::parent);
    let libraries = home.and_then(|home| home.join("lib").read_dir_utf8().ok());
    let mut folders: Vec<Utf8PathBuf> = libraries
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().starts_with("python"))
        .flat_map(|entry| ["site-packages", "dist-packages"].map(|name| entry.path().join(name)))
        .collect();
    folders.sort();
    folders.retain(|folder| folder.is_dir());
    folders
}

/// The times at which packages were last installed beside an interpreter, or removed: such folders change then.
pub(crate) fn packages_changed(python: &Utf8Path) -> Vec<SystemTime> {
    let folders = package_folders(python);
    let times = folders.iter().filter_map(|folder| folder.metadata().ok());
    times.filter_map(|folder| folder.modified().ok()).collect()
}

/// The version of an interpreter, asked of itself; `None` if it does not answer like Python.
pub fn ask_version(python: &Utf8Path) -> Option<(u32, u32)> {
    let question = "import sys; print('%d %d' % sys.version_info[:2])";
    let answer = Command::new(python).args(["-c", question]).output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    #[test]
    fn packages_that_were_installed_since_are_noticed() {
        let home = tempfile::tempdir().unwrap();
        let packages = home.path().join("lib/python3.11/site-packages");
        fs::create_dir_all(&packages).unwrap();
        let python = Utf8PathBuf::try_from(home.path().join("bin/python")).unwrap();
        let before = packages_changed(&python);
        assert_eq!(before.len(), 1);
        let later = before[0] + Duration::from_secs(5);
        let folder = fs::File::open(&packages).unwrap();
        folder.set_modified(later).unwrap();
        assert_eq!(packages_changed(&python), [later]);
        assert!(packages_changed(Utf8Path::new("python")).is_empty());
    }
}
