//! The use of changes by a failing run of the suite itself, as the system alone sees it: for changes of which nothing
//! else can tell.
//!
//! The suite runs unwatched, so that a suite that passes pays nothing. The system sees every process that opens a file
//! or lists a folder. It does not see a process that asks whether a file is there, nor what a process holds that was
//! started before. So the answer is for documents only, from which no process is made, and only if none of them was
//! deleted.

use std::collections::BTreeSet;

use super::{Intersection, Unknown, intersect, is_prose};
use crate::change::{Change, ChangeKind, ChangedFile};
use crate::rules::Rules;
use crate::usage::Usage;

/// Whether the system's watch alone can tell that nobody used a change.
pub fn is_told_by_opening(file: &ChangedFile, rules: &Rules) -> bool {
    let is_content = match file.kind {
        ChangeKind::Added => true,
        // Without lines it is another mode, which nobody opens a file for.
        ChangeKind::Modified => !file.lines.is_empty(),
        ChangeKind::Deleted | ChangeKind::Submodule => false,
    };
    is_content && is_prose(&file.path) && !rules.is_always(&file.path)
}

/// Through which changes a run went that failed in the suite. `seen` is what the system saw until then of the files in
/// `watched`.
pub fn intersect_at_failure(
    changes: &[Change],
    seen: &Usage,
    watched: &BTreeSet<String>,
    rules: &Rules,
) -> Intersection {
    let mut found = intersect(changes, seen, rules);
    let relevant = changes
        .iter()
        .filter(|change| !rules.is_never(&change.file.path));
    let mut unseen = relevant.filter(|change| {
        !is_told_by_opening(&change.file, rules) || !watched.contains(&change.file.path)
    });
    if unseen.next().is_some() {
        found.unknowns.push(Unknown::NotWatched);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Lines;
    use crate::intersect::How;

    fn change(path: &str, kind: ChangeKind) -> Change {
        let (folder, _) = path.rsplit_once('/').unwrap_or(("", path));
        Change {
            file: ChangedFile {
                path: path.to_owned(),
                kind,
                lines: vec![Lines { first: 1, last: 1 }],
            },
            source: None,
            folders: vec![folder.to_owned()],
        }
    }

    fn ask(change: &Change, seen: &Usage) -> Intersection {
        let changes = std::slice::from_ref(change);
        let watched = BTreeSet::from([change.file.path.clone()]);
        intersect_at_failure(changes, seen, &watched, &Rules::default())
    }

    #[test]
    fn documents_that_nobody_opened_were_not_used() {
        for path in ["README.md", "docs/a.rst", "docs/a.adoc"] {
            for kind in [ChangeKind::Modified, ChangeKind::Added] {
                let found = ask(&change(path, kind), &Usage::default());
                assert!(found.is_disjoint(), "{path}: {found:?}");
            }
        }
    }

    #[test]
    fn what_may_be_used_without_being_opened_is_not_told() {
        let mode = Change {
            file: ChangedFile {
                lines: Vec::new(),
                ..change("README.md", ChangeKind::Modified).file
            },
            ..change("README.md", ChangeKind::Modified)
        };
        for change in [
            change("README.md", ChangeKind::Deleted),
            change("docs/vendored.md", ChangeKind::Submodule),
            mode,
            // A process may hold it, or somebody asks for its size.
            change("shop/cart.py", ChangeKind::Modified),
            change("data/rates.json", ChangeKind::Modified),
            change("templates/mail.txt", ChangeKind::Modified),
            // They shape every run.
            change("requirements/README.md", ChangeKind::Modified),
            change("pyproject.toml", ChangeKind::Modified),
        ] {
            assert!(!ask(&change, &Usage::default()).is_disjoint(), "{change:?}");
        }
    }

    #[test]
    fn a_document_that_was_opened_or_whose_folder_was_listed_was_used() {
        let mut seen = Usage::default();
        let file = seen.files.entry("docs/a.md".to_owned()).or_default();
        file.is_read = true;
        let found = ask(&change("docs/a.md", ChangeKind::Modified), &seen);
        assert_eq!(found.touches[0].how, How::Read);
        let mut seen = Usage::default();
        seen.listed.insert("docs".to_owned());
        let found = ask(&change("docs/a.md", ChangeKind::Added), &seen);
        assert_eq!(found.touches[0].how, How::Listed);
        let found = ask(&change("docs/a.md", ChangeKind::Modified), &seen);
        assert!(found.is_disjoint(), "the list has the same names");
    }

    #[test]
    fn a_document_that_nobody_watched_is_unknown() {
        let changes = [
            change("a.md", ChangeKind::Modified),
            change("b.md", ChangeKind::Modified),
        ];
        let watched = BTreeSet::from(["a.md".to_owned()]);
        let ask = |rules: &Rules| {
            intersect_at_failure(&changes, &Usage::default(), &watched, rules).is_disjoint()
        };
        assert!(!ask(&Rules::default()));
        assert!(ask(&Rules::with(&[], &["b.md".to_owned()])));
    }

    #[test]
    fn what_git_does_not_follow_is_not_ruled_out_by_documents() {
        let document = change("a.md", ChangeKind::Modified);
        let mut seen = Usage::default();
        seen.generated.insert("shop/_version.py".to_owned());
        assert!(!ask(&document, &seen).is_disjoint());
        let mut seen = Usage::default();
        seen.listed.insert(".git".to_owned());
        assert!(!ask(&document, &seen).is_disjoint());
        let mut seen = Usage::default();
        let copy = "/venv/lib/site-packages/a.md".to_owned();
        seen.elsewhere.insert(copy);
        assert!(!ask(&document, &seen).is_disjoint());
    }
}
