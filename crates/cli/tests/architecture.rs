//! The map of `docs/architecture.md`, held to: edges between crates, headers, and file lengths.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The most lines that a file may have before its tests.
const LONGEST: usize = 400;

/// Which of our crates each may use.
const EDGES: [(&str, &[&str]); 5] = [
    ("core", &[]),
    ("driver", &["unflake-core"]),
    ("history", &["unflake-core"]),
    ("dashboard", &["unflake-core", "unflake-history"]),
    (
        "cli",
        &[
            "unflake-core",
            "unflake-dashboard",
            "unflake-driver",
            "unflake-history",
        ],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == ending)
        {
            found.push(path);
        }
    }
}

/// Our own code: all of the crates, and the guests that live in other people's VMs.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root().join("crates"), "rs", &mut found);
    files(&root().join("runners"), "py", &mut found);
    assert!(found.len() > 20, "the sources are not where they were");
    found
}

#[test]
fn crates_use_each_other_only_along_the_edges() {
    let folders = fs::read_dir(root().join("crates")).unwrap();
    let folders: BTreeSet<String> = folders
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let known: BTreeSet<String> = EDGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(
        folders, known,
        "a new crate needs its edges here and in docs/architecture.md"
    );
    for (name, allowed) in EDGES {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let manifest: toml::Table = fs::read_to_string(manifest).unwrap().parse().unwrap();
        let used = manifest["dependencies"].as_table().unwrap().keys();
        let ours: Vec<&String> = used.filter(|one| one.starts_with("unflake")).collect();
        assert_eq!(ours, allowed, "the edges of {name}");
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let is_headed = text.starts_with("//! ") || text.starts_with("\"\"\"");
        assert!(is_headed, "{} has no header", path.display());
    }
}

#[test]
fn no_file_holds_more_than_one_idea() {
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("\n#[cfg(test)]").next().unwrap();
        let lines = code.lines().count();
        assert!(
            lines <= LONGEST,
            "{}: {lines} lines before its tests",
            path.display()
        );
    }
}

#[test]
fn no_file_has_a_name_that_says_nothing() {
    let empty = [
        "utils",
        "helpers",
        "common",
        "misc",
        "types",
        "imp",
        "manager",
        "context",
        "constants",
    ];
    for path in sources() {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert!(
            !empty.contains(&stem) && stem != "mod",
            "{}",
            path.display()
        );
    }
}

/// Folders of a crate, each with those of them that it may use.
const ROOMS: [(&str, &str, &[&str]); 8] = [
    ("history", "store", &[]),
    ("history", "junit", &[]),
    ("history", "import", &["junit", "store"]),
    ("history", "sqlite", &["store"]),
    ("dashboard", "http", &[]),
    ("dashboard", "board", &["http"]),
    ("dashboard", "page", &["board", "http"]),
    ("dashboard", "api", &["board", "http", "page"]),
];

#[test]
fn folders_use_each_other_in_one_direction() {
    for (crate_name, room, allowed) in ROOMS {
        let sources = root().join("crates").join(crate_name).join("src");
        let mut found = vec![sources.join(room).with_extension("rs")];
        files(&sources.join(room), "rs", &mut found);
        assert!(
            found.len() > 2,
            "{room} of {crate_name} is not where it was"
        );
        let others = ROOMS.iter().filter(|(name, other, _)| {
            *name == crate_name && *other != room && !allowed.contains(other)
        });
        for (_, other, _) in others {
            for path in &found {
                let text = fs::read_to_string(path).unwrap();
                let uses = text.contains(&format!("crate::{other}::"));
                assert!(!uses, "{} uses {other}", path.display());
            }
        }
    }
}

/// The most source files that stand side by side in a folder.
const FULLEST: usize = 15;
/// Folders that are still fuller.
const OVERFULL: [&str; 2] = ["cli/tests", "core"];

#[test]
fn no_room_is_overfull() {
    let mut rooms = BTreeMap::new();
    for path in sources() {
        let below = path.strip_prefix(root().join("crates")).ok();
        let room = below.and_then(Path::parent).map(Path::to_owned);
        if let Some(room) = room.filter(|room| !OVERFULL.iter().any(|one| room.starts_with(one))) {
            *rooms.entry(room).or_insert(0) += 1;
        }
    }
    assert!(rooms.len() > 10, "{rooms:?}");
    let full: Vec<_> = rooms
        .iter()
        .filter(|(_, count)| **count > FULLEST)
        .collect();
    assert!(full.is_empty(), "{full:?}");
}

#[test]
fn every_file_that_the_architecture_page_names_exists() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let crates = ["core", "driver", "history", "dashboard", "cli"];
    let mut found = 0;
    for name in page.split('`').skip(1).step_by(2) {
        // Globs, commands and names of one part are no paths.
        if !name.contains('/') || name.contains(['*', ' ']) {
            continue;
        }
        let (first, rest) = name.split_once('/').unwrap();
        let path = match first {
            "end_to_end" => root().join("crates/cli/tests").join(name),
            one if crates.contains(&one)
                && !rest.starts_with("src/")
                && !rest.starts_with("tests/") =>
            {
                root().join("crates").join(one).join("src").join(rest)
            }
            one if crates.contains(&one) => root().join("crates").join(name),
            _ => root().join(name),
        };
        let is_there = path.exists()
            || path.with_extension("rs").exists()
            || path.with_extension("py").exists();
        assert!(is_there, "docs/architecture.md names {name}");
        found += 1;
    }
    assert!(found > 50, "{found}");
}

#[test]
fn one_place_knows_which_engine_keeps_a_history() {
    let mut found = Vec::new();
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let path = path.strip_prefix(root()).unwrap().to_str().unwrap();
        let is_engine = path.starts_with("crates/history/src/sqlite");
        let is_test = path.ends_with("tests/architecture.rs");
        if text.contains("Sqlite") && !is_engine && !is_test {
            found.push(path.to_owned());
        }
    }
    assert_eq!(found, ["crates/history/src/engine.rs"]);
}

#[test]
fn every_dependency_has_a_reason() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap();
    let section = section.split("\n[").next().unwrap();
    let mut is_reasoned = false;
    for line in section.lines().filter(|line| !line.is_empty()) {
        let is_ours = line.starts_with("unflake-");
        // Packages of one family share the line above them.
        let is_family = line.starts_with("serde_json") || line.starts_with("hyper =");
        assert!(
            line.starts_with('#') || is_reasoned || is_ours || is_family,
            "no reason: {line}"
        );
        is_reasoned = line.starts_with('#');
    }
}
