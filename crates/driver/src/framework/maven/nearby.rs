//! Sources of modules that Maven was not asked for: their classes can come out of a jar that was installed.

use camino::{Utf8Path, Utf8PathBuf};

use crate::framework::maven::inputs::{inside, is_skipped};

/// The most folders that are searched.
const MOST: usize = 20_000;

/// The folders `src/*/java` of the repository around a folder, or of the outermost project of Maven.
pub(super) fn sources_nearby(folder: &Utf8Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![top(folder).to_owned()];
    let mut left = MOST;
    while let Some(folder) = open.pop() {
        if is_sources(&folder) {
            found.push(folder.into_string());
            continue;
        }
        let is_followed =
            |path: &Utf8PathBuf| path.is_dir() && !path.is_symlink() && !is_skipped(path);
        for inner in inside(&folder).into_iter().filter(is_followed) {
            if left == 0 {
                return found;
            }
            left -= 1;
            open.push(inner);
        }
    }
    found.sort();
    found
}

fn top(folder: &Utf8Path) -> &Utf8Path {
    let mut above = folder.ancestors();
    if let Some(root) = above.find(|above| above.join(".git").exists()) {
        return root;
    }
    let projects = folder
        .ancestors()
        .take_while(|above| above.join("pom.xml").is_file());
    projects.last().unwrap_or(folder)
}

fn is_sources(folder: &Utf8Path) -> bool {
    let above = |levels: usize| folder.ancestors().nth(levels).and_then(Utf8Path::file_name);
    matches!(above(0), Some("java" | "kotlin" | "groovy" | "scala")) && above(2) == Some("src")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_sources_of_all_modules_around_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for path in [
            "a/src/main/java/shop",
            "b/src/test/java",
            "b/target/src/main/java",
            "b/src/main/resources",
        ] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for pom in ["pom.xml", "b/pom.xml"] {
            fs::write(root.join(pom), "").unwrap();
        }
        let expected =
            ["a/src/main/java", "b/src/test/java"].map(|path| root.join(path).into_string());
        assert_eq!(sources_nearby(&root.join("b")), expected);
    }
}
