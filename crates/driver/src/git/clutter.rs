//! Files in a work tree that are no change of the user's, though git does not ignore them: virtual environments,
//! caches, settings of an editor, the reports of this run, and what the run itself wrote.
//!
//! Names count only for files that git does not track: a user who commits such a file wants it to count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use unflake_core::pattern::Pattern;
use unflake_core::rules::Rules;

/// Patterns of `git ls-files --exclude`. `.coveragerc` is not among them: that one is written by hand.
pub(crate) const NAMES: [&str; 16] = [
    "--exclude=.unflake/",
    "--exclude=__pycache__/",
    "--exclude=.pytest_cache/",
    "--exclude=.mypy_cache/",
    "--exclude=.ruff_cache/",
    "--exclude=.tox/",
    "--exclude=.nox/",
    "--exclude=.hypothesis/",
    "--exclude=htmlcov/",
    "--exclude=.coverage",
    "--exclude=.coverage.*",
    "--exclude=node_modules/",
    "--exclude=.idea/",
    "--exclude=.vscode/",
    "--exclude=.gradle/",
    "--exclude=.DS_Store",
];

/// Whether a path is of one of these names, or lies in a folder of such a name.
pub(crate) fn is_of_tools(path: &str) -> bool {
    let patterns = NAMES.iter().filter_map(|option| {
        let name = option.strip_prefix("--exclude=")?;
        Some(Pattern::new(name.trim_end_matches('/')))
    });
    let patterns: Vec<Pattern> = patterns.collect();
    let mut parts = path.split('/');
    parts.any(|part| patterns.iter().any(|pattern| pattern.matches(part)))
}

/// Ends of the names of files that people write, beside those that shape an environment. Tests seldom leave such, and who
/// works while they run does.
const WRITTEN: [&str; 33] = [
    "py",
    "pyi",
    "pyx",
    "pxd",
    "ipynb",
    "java",
    "kt",
    "kts",
    "groovy",
    "scala",
    "c",
    "h",
    "cc",
    "cpp",
    "hpp",
    "rs",
    "go",
    "js",
    "jsx",
    "ts",
    "tsx",
    "rb",
    "php",
    "sh",
    "sql",
    "feature",
    "robot",
    "toml",
    "ini",
    "cfg",
    "properties",
    "yml",
    "yaml",
];

/// The files that this run and earlier ones add to a work tree. By default there are none.
#[derive(Clone, Debug, Default)]
pub struct Clutter {
    /// The reports, by their paths in the work tree.
    reports: BTreeSet<String>,
    run_began: Option<SystemTime>,
    left: Vec<Leftover>,
}

/// Files that an earlier run left behind in a work tree: untracked files that last changed between two times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The one file, by its path in the work tree; `None` for whatever is no source and no settings.
    pub path: Option<String>,
    /// The first time, which still counts.
    pub first: SystemTime,
    /// The last time, which still counts.
    pub last: SystemTime,
}

impl Clutter {
    /// The clutter of a run that reads or writes `reports` and began at `run_began`, in the work tree at
    /// `root`. A report that lies elsewhere is left alone.
    pub fn new(root: &Utf8Path, reports: &[Utf8PathBuf], run_began: Option<SystemTime>) -> Self {
        let inside = reports.iter().filter_map(|report| {
            let path = real_path(report)?;
            Some(path.strip_prefix(root).ok()?.to_string())
        });
        Self {
            reports: inside.collect(),
            run_began,
            left: Vec::new(),
        }
    }

    /// This clutter, with what earlier runs left behind.
    #[must_use]
    pub fn with(self, left: Vec<Leftover>) -> Self {
        Self { left, ..self }
    }

    /// This clutter, without what earlier runs left behind.
    pub(crate) fn of_this_run(&self) -> Self {
        self.clone().with(Vec::new())
    }

    /// The files that this run has left behind when it ended at `ended`: what was written meanwhile, and its reports,
    /// as they are in the work tree at `root` now.
    pub fn left_behind(&self, root: &Utf8Path, ended: SystemTime) -> Vec<Leftover> {
        let window = self.run_began.map(|first| Leftover {
            path: None,
            first,
            last: ended,
        });
        let reports = self.reports.iter().filter_map(|path| {
            let at = changed(&fs::symlink_metadata(root.join(path)).ok()?);
            Some(Leftover {
                path: Some(path.clone()),
                first: at,
                last: at,
            })
        });
        window.into_iter().chain(reports).collect()
    }

    /// Whether a file is what this run or an earlier one wrote, and nobody's work.
    pub(crate) fn is_of_runs(&self, root: &Utf8Path, path: &str) -> bool {
        let is_own = self.is_written_by_run(&root.join(path)) && !is_written_by_people(path);
        is_own || self.is_left_behind(root, path)
    }

    /// Whether an untracked file is what an earlier run left behind. The time of the last change of anything about a
    /// file is the system's own: nobody can set it back.
    pub(crate) fn is_left_behind(&self, root: &Utf8Path, path: &str) -> bool {
        let Some(file) = fs::symlink_metadata(root.join(path))
            .ok()
            .filter(|file| !file.is_dir() && !self.left.is_empty())
        else {
            return false;
        };
        let at = changed(&file);
        self.left.iter().any(|left| {
            let is_within = |at: SystemTime| left.first <= at && at <= left.last;
            let is_it = match &left.path {
                Some(one) => one == path,
                // A file with an older content was put there.
                None => !is_written_by_people(path) && file.modified().is_ok_and(is_within),
            };
            is_it && is_within(at)
        })
    }

    /// Whether it is a report, tracked or not.
    pub(crate) fn is_report(&self, path: &str) -> bool {
        self.reports.contains(path)
    }

    /// Whether a file was written since the run began. A file whose content is older, a copy that kept its
    /// times for example, was not.
    pub(crate) fn is_written_by_run(&self, file: &Utf8Path) -> bool {
        let (Some(began), Ok(file)) = (self.run_began, fs::symlink_metadata(file)) else {
            return false;
        };
        // A folder, another repository for example, has the times of its latest entry.
        let is_later = |at: SystemTime| at > began;
        !file.is_dir() && is_later(changed(&file)) && file.modified().is_ok_and(is_later)
    }
}

/// Tells the user's untracked files from all others, in one work tree.
pub(crate) struct Sieve<'a> {
    clutter: &'a Clutter,
    root: &'a Utf8Path,
    /// The answers so far: whether a folder is clutter.
    folders: BTreeMap<Utf8PathBuf, bool>,
}

impl<'a> Sieve<'a> {
    pub(crate) fn new(clutter: &'a Clutter, root: &'a Utf8Path) -> Self {
        Self {
            clutter,
            root,
            folders: BTreeMap::new(),
        }
    }

    /// Whether an untracked file, or a folder with a `/` at its end, is the user's.
    pub(crate) fn keeps(&mut self, path: &str) -> bool {
        let (is_folder, name) = match path.strip_suffix('/') {
            Some(name) => (true, Utf8Path::new(name)),
            None => (false, Utf8Path::new(path)),
        };
        let folder = if is_folder { Some(name) } else { name.parent() };
        !self.clutter.is_report(path)
            && !folder.is_some_and(|folder| self.is_clutter(folder))
            && !self.clutter.is_written_by_run(&self.root.join(name))
            && !self.clutter.is_left_behind(self.root, path)
    }

    /// Whether a folder or one around it is made by a tool. The top of the work tree never is.
    fn is_clutter(&mut self, folder: &Utf8Path) -> bool {
        if folder.as_str().is_empty() {
            return false;
        }
        if let Some(known) = self.folders.get(folder) {
            return *known;
        }
        let is_around = folder
            .parent()
            .is_some_and(|parent| self.is_clutter(parent));
        let is_clutter = is_around || self.is_made(folder);
        self.folders.insert(folder.to_owned(), is_clutter);
        is_clutter
    }

    fn is_made(&self, folder: &Utf8Path) -> bool {
        is_environment(&self.root.join(folder))
    }
}

/// Whether a folder is a virtual environment, one of conda, or what Maven builds.
fn is_environment(folder: &Utf8Path) -> bool {
    let is_built =
        || folder.file_name() == Some("target") && folder.with_file_name("pom.xml").is_file();
    folder.join("pyvenv.cfg").is_file() || folder.join("conda-meta").is_dir() || is_built()
}

/// Whether a file or folder belongs to a tool, by its name or by what lies in it, where no git can say.
pub(crate) fn is_made_by_tools(root: &Utf8Path, path: &Utf8Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    is_of_tools(name) || OTHER_TOOLS.contains(&name) || is_environment(&root.join(path))
}

/// The folders of tools that keep versions.
const OTHER_TOOLS: [&str; 5] = [".git", ".hg", ".svn", ".bzr", ".jj"];

/// Whether a file may well be a person's work: a source, or settings.
pub(crate) fn is_written_by_people(path: &str) -> bool {
    let rules = Rules::default();
    let extension = Utf8Path::new(path).extension().unwrap_or_default();
    WRITTEN.contains(&extension) || rules.is_always(path) || rules.shapes_environment(path)
}

/// The last time that anything about a file changed, its name and its owner included.
pub(crate) fn changed(file: &Metadata) -> SystemTime {
    let seconds = u64::try_from(file.ctime()).unwrap_or_default();
    let nanoseconds = u32::try_from(file.ctime_nsec()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds)
}

/// A path without symbolic links, also of a file that is not there yet.
fn real_path(path: &Utf8Path) -> Option<Utf8PathBuf> {
    if let Ok(path) = path.canonicalize_utf8() {
        return Some(path);
    }
    let folder = match path.parent()? {
        folder if folder.as_str().is_empty() => Utf8Path::new("."),
        folder => folder,
    };
    // A folder that is not there holds no file that could be taken for a change.
    Some(folder.canonicalize_utf8().ok()?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::git::changes::changes_since;
    use crate::git::repository::scratch::Scratch;

    const TICK: Duration = Duration::from_secs(20);

    fn changes(scratch: &Scratch, clutter: &Clutter) -> Vec<String> {
        let files = changes_since(&scratch.repository(), "HEAD", clutter).unwrap();
        let shown = files.iter();
        let shown = shown.map(|file| format!("{} {}", file.kind.label(), file.path));
        shown.collect()
    }

    #[test]
    fn what_an_earlier_run_left_behind_is_no_change_until_somebody_writes_it() {
        let scratch = Scratch::new();
        scratch.write("a", "");
        scratch.commit();
        let began = SystemTime::now() - Duration::from_secs(60);
        let reports = [scratch.root.join("report.py")];
        for left in ["left.txt", "report.py", "new.py", "pom.xml"] {
            scratch.write(left, "");
        }
        let earlier = Clutter::new(&scratch.root, &reports, Some(began));
        let left = earlier.left_behind(&scratch.root, SystemTime::now() + TICK);
        let clutter = Clutter::default().with(left.clone());
        assert_eq!(
            changes(&scratch, &clutter),
            ["added new.py", "added pom.xml"]
        );
        // A file that was written outside of the run is a person's, whatever its times pretend.
        let over: Vec<Leftover> = left
            .into_iter()
            .map(|left| Leftover {
                last: left.first - TICK,
                first: left.first - TICK - TICK,
                ..left
            })
            .collect();
        let copied = File::options()
            .append(true)
            .open(scratch.root.join("left.txt"))
            .unwrap();
        copied.set_modified(over[0].first + TICK / 2).unwrap();
        let clutter = Clutter::default().with(over);
        assert_eq!(
            changes(&scratch, &clutter),
            [
                "added left.txt",
                "added new.py",
                "added pom.xml",
                "added report.py"
            ]
        );
    }

    #[test]
    fn what_tools_leave_is_no_change_wherever_it_lies() {
        let scratch = Scratch::new();
        scratch.write("pom.xml", "");
        scratch.commit();
        let left = [
            ".venv/pyvenv.cfg",
            ".venv/lib/python3/site-packages/a.py",
            "deep/env/pyvenv.cfg",
            "deep/env/bin/python",
            "miniconda/conda-meta/history",
            "web/node_modules/a/index.js",
            "deep/__pycache__/a.pyc",
            ".pytest_cache/v/cache/lastfailed",
            ".mypy_cache/3.12/a.json",
            ".ruff_cache/a",
            ".tox/py/a.py",
            ".nox/py/a.py",
            ".hypothesis/examples/a",
            "htmlcov/index.html",
            ".coverage",
            ".coverage.host.123",
            ".unflake/history",
            "target/classes/A.class",
            ".idea/workspace.xml",
            ".vscode/settings.json",
        ];
        for path in left {
            scratch.write(path, "1\n");
        }
        assert!(changes(&scratch, &Clutter::default()).is_empty());
    }

    #[test]
    fn what_only_looks_like_it_is_a_change() {
        let scratch = Scratch::new();
        scratch.write("node_modules/own.js", "1\n");
        scratch.write(".vscode/settings.json", "1\n");
        scratch.commit();
        scratch.write("node_modules/own.js", "2\n");
        scratch.git(&["rm", "--quiet", "--cached", ".vscode/settings.json"]);
        // The work tree itself may be a virtual environment, and only Maven builds into `target`.
        scratch.write("pyvenv.cfg", "1\n");
        scratch.write("new.py", "1\n");
        scratch.write("target/a.py", "1\n");
        scratch.write(".coveragerc", "1\n");
        let expected = [
            "added .coveragerc",
            "deleted .vscode/settings.json",
            "added new.py",
            "modified node_modules/own.js",
            "added pyvenv.cfg",
            "added target/a.py",
        ];
        assert_eq!(changes(&scratch, &Clutter::default()), expected);
    }

    #[test]
    fn a_report_is_no_change_tracked_or_not() {
        let scratch = Scratch::new();
        scratch.write("tracked.xml", "1\n");
        scratch.commit();
        scratch.write("tracked.xml", "2\n");
        scratch.write("out/report.xml", "1\n");
        scratch.write("out/other.xml", "1\n");
        let root = &scratch.root;
        let reports = [
            root.join("tracked.xml"),
            root.join("out/../out/report.xml"),
            root.join("not-there-yet.xml"),
            Utf8PathBuf::from("/elsewhere/report.xml"),
        ];
        let clutter = Clutter::new(root, &reports, None);
        scratch.write("not-there-yet.xml", "1\n");
        assert_eq!(changes(&scratch, &clutter), ["added out/other.xml"]);
    }

    #[test]
    fn an_untracked_file_that_the_run_wrote_is_no_change() {
        let scratch = Scratch::new();
        scratch.write("tracked", "1\n");
        scratch.commit();
        scratch.write("tracked", "2\n");
        scratch.write("new.py", "1\n");
        let times = [
            (SystemTime::UNIX_EPOCH, vec!["modified tracked"]),
            (
                SystemTime::now() + Duration::from_secs(3600),
                vec!["added new.py", "modified tracked"],
            ),
        ];
        for (began, expected) in times {
            let clutter = Clutter::new(&scratch.root, &[], Some(began));
            assert_eq!(changes(&scratch, &clutter), expected);
        }
    }

    #[test]
    fn a_file_with_older_content_was_not_written_by_the_run() {
        let scratch = Scratch::new();
        scratch.commit();
        scratch.write("copied.py", "1\n");
        let path = scratch.root.join("copied.py");
        let file = File::options().write(true).open(path).unwrap();
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        file.set_modified(at(1000)).unwrap();
        let clutter = Clutter::new(&scratch.root, &[], Some(at(2000)));
        assert_eq!(changes(&scratch, &clutter), ["added copied.py"]);
        // Its times are those of its latest entry.
        scratch.git(&["init", "--quiet", "vendored"]);
        assert_eq!(
            changes(&scratch, &clutter),
            ["added copied.py", "submodule vendored"]
        );
    }
}
