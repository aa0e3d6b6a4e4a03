//! What a runner leaves open that follows code only: who reads, looks for or lists a file, and what Maven makes of it.

use std::collections::BTreeSet;

use super::{Unknown, is_prose};
use crate::change::{Change, ChangeKind, ChangedFile};
use crate::usage::Usage;

/// The doubts about changes that nothing seems to use, and about files that an earlier run may have left.
pub(super) fn unwatched(unused: &[&Change], usage: &Usage) -> Vec<Unknown> {
    let Some(roots) = &usage.only_code else {
        return Vec::new();
    };
    let files = unused.iter().map(|change| &change.file);
    let files = files.filter(|file| !is_prose(&file.path));
    let files = files.filter(|file| !usage.is_kernel_watched || !is_followed(file, roots));
    let files: Vec<&String> = files.map(|file| &file.path).collect();
    let unwatched = files
        .split_first()
        .map(|(path, others)| Unknown::Unwatched {
            path: (*path).clone(),
            others: others.len(),
        });
    let left = usage.left.iter().next().map(|path| Unknown::LeftBehind {
        path: path.clone(),
        others: usage.left.len() - 1,
    });
    unwatched.into_iter().chain(left).collect()
}

/// Whether every use of a changed file is seen: it is a class that existed before and exists now, and loading it is
/// reported. A file that speaks for a module or a package as a whole is no class.
fn is_followed(file: &ChangedFile, roots: &BTreeSet<String>) -> bool {
    let is_class = match file
        .path
        .rsplit('/')
        .next()
        .and_then(|name| name.rsplit_once('.'))
    {
        Some((stem, "java")) => !matches!(stem, "module-info" | "package-info"),
        Some(_) | None => false,
    };
    let is_below = |root: &String| {
        let rest = file.path.strip_prefix(root.as_str());
        rest.is_some_and(|rest| root.is_empty() || rest.starts_with('/'))
    };
    file.kind == ChangeKind::Modified && is_class && roots.iter().any(is_below)
}

#[cfg(test)]
mod tests {
    use super::super::{Intersection, intersect};
    use super::*;
    use crate::change::Lines;
    use crate::rules::Rules;

    fn change(path: &str, kind: ChangeKind) -> Change {
        Change {
            file: ChangedFile {
                path: path.to_owned(),
                kind,
                lines: vec![Lines { first: 1, last: 1 }],
            },
            source: None,
            folders: Vec::new(),
        }
    }

    fn java() -> Usage {
        let mut usage = Usage {
            only_code: Some(["a/src/main/java".to_owned()].into()),
            is_kernel_watched: true,
            ..Usage::default()
        };
        let test = usage.files.entry("a/src/main/java/Used.java".to_owned());
        test.or_default().is_imported = true;
        usage
    }

    fn of(changes: &[Change], usage: &Usage) -> Intersection {
        intersect(changes, usage, &Rules::default())
    }

    #[test]
    fn only_a_modified_class_and_prose_are_ruled_out_where_only_code_is_watched() {
        use ChangeKind::{Added, Deleted, Modified};
        for (path, kind, is_ruled_out) in [
            ("a/src/main/java/shop/Cart.java", Modified, true),
            ("README.md", Modified, true),
            ("README.md", Deleted, true),
            ("a/src/main/java/shop/Cart.java", Added, false),
            ("a/src/main/java/shop/Cart.java", Deleted, false),
            ("a/src/main/java/module-info.java", Modified, false),
            ("a/src/main/javadoc/shop/Cart.java", Modified, false),
            ("templates/Cart.java", Modified, false),
            ("schema/price.txt", Modified, false),
            ("flags/beta", Added, false),
            ("plugins/b.txt", Deleted, false),
        ] {
            let found = of(&[change(path, kind)], &java());
            assert_eq!(
                found.is_disjoint(),
                is_ruled_out,
                "{path} {kind:?}: {found:?}"
            );
        }
        let far = [change("a/b", Modified), change("a/c", Modified)];
        let expected = Unknown::Unwatched {
            path: "a/b".to_owned(),
            others: 1,
        };
        assert_eq!(of(&far, &java()).unknowns, [expected]);
        assert!(of(&far, &Usage::default()).is_disjoint());
    }

    #[test]
    fn without_the_systems_eye_somebody_may_have_read_a_source() {
        let changes = [change(
            "a/src/main/java/shop/Cart.java",
            ChangeKind::Modified,
        )];
        let usage = Usage {
            is_kernel_watched: false,
            ..java()
        };
        assert!(!of(&changes, &usage).is_disjoint());
    }

    #[test]
    fn what_is_used_is_a_touch_and_what_was_left_is_unknown_and_no_part_of_the_base() {
        let mut usage = java();
        usage.left = ["work/cart".to_owned(), "work/mug".to_owned()].into();
        let used = change("a/src/main/java/Used.java", ChangeKind::Modified);
        let found = of(&[used], &usage);
        assert_eq!(found.touches.len(), 1);
        let expected = Unknown::LeftBehind {
            path: "work/cart".to_owned(),
            others: 1,
        };
        assert_eq!(found.unknowns, [expected]);
        assert!(found.shared_with_base().is_empty() && !found.has_generated());
        assert!(of(&[], &usage).is_disjoint(), "nothing has changed");
    }
}
