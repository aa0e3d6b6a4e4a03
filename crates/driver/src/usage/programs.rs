//! The programs that a watched run started: which of them were followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;

use camino::{Utf8Path, Utf8PathBuf};

use crate::usage::facts::Spawned;

/// Programs that tell something about the machine and read nothing of a project.
const HARMLESS: [&str; 14] = [
    "arch",
    "getconf",
    "hostname",
    "id",
    "ldconfig",
    "locale",
    "lsb_release",
    "nproc",
    "sleep",
    "stty",
    "true",
    "tty",
    "uname",
    "whoami",
];

/// The number of bytes of a script that are read to see which program runs it.
const FIRST_LINE: u64 = 256;

/// The programs whose doings are not known. A Python process that was followed said so when it began.
pub(crate) fn unfollowed_programs(
    spawned: &[Spawned],
    processes: &[(i64, i64)],
) -> BTreeSet<String> {
    let mut unfollowed = BTreeSet::new();
    let mut missing: BTreeMap<i64, i64> = BTreeMap::new();
    for (_, parent) in processes {
        *missing.entry(*parent).or_default() -= 1;
    }
    let mut pythons: BTreeMap<i64, &Spawned> = BTreeMap::new();
    for one in spawned {
        let Some(program) = one.words.first() else {
            continue;
        };
        if is_python(program) {
            *missing.entry(one.by).or_default() += 1;
            pythons.insert(one.by, one);
        } else if !is_harmless(program) {
            unfollowed.insert(describe(one));
        }
    }
    for (by, one) in pythons {
        if missing.get(&by).is_some_and(|missing| *missing > 0) {
            unfollowed.insert(describe(one));
        }
    }
    unfollowed
}

/// A program of the project may have the name of one of the system's.
fn is_harmless(program: &str) -> bool {
    let folders = ["/bin", "/sbin", "/usr/bin", "/usr/sbin"];
    let (folder, name) = program.rsplit_once('/').unwrap_or(("/bin", program));
    folders.contains(&folder) && HARMLESS.contains(&name)
}

/// A program as people know it: a shell's by its command.
fn describe(spawned: &Spawned) -> String {
    let words = &spawned.words;
    let name = words.first().map_or("", String::as_str);
    let name = Utf8Path::new(name).file_name().unwrap_or(name);
    let is_shell = matches!(name, "sh" | "bash" | "dash" | "zsh");
    match words.get(2).map(String::as_str) {
        Some("-c") if is_shell => words.get(3).cloned().unwrap_or_default(),
        Some(_) | None => name.to_owned(),
    }
}

fn is_python(program: &str) -> bool {
    let name = Utf8Path::new(program).file_name().unwrap_or(program);
    let is_named = |language: &str| {
        let version = name.strip_prefix(language);
        version.is_some_and(|rest| rest.chars().all(|one| one.is_ascii_digit() || one == '.'))
    };
    is_named("python") || is_named("pypy") || is_python_script(program)
}

/// Whether a program is a script whose first line names Python, as installed commands are.
fn is_python_script(program: &str) -> bool {
    let found = if program.contains('/') {
        Some(Utf8PathBuf::from(program))
    } else {
        let folders = std::env::var("PATH").unwrap_or_default();
        let places = folders
            .split(':')
            .map(|folder| Utf8Path::new(folder).join(program));
        places.into_iter().find(|place| place.is_file())
    };
    let mut start = Vec::new();
    let read = found.map(|path| File::open(path)?.take(FIRST_LINE).read_to_end(&mut start));
    let Some(Ok(_)) = read else { return false };
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or(&start);
    line.starts_with(b"#!") && String::from_utf8_lossy(line).contains("python")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spawned(by: i64, words: &[&str]) -> Spawned {
        let words = words.iter().map(ToString::to_string).collect();
        Spawned { by, words }
    }

    fn unfollowed(spawned: &[Spawned], processes: &[(i64, i64)]) -> Vec<String> {
        unfollowed_programs(spawned, processes)
            .into_iter()
            .collect()
    }

    #[test]
    fn a_python_process_that_said_so_was_followed() {
        let python = spawned(1, &["/venv/bin/python3.12", "python", "-c", "pass"]);
        assert_eq!(
            unfollowed(std::slice::from_ref(&python), &[(2, 1)]),
            [""; 0]
        );
        assert_eq!(
            unfollowed(std::slice::from_ref(&python), &[(2, 9)]),
            ["python3.12"],
            "another's child"
        );
        let twice = [python.clone(), python];
        assert_eq!(
            unfollowed(&twice, &[(2, 1)]),
            ["python3.12"],
            "one of two is missing"
        );
    }

    #[test]
    fn other_programs_are_named_unless_they_read_nothing_of_a_project() {
        let programs = [
            spawned(1, &["/usr/bin/uname", "uname", "-p"]),
            spawned(1, &["/bin/sh", "/bin/sh", "-c", "cat data | python x.py"]),
            spawned(1, &["make", "make", "assets"]),
        ];
        let expected = ["cat data | python x.py", "make"];
        assert_eq!(
            unfollowed(&programs, &[(2, 1)]),
            expected,
            "a shell hides what it runs"
        );
    }

    #[test]
    fn a_script_is_known_by_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("tool");
        std::fs::write(&script, "#!/venv/bin/python\nprint()").unwrap();
        assert!(is_python(script.to_str().unwrap()));
        std::fs::write(&script, "#!/bin/sh\npython").unwrap();
        assert!(!is_python(script.to_str().unwrap()));
        assert!(!is_python("pythonic-tool-that-nobody-has"));
    }
}
