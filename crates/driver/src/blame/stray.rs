//! Whether a run at the base used the base: a project that is installed, or that reaches into the work tree by an
//! absolute path, may run the changed code there as well.

use std::collections::BTreeMap;
use std::fs;

use camino::Utf8Path;
use unflake_core::intersect::{Touch, Unknown, is_copy};
use unflake_core::usage::Usage;

use super::side::{Side, Written};
use crate::blame::comparison::Changes;
use crate::git::difference::Difference;
use crate::git::worktree::BaseTree;
use crate::lab::session::Session;
use crate::usage::facts::Facts;

/// The words without which Java has no constants, in whatever order and with whatever between them.
const CONSTANTS: [&str; 2] = ["final", "interface"];

impl Session {
    /// The changed Java files that no class was loaded from, and whose constants the compiler may have copied into
    /// other classes: those that a run at the base does not show to be the same there.
    pub(crate) fn copied_constants(
        &self,
        here: &Facts,
        base: Option<&Side>,
        touches: &[Touch],
    ) -> Vec<Unknown> {
        let Changes::Known(difference) = &self.changes else {
            return Vec::new();
        };
        let root = &difference.root;
        let tree = self.base_tree();
        let there = tree
            .zip(base)
            .and_then(|(tree, side)| side.last_facts(tree.path()).ok());
        let is_same = |path: &str| {
            let file = root.join(path);
            let (own, tree) = (here.constants_of(&file)?, tree?);
            Some(there.as_ref()?.constants_of(&tree.map(&file))? == own)
        };
        let is_java = |path: &str| Utf8Path::new(path).extension() == Some("java");
        let is_touched = |path: &str| touches.iter().any(|touch| touch.path == path);
        let java = difference.changes.iter().map(|change| &change.file.path);
        let java = java.filter(|path| is_java(path) && !is_touched(path));
        let has_constants = |path: &str| {
            // One that is gone may have had some.
            let text = fs::read_to_string(root.join(path));
            text.map_or(true, |text| may_have_constants(&text))
        };
        let differs = java.filter(|path| is_same(path) != Some(true) && has_constants(path));
        let missed = differs.map(|path| Unknown::Missed(format!("constants of {path}")));
        missed.collect()
    }

    /// Why the last run at the base was none of the base, if it was none.
    pub(crate) fn stray_at_base(&self, side: &Side) -> Option<String> {
        let Changes::Known(difference) = &self.changes else {
            return None;
        };
        let tree = self.base_tree().map(BaseTree::path)?;
        // Its own copy is told as the checkout, so that only what lies elsewhere is left.
        let facts = match side.last_facts(tree) {
            Ok(facts) => facts,
            Err(error) => return Some(format!("it is not known what it used there: {error}")),
        };
        let mut usage = facts.to_usage(&difference.ground(self.began));
        // What a test copies there itself is the base's.
        if let Some(temporary) = side.temporary() {
            usage
                .elsewhere
                .retain(|file| !file.starts_with(temporary.as_str()));
        }
        if let Some(path) = self.replaced_file(&usage.elsewhere) {
            return Some(format!(
                "the run at the base used {path} of your environment"
            ));
        }
        if let Some(path) = used_in_work_tree(&usage, difference) {
            return Some(format!("the run at the base used {path} of the work tree"));
        }
        if let Some((jar, source)) = used_jar(&facts, tree) {
            return Some(format!(
                "the run at the base used {jar}, which is made from {source}"
            ));
        }
        used_copy(&usage, difference, tree)
            .map(|(copy, path)| format!("the run at the base used {copy}, a copy of {path}"))
    }
}

impl Session {
    /// The files outside that a run at the base read, and that somebody else wrote since this run of the suite began:
    /// what the change has left there may be what fails at the base.
    pub(crate) fn written_meanwhile(&self, side: &Side, written: &Written) -> Vec<String> {
        let (Some(difference), Some(tree)) = (self.known_difference(), self.base_tree()) else {
            return Vec::new();
        };
        let Ok(facts) = side.facts(written, tree.path()) else {
            return Vec::new();
        };
        let usage = facts.to_usage(&difference.ground(self.began));
        let own = [
            side.temporary(),
            Some(side.files()),
            Some(self.fleet.folder()),
            Some(tree.path().to_owned()),
        ];
        let is_own = |path: &Utf8Path| own.iter().flatten().any(|folder| path.starts_with(folder));
        let is_foreign = |path: &String| {
            let path = Utf8Path::new(path);
            let is_machine = ["/proc", "/sys"]
                .iter()
                .any(|folder| path.starts_with(folder));
            if is_own(path) || is_machine || path.extension() == Some("pyc") {
                return false;
            }
            let changed = fs::metadata(path).and_then(|data| data.modified());
            changed.is_ok_and(|changed| changed >= self.began && changed < written.began)
        };
        let outside = usage.elsewhere.iter().filter(|path| is_foreign(path));
        outside.cloned().collect()
    }
}

/// Whether a source of Java may have constants.
fn may_have_constants(text: &str) -> bool {
    let mut words = text.split(|one: char| !one.is_alphanumeric() && one != '_');
    words.any(|word| CONSTANTS.contains(&word))
}

/// A jar from elsewhere out of which a run at the base loaded a class of the project, with the class's source.
fn used_jar<'a>(facts: &'a Facts, tree: &Utf8Path) -> Option<(&'a str, &'a str)> {
    let is_elsewhere = |(jar, _): &&(String, String)| !Utf8Path::new(jar).starts_with(tree);
    let (jar, source) = facts.jars().iter().find(is_elsewhere)?;
    let source = source.strip_prefix(tree.as_str()).unwrap_or(source);
    Some((jar, source.trim_start_matches('/')))
}

/// A file or folder of the work tree that a run at the base used.
///
/// What git does not know there, a virtual environment for example, is the same for both.
fn used_in_work_tree(usage: &Usage, difference: &Difference) -> Option<String> {
    let is_known = |path: &&String| {
        let mut changes = difference.changes.iter();
        difference.known.contains(*path) || changes.any(|change| change.file.path == **path)
    };
    let has_known = |folder: &&String| {
        let is_inside = |path: &String| {
            let rest = path.strip_prefix(folder.as_str());
            folder.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
        };
        difference.known.iter().any(is_inside)
    };
    let file = usage.files.keys().find(is_known);
    file.or_else(|| usage.listed.iter().find(has_known))
        .cloned()
}

/// A file elsewhere that a run at the base used and that may hold what changed: a copy of a changed
/// file, or of any file of a project that is installed.
fn used_copy<'a>(
    usage: &'a Usage,
    difference: &'a Difference,
    tree: &Utf8Path,
) -> Option<(&'a String, &'a String)> {
    let name = |path: &'a str| path.rsplit('/').next().unwrap_or(path);
    let changed = difference.changes.iter().map(|change| &change.file.path);
    let mut ours: BTreeMap<&str, Vec<(&String, bool)>> = BTreeMap::new();
    for path in &difference.known {
        ours.entry(name(path)).or_default().push((path, false));
    }
    for path in changed {
        ours.entry(name(path)).or_default().push((path, true));
    }
    let copies = usage.elsewhere.iter();
    let copies = copies.filter(|copy| !copy.starts_with(tree.as_str()));
    for copy in copies {
        let is_installed = copy.contains("/site-packages/") || copy.contains("/dist-packages/");
        let namesakes = ours.get(name(copy)).into_iter().flatten();
        for (path, is_changed) in namesakes {
            if (*is_changed || is_installed) && is_copy(path, copy) {
                return Some((copy, path));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_told_by_their_words_in_any_order() {
        for text in [
            "final public static int MAX = 5;",
            "static\n  final int MAX = 5;",
            "interface Limits{ int MAX = 5; }",
        ] {
            assert!(may_have_constants(text), "{text}");
        }
        assert!(!may_have_constants("class Finally { int finals = 5; }"));
    }
}
