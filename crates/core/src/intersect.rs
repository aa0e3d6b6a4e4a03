//! INTERSECT: does a failing run depend on what changed? (Eloussi 2015, 3 (3), 4.4 and Ch. 5)
//!
//! Safe before precise: a change is ruled out only where every way in which a run could depend on it
//! was watched. What could not be watched is an unknown, and with an unknown nothing is disjoint.

mod at_failure;
mod copies;
mod native;
mod stack;
mod unknown;
mod unwatched;

pub use at_failure::{intersect_at_failure, is_told_by_opening};
pub use copies::is_copy;
use native::native_unknown;
pub use stack::on_stack;
pub use unknown::Unknown;
use unwatched::unwatched;

use crate::change::{Change, ChangeKind, Function, Lines, Source};
use crate::rules::Rules;
use crate::usage::{Asked, FileUse, Usage};

/// Through which changes a run went, and what nobody can know about it.
pub fn intersect(changes: &[Change], usage: &Usage, rules: &Rules) -> Intersection {
    let relevant: Vec<&Change> = changes
        .iter()
        .filter(|change| !rules.is_never(&change.file.path))
        .collect();
    let mut found = Intersection::default();
    let mut unused = Vec::new();
    for change in &relevant {
        let path = &change.file.path;
        let touches = if rules.is_always(path) {
            vec![Touch::whole(change, How::CannotRuleOut)]
        } else {
            touches_of(change, usage)
        };
        if touches.is_empty() {
            found.unknowns.extend(native_unknown(change, usage));
            unused.push(*change);
        }
        found.touches.extend(touches);
    }
    if unused.iter().any(|change| !is_prose(&change.file.path)) {
        let services = usage.talked.iter().cloned();
        found.unknowns.extend(services.map(Unknown::Service));
    }
    if !relevant.is_empty() {
        found.unknowns.extend(unwatched(&unused, usage));
        let programs = usage.unfollowed.iter().cloned();
        found.unknowns.extend(programs.map(Unknown::Process));
        let is_git = |path: &String| path == ".git" || path.starts_with(".git/");
        let reads_git = |(path, file): (&String, &FileUse)| is_git(path) && file.is_read;
        if usage.files.iter().any(reads_git) || usage.listed.iter().any(is_git) {
            found.unknowns.push(Unknown::Repository);
        }
        let generated = usage.generated.iter();
        let generated = generated.filter(|path| !rules.is_never(path)).cloned();
        found.unknowns.extend(generated.map(Unknown::Generated));
        let missed = usage.missed.iter().cloned();
        found.unknowns.extend(missed.map(Unknown::Missed));
    }
    let hidden = usage.hidden.iter().filter(|path| !rules.is_never(path));
    found.unknowns.extend(hidden.cloned().map(Unknown::Hidden));
    found.unknowns.dedup();
    found
}

/// The relation of a run to the changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intersection {
    /// The changes that it used.
    pub touches: Vec<Touch>,
    /// What it may have used without being seen.
    pub unknowns: Vec<Unknown>,
}

/// Whether no process is made from such a file.
fn is_prose(path: &str) -> bool {
    matches!(path.rsplit_once('.'), Some((_, "md" | "rst" | "adoc")))
}

impl Intersection {
    /// The files and processes through which a change may have come into a run of the base as well: with them, a
    /// failure there says nothing about the base.
    pub fn shared_with_base(&self) -> Vec<String> {
        let unknowns = self.unknowns.iter().filter_map(|unknown| match unknown {
            Unknown::Generated(path) | Unknown::Outside(path) => Some(path.clone()),
            Unknown::Service(what) => Some(format!("what listens on {what}")),
            Unknown::Process(_)
            | Unknown::NativeSource { .. }
            | Unknown::NativeReader { .. }
            | Unknown::Hidden(_)
            | Unknown::Repository
            | Unknown::Missed(_)
            | Unknown::Unwatched { .. }
            | Unknown::LeftBehind { .. }
            | Unknown::AnotherFailure
            | Unknown::NotWatched => None,
        });
        unknowns.collect()
    }

    /// Whether the run used a file that git does not track, and that differs at the base or is missing there.
    pub fn has_generated(&self) -> bool {
        let mut unknowns = self.unknowns.iter();
        unknowns.any(|unknown| matches!(unknown, Unknown::Generated(_)))
    }

    /// Whether the run shows that it depends on no change.
    pub fn is_disjoint(&self) -> bool {
        self.touches.is_empty() && self.unknowns.is_empty()
    }
}

/// A change that a run went through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The file.
    pub path: String,
    /// How the file differs.
    pub kind: ChangeKind,
    /// The function, if it is one; else the file's own block or the whole file.
    pub function: Option<String>,
    /// The changed lines of it, in the work tree's version.
    pub lines: Vec<Lines>,
    /// How the run depends on it.
    pub how: How,
}

/// How a run depends on a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It ran the function.
    Ran,
    /// It imported the file, so its module-level code ran.
    Imported,
    /// It read the file.
    Read,
    /// It asked whether the file is there, or for its times.
    LookedAt,
    /// It listed the folder that the file came to or went from.
    Listed,
    /// It looked for a module that this file was.
    Sought,
    /// It used a copy of the file that lies elsewhere.
    Copy {
        /// Where.
        path: String,
    },
    /// Every test may depend on such a file.
    CannotRuleOut,
}

impl How {
    /// What the run did with the change: a verb in the past tense.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Imported => "imported",
            Self::Read => "read",
            Self::LookedAt => "looked for",
            Self::Listed => "listed its folder",
            Self::Sought => "tried to import",
            Self::Copy { .. } => "used a copy",
            Self::CannotRuleOut => "may depend on it",
        }
    }
}

impl Touch {
    fn whole(change: &Change, how: How) -> Self {
        Self {
            path: change.file.path.clone(),
            kind: change.file.kind,
            function: None,
            lines: change.file.lines.clone(),
            how,
        }
    }
}

fn touches_of(change: &Change, usage: &Usage) -> Vec<Touch> {
    let path = &change.file.path;
    let by_file = match change.file.kind {
        ChangeKind::Modified => modified(change, usage),
        ChangeKind::Added | ChangeKind::Deleted => came_or_went(change, usage),
        ChangeKind::Submodule => submodule(change, usage),
    };
    if !by_file.is_empty() {
        return by_file;
    }
    if is_scanned(change, usage) {
        return vec![Touch::whole(change, How::LookedAt)];
    }
    let mut copies = usage.elsewhere.iter().filter(|copy| is_copy(path, copy));
    let copy = copies.next().cloned();
    let touch = copy.map(|path| Touch::whole(change, How::Copy { path }));
    touch.into_iter().collect()
}

fn modified(change: &Change, usage: &Usage) -> Vec<Touch> {
    let Some(file) = usage.files.get(&change.file.path) else {
        return Vec::new();
    };
    // Every import looks for its source, but not for the mode of the source.
    let is_mode_only = change.file.lines.is_empty();
    let tells_by_looks = is_mode_only || !change.file.is_python();
    let is_looked_at = match file.asked {
        Some(Asked::Status) => true,
        Some(Asked::Presence) => tells_by_looks,
        None => false,
    };
    if file.is_read {
        vec![Touch::whole(change, How::Read)]
    } else if is_looked_at {
        vec![Touch::whole(change, How::LookedAt)]
    } else if let Some(source) = change.source.as_ref().filter(|_| !usage.is_by_line) {
        blocks(change, source, file, usage.blind.is_some())
    } else if file.has_content() {
        vec![Touch::whole(change, How::Imported)]
    } else {
        Vec::new()
    }
}

/// A file whose folder was listed with the sizes and times of its files.
fn is_scanned(change: &Change, usage: &Usage) -> bool {
    let (folder, _) = split(&change.file.path);
    change.file.kind == ChangeKind::Modified && usage.scanned.contains(folder)
}

/// The changed blocks of a source file that ran.
fn blocks(change: &Change, source: &Source, file: &FileUse, is_blind: bool) -> Vec<Touch> {
    if !file.has_content() {
        return Vec::new();
    }
    let mut found = Vec::new();
    if source.is_changed {
        let in_function = |line: u32| {
            let mut changed = source.functions.iter().filter(|one| one.is_changed);
            changed.any(|function| function.lines.contains(line))
        };
        let mut lines = change.file.lines.clone();
        lines.retain(|lines| !(in_function(lines.first) && in_function(lines.last)));
        let mut touch = Touch::whole(change, How::Imported);
        if !lines.is_empty() {
            touch.lines = lines;
        }
        found.push(touch);
    }
    for (place, function) in source.functions.iter().enumerate() {
        if function.is_changed && (is_blind || has_run(source, place, file)) {
            found.push(Touch {
                function: Some(function.name.clone()),
                lines: lines_in(change, function),
                ..Touch::whole(change, How::Ran)
            });
        }
    }
    found
}

/// Whether a function ran, judged by the line where the code that ran begins.
///
/// Code that begins where no function does is a class body or a generator expression; it ran as a
/// part of the innermost function around it.
fn has_run(source: &Source, place: usize, file: &FileUse) -> bool {
    let function = &source.functions[place];
    let starts = |line: u32| {
        let mut functions = source.functions.iter();
        functions.any(|one| one.starts.contains(&line))
    };
    let innermost = |line: u32| {
        let around = source
            .functions
            .iter()
            .rposition(|one| one.lines.contains(line));
        around == Some(place)
    };
    let mut ran = file.ran.iter();
    ran.any(|line| function.starts.contains(line) || (!starts(*line) && innermost(*line)))
}

fn lines_in(change: &Change, function: &Function) -> Vec<Lines> {
    let lines = change.file.lines.iter();
    lines
        .filter_map(|lines| lines.shared(function.lines))
        .collect()
}

fn came_or_went(change: &Change, usage: &Usage) -> Vec<Touch> {
    let path = &change.file.path;
    let file = usage.files.get(path);
    // The outermost of the folders was there before and is still: the others came or went as well.
    let own_folders = change.folders.split_last().map_or(&[][..], |(_, own)| own);
    let mut folders = own_folders.iter();
    let how = if file.is_some_and(|file| file.is_imported || !file.ran.is_empty()) {
        Some(How::Imported)
    } else if file.is_some_and(|file| file.is_read) {
        Some(How::Read)
    } else if file.is_some() || folders.any(|folder| usage.files.contains_key(folder)) {
        Some(How::LookedAt)
    } else if is_sought(path, own_folders, usage) {
        Some(How::Sought)
    } else if change
        .folders
        .iter()
        .any(|folder| usage.listed.contains(folder))
    {
        Some(How::Listed)
    } else {
        None
    };
    how.map(|how| Touch::whole(change, how))
        .into_iter()
        .collect()
}

/// Whether a run looked for a module that the file is, or for a package that its folder is.
fn is_sought(path: &str, own_folders: &[String], usage: &Usage) -> bool {
    let is_place = |place: (&str, &str)| {
        let (folder, name) = place;
        usage.sought.contains(&(folder.to_owned(), name.to_owned()))
    };
    module_place(path).is_some_and(is_place)
        || own_folders.iter().any(|folder| is_place(split(folder)))
}

/// Anything used inside a repository inside this one depends on its change.
fn submodule(change: &Change, usage: &Usage) -> Vec<Touch> {
    let path = &change.file.path;
    let is_inside = |used: &String| {
        used == path
            || used
                .strip_prefix(path)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    let sought = usage.sought.iter().map(|(folder, _)| folder);
    let mut used = usage.files.keys().chain(&usage.listed).chain(sought);
    let is_used = used.any(is_inside);
    let touch = is_used.then(|| Touch::whole(change, How::Read));
    touch.into_iter().collect()
}

/// The folder and the name under which a file would be found as a module.
fn module_place(path: &str) -> Option<(&str, &str)> {
    let (folder, name) = split(path);
    let (stem, ending) = name.split_once('.')?;
    if !matches!(ending.rsplit('.').next(), Some("py" | "pyc" | "so" | "pyd")) {
        return None;
    }
    Some(if stem == "__init__" {
        split(folder)
    } else {
        (folder, stem)
    })
}

/// A path's folder, `""` at the root, and its last part.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any};

    use super::*;
    use crate::change::ChangedFile;
    use crate::usage::Native;

    fn change(path: &str, kind: ChangeKind) -> Change {
        let line = Lines { first: 1, last: 1 };
        Change {
            file: ChangedFile {
                path: path.to_owned(),
                kind,
                lines: vec![line],
            },
            source: None,
            folders: vec![split(path).0.to_owned()],
        }
    }

    /// A file with a function at line 1, one inside it at line 2, and one after them at line 5.
    fn functions(changed: usize) -> Change {
        let function = |name: &str, first: u32, last: u32| Function {
            name: name.to_owned(),
            starts: vec![first],
            lines: Lines { first, last },
            is_changed: false,
        };
        let mut functions = vec![
            function("a", 1, 4),
            function("a.b", 2, 3),
            function("c", 5, 6),
        ];
        functions[changed].is_changed = true;
        let is_changed = false;
        Change {
            source: Some(Source {
                is_changed,
                functions,
            }),
            ..change("far/cart.py", ChangeKind::Modified)
        }
    }

    fn ran(lines: &[u32]) -> Usage {
        let mut usage = Usage::default();
        let file = usage.files.entry("far/cart.py".to_owned()).or_default();
        file.is_imported = true;
        file.ran.extend(lines);
        usage
    }

    /// Usages of a run that have nothing to do with changes far away.
    fn near() -> impl Strategy<Value = Usage> {
        let file = (0u8..9, any::<(bool, bool)>(), 0u8..3, 0u32..9);
        let files = proptest::collection::vec(file, 0..9);
        (files, any::<(bool, bool, bool)>()).prop_map(
            |(files, (is_blind, is_by_line, is_watched))| {
                let mut usage = Usage::default();
                for (number, (is_imported, is_read), asked, line) in files {
                    let ending = if number % 2 == 0 { "py" } else { "txt" };
                    let file = FileUse {
                        is_imported,
                        is_read,
                        asked: [None, Some(Asked::Presence), Some(Asked::Status)]
                            [usize::from(asked)],
                        ran: [line].into(),
                    };
                    usage.files.insert(format!("near/{number}.{ending}"), file);
                    usage.listed.insert(format!("near/{number}"));
                    usage.scanned.insert("near".to_owned());
                    usage.sought.insert(("near".to_owned(), number.to_string()));
                    usage
                        .elsewhere
                        .insert(format!("/usr/share/{number}.{ending}"));
                }
                usage.blind = is_blind.then(|| "another tracer".to_owned());
                usage.is_by_line = is_by_line;
                usage.is_kernel_watched = is_watched;
                usage
            },
        )
    }

    /// Changes far away from what `near` uses.
    fn far() -> impl Strategy<Value = Vec<Change>> {
        let kinds = [
            ChangeKind::Added,
            ChangeKind::Modified,
            ChangeKind::Deleted,
            ChangeKind::Submodule,
        ];
        let endings = ["py", "txt", "c", "so", "pyi"];
        let one = (0usize..4, 0usize..5, 0u8..9).prop_map(move |(kind, ending, number)| {
            change(&format!("far/{number}.{}", endings[ending]), kinds[kind])
        });
        proptest::collection::vec(one, 0..9)
    }

    /// A change, and what a run does that depends on it.
    fn plant(which: usize, usage: &mut Usage) -> (Change, How) {
        let path = "planted/deep/cart.txt".to_owned();
        let module = "planted/deep/cart.py".to_owned();
        let file = |usage: &mut Usage, path: &str, used: FileUse| {
            usage.files.insert(path.to_owned(), used);
        };
        let looked = |asked| FileUse {
            asked: Some(asked),
            ..FileUse::default()
        };
        let read = FileUse {
            is_read: true,
            ..FileUse::default()
        };
        let imported = FileUse {
            is_imported: true,
            ..FileUse::default()
        };
        match which {
            0 => {
                *usage = Usage {
                    is_by_line: false,
                    ..usage.clone()
                };
                usage.files.extend(ran(&[5]).files);
                (functions(2), How::Ran)
            }
            1 => {
                file(usage, &module, imported);
                (change(&module, ChangeKind::Modified), How::Imported)
            }
            2 => {
                file(usage, &path, read);
                (change(&path, ChangeKind::Modified), How::Read)
            }
            3 => {
                file(usage, &path, looked(Asked::Presence));
                (change(&path, ChangeKind::Deleted), How::LookedAt)
            }
            4 => {
                file(usage, &module, looked(Asked::Status));
                (change(&module, ChangeKind::Modified), How::LookedAt)
            }
            5 => {
                usage.scanned.insert("planted/deep".to_owned());
                (change(&path, ChangeKind::Modified), How::LookedAt)
            }
            6 => {
                usage.listed.insert("planted/deep".to_owned());
                (change(&path, ChangeKind::Added), How::Listed)
            }
            7 => {
                usage
                    .sought
                    .insert(("planted/deep".to_owned(), "cart".to_owned()));
                (change(&module, ChangeKind::Deleted), How::Sought)
            }
            8 => {
                // The folder is new as well, and was looked for as a package.
                usage
                    .sought
                    .insert(("planted".to_owned(), "deep".to_owned()));
                let folders = vec!["planted/deep".to_owned(), "planted".to_owned()];
                (
                    Change {
                        folders,
                        ..change(&module, ChangeKind::Added)
                    },
                    How::Sought,
                )
            }
            9 => {
                file(usage, "planted", looked(Asked::Presence));
                let folders = vec![
                    "planted/deep".to_owned(),
                    "planted".to_owned(),
                    String::new(),
                ];
                (
                    Change {
                        folders,
                        ..change(&path, ChangeKind::Added)
                    },
                    How::LookedAt,
                )
            }
            10 => {
                let path = "/venv/lib/site-packages/deep/cart.py".to_owned();
                usage.elsewhere.insert(path.clone());
                (change(&module, ChangeKind::Modified), How::Copy { path })
            }
            11 => {
                usage.listed.insert("planted/deep/inner".to_owned());
                (change("planted/deep", ChangeKind::Submodule), How::Read)
            }
            _ => (
                change("planted/setup.cfg", ChangeKind::Modified),
                How::CannotRuleOut,
            ),
        }
    }

    proptest::proptest! {
        /// What is planted is found, whatever else a run uses and whatever else has changed.
        #[test]
        fn a_planted_dependency_is_never_disjoint(
            mut usage in near(), mut changes in far(), which in 0usize..13, place: usize,
        ) {
            let (change, how) = plant(which, &mut usage);
            let path = change.file.path.clone();
            changes.insert(place % (changes.len() + 1), change);
            let found = intersect(&changes, &usage, &Rules::default());
            assert!(!found.is_disjoint());
            assert!(found.touches.iter().any(|touch| touch.path == path && touch.how == how));
        }

        #[test]
        fn what_a_run_does_not_use_is_disjoint(usage in near(), changes in far()) {
            let found = intersect(&changes, &usage, &Rules::default());
            assert!(found.is_disjoint(), "{found:?}");
        }

        #[test]
        fn what_nobody_saw_is_never_disjoint(mut usage in near(), changes in far(), which in 0u8..6) {
            let text = || "it".to_owned();
            match which {
                0 => drop(usage.unfollowed.insert(text())),
                1 => drop(usage.missed.insert(text())),
                2 => drop(usage.generated.insert(text())),
                3 => drop(usage.listed.insert(".git".to_owned())),
                4 => {
                    let file = usage.files.entry(".git/HEAD".to_owned()).or_default();
                    file.is_read = true;
                }
                _ => {
                    usage.is_kernel_watched = false;
                    usage.natives.insert(Native { path: text(), is_own: true });
                }
            }
            let found = intersect(&changes, &usage, &Rules::default());
            let is_text = |one: &Change| !one.file.is_python();
            let can_matter = if which < 5 { !changes.is_empty() } else { changes.iter().any(is_text) };
            assert_eq!(found.is_disjoint(), !can_matter, "{found:?}");
        }
    }

    #[test]
    fn a_function_has_run_if_its_code_has_or_a_part_of_it() {
        let touched = |changed: usize, lines: &[u32]| {
            let found = intersect(&[functions(changed)], &ran(lines), &Rules::default());
            found
                .touches
                .into_iter()
                .filter_map(|touch| touch.function)
                .collect::<Vec<_>>()
        };
        assert_eq!(touched(0, &[1]), ["a"]);
        assert_eq!(touched(1, &[1]), [""; 0], "the inner function did not run");
        assert_eq!(touched(1, &[1, 2]), ["a.b"]);
        assert_eq!(
            touched(1, &[3]),
            ["a.b"],
            "a comprehension in the inner function"
        );
        assert_eq!(
            touched(0, &[4]),
            ["a"],
            "a class body in the outer function"
        );
        assert_eq!(touched(0, &[3, 5]), [""; 0]);
    }

    #[test]
    fn a_blind_run_may_have_run_every_function_of_a_file_that_it_imported() {
        let mut usage = ran(&[]);
        let found = intersect(&[functions(2)], &usage, &Rules::default());
        assert!(found.is_disjoint());
        usage.blind = Some("another tracer".to_owned());
        let found = intersect(&[functions(2)], &usage, &Rules::default());
        assert_eq!(found.touches[0].function.as_deref(), Some("c"));
    }

    #[test]
    fn a_run_that_counts_lines_depends_on_the_layout_of_what_it_imports() {
        let mut usage = ran(&[]);
        usage.is_by_line = true;
        let found = intersect(&[functions(2)], &usage, &Rules::default());
        assert_eq!(found.touches[0].how, How::Imported);
    }

    #[test]
    fn a_file_that_is_gone_may_be_missed_by_a_library_even_under_the_systems_eye() {
        let mut usage = Usage {
            is_kernel_watched: true,
            ..Usage::default()
        };
        let path = "lxml.so".to_owned();
        usage.natives.insert(Native {
            path,
            is_own: false,
        });
        let gone = change("page.xml", ChangeKind::Deleted);
        let there = change("page.xml", ChangeKind::Modified);
        assert!(!intersect(&[gone], &usage, &Rules::default()).is_disjoint());
        assert!(intersect(&[there], &usage, &Rules::default()).is_disjoint());
    }

    #[test]
    fn a_file_that_came_may_be_looked_for_by_libraries_of_the_project_and_by_its_own_calls() {
        let disjoint = |path: &str, is_own: bool, change: Change| {
            let mut usage = Usage {
                is_kernel_watched: true,
                ..Usage::default()
            };
            let path = path.to_owned();
            usage.natives.insert(Native { path, is_own });
            intersect(&[change], &usage, &Rules::default()).is_disjoint()
        };
        let came = || change("FLAG", ChangeKind::Added);
        assert!(!disjoint("ctypes", false, came()));
        assert!(!disjoint("/tree/fast.so", true, came()));
        assert!(disjoint("/venv/numpy/core.so", false, came()));
        assert!(disjoint("ctypes", false, change("a.py", ChangeKind::Added)));
        let mut mode = change("run.sh", ChangeKind::Modified);
        assert!(disjoint("ctypes", false, mode.clone()));
        mode.file.lines.clear();
        assert!(!disjoint("ctypes", false, mode.clone()));
        assert!(disjoint("/venv/numpy/core.so", false, mode));
    }

    #[test]
    fn a_file_that_git_does_not_look_at_is_unknown_even_if_nothing_changed() {
        let mut usage = Usage::default();
        usage.hidden.insert("local.cfg".to_owned());
        assert!(!intersect(&[], &usage, &Rules::default()).is_disjoint());
        let rules = Rules::with(&[], &["local.cfg".to_owned()]);
        assert!(intersect(&[], &usage, &rules).is_disjoint());
    }

    #[test]
    fn a_copy_is_told_by_its_tail() {
        let installed = "/venv/lib/python3.12/site-packages/shop/cart.py";
        assert!(is_copy("src/shop/cart.py", installed));
        assert!(is_copy("shop/cart.py", "/project/build/lib/shop/cart.py"));
        assert!(!is_copy(
            "src/shop/cart.py",
            "/venv/lib/site-packages/other/cart.py"
        ));
        assert!(!is_copy("src/shop/cart.py", "/elsewhere/cart.py"));
    }
}
