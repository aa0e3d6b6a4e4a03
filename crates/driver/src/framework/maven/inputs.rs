//! The inputs of Maven's answer: all files of the project that are not built, what the effective model names outside
//! of it, the class path, and the variables that the poms name.
//!
//! Whatever is left out here lets the code of an earlier commit be tested, so that in doubt there is no fingerprint,
//! and Maven is started.

use std::collections::{BTreeSet, HashSet};
use std::env;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;

use camino::{Utf8DirEntry, Utf8Path, Utf8PathBuf};

use crate::framework::maven::module::Module;

/// The most files that are looked at. More would take as long as starting Maven.
const MOST: usize = 20_000;

/// Folders that no build reads. What Maven builds is not among them by its name alone.
const SKIPPED: [&str; 12] = [
    ".git",
    ".hg",
    ".svn",
    ".unflake",
    ".idea",
    ".vscode",
    ".settings",
    ".gradle",
    ".venv",
    "node_modules",
    "__pycache__",
    ".pytest_cache",
];

/// Variables that Maven itself reads.
const READ_BY_MAVEN: [&str; 4] = ["MAVEN_OPTS", "MAVEN_ARGS", "M2_HOME", "JAVA_TOOL_OPTIONS"];

/// Files of the user's home that Maven reads.
const READ_AT_HOME: [&str; 4] = [
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".m2/toolchains.xml",
    ".mavenrc",
];

/// No text that is longer is searched for the names of variables.
const LONGEST_TEXT: u64 = 1 << 20;

/// A text that tells one state of all inputs of Maven's answer from another; `None` if there are too many to look at.
pub(super) fn fingerprint(folder: &Utf8Path, modules: &[Module]) -> Option<String> {
    fingerprint_with(folder, modules, MOST, &|name| env::var(name).ok())
}

fn fingerprint_with(
    folder: &Utf8Path,
    modules: &[Module],
    most: usize,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let mut walk = Walk {
        hasher: DefaultHasher::new(),
        entered: HashSet::new(),
        left: most,
        variables: READ_BY_MAVEN.map(ToOwned::to_owned).into(),
    };
    walk.enter(folder)?;
    for module in modules {
        walk.enter(&module.basedir)?;
        let built = module.classpath.iter().chain(&module.sources);
        for path in built.chain(&module.inputs).chain(&module.resources) {
            walk.enter(Utf8Path::new(path))?;
        }
        for path in module.filtered.iter().chain(&module.inputs) {
            walk.find_variables_below(Utf8Path::new(path));
        }
        walk.look(&module.java);
    }
    // The parents of a module may be above the folder in which Maven was called.
    for above in folder.ancestors().skip(1).take(3) {
        walk.enter(&above.join("pom.xml"))?;
        walk.enter(&above.join(".mvn"))?;
    }
    let home = variable("HOME").map(Utf8PathBuf::from);
    for name in home
        .iter()
        .flat_map(|home| READ_AT_HOME.map(|name| home.join(name)))
    {
        walk.look(&name);
        walk.find_variables(&name);
    }
    for name in &walk.variables {
        (name, variable(name)).hash(&mut walk.hasher);
    }
    Some(format!("{:016x}", walk.hasher.finish()))
}

/// A walk through files.
struct Walk {
    hasher: DefaultHasher,
    /// Folders by device and number: links can lead in a circle.
    entered: HashSet<(u64, u64)>,
    /// The number of files that may still be looked at.
    left: usize,
    /// The variables whose values count.
    variables: BTreeSet<String>,
}

impl Walk {
    /// Looks at a file, or at all in a folder that is not built; `None` if there is too much.
    fn enter(&mut self, path: &Utf8Path) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        let Some(data) = self.look(path) else {
            return Some(());
        };
        if !data.is_dir() {
            if is_pom(path) {
                self.find_variables(path);
            }
            return Some(());
        }
        if !self.entered.insert((data.dev(), data.ino())) {
            return Some(());
        }
        for inside in inside(path) {
            if !is_skipped(&inside) {
                self.enter(&inside)?;
            }
        }
        Some(())
    }

    /// Takes the state of a file in. The times of a folder change with whatever is written there and removed again.
    fn look(&mut self, path: &Utf8Path) -> Option<Metadata> {
        path.hash(&mut self.hasher);
        fs::read_link(path).ok().hash(&mut self.hasher);
        let data = fs::metadata(path).ok();
        if let Some(data) = data.as_ref().filter(|data| data.is_file()) {
            // Copies keep the time of their content, and nothing keeps that of its own change.
            let times = [
                data.mtime(),
                data.mtime_nsec(),
                data.ctime(),
                data.ctime_nsec(),
            ];
            (data.len(), data.mode(), times).hash(&mut self.hasher);
        }
        data
    }

    fn find_variables_below(&mut self, path: &Utf8Path) {
        if path.is_file() {
            self.find_variables(path);
            return;
        }
        let is_link = |path: &Utf8PathBuf| path.is_symlink() && path.is_dir();
        for path in inside(path).into_iter().filter(|path| !is_link(path)) {
            self.find_variables_below(&path);
        }
    }

    /// Notes the variables that a text names.
    fn find_variables(&mut self, path: &Utf8Path) {
        let is_short = fs::metadata(path).is_ok_and(|data| data.len() <= LONGEST_TEXT);
        if let Ok(text) = fs::read(path)
            && is_short
        {
            let text = String::from_utf8_lossy(&text);
            self.variables
                .extend(named_variables(&text).map(ToOwned::to_owned));
        }
    }
}

pub(super) fn inside(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = folder.read_dir_utf8().into_iter().flatten().flatten();
    let mut inside: Vec<Utf8PathBuf> = entries.map(Utf8DirEntry::into_path).collect();
    inside.sort();
    inside
}

fn is_pom(path: &Utf8Path) -> bool {
    let is_extension = path.parent().and_then(Utf8Path::file_name) == Some(".mvn");
    matches!(path.file_name(), Some("pom.xml")) || is_extension
}

/// Whether a folder is built, or read by no build.
pub(super) fn is_skipped(path: &Utf8Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let is_built = name == "target" && path.with_file_name("pom.xml").is_file();
    is_built || SKIPPED.contains(&name)
}

/// The variables of the environment that a text of Maven's names: `env.HOME`.
fn named_variables(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |one: char| one.is_ascii_alphanumeric() || one == '_';
    let parts = text.split("env.").skip(1);
    parts.filter_map(move |rest| {
        let end = rest.find(|one| !is_part(one)).unwrap_or(rest.len());
        (end > 0).then(|| &rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with files, and a module in it with these fields beside the usual ones.
    struct Project {
        folder: tempfile::TempDir,
        fields: serde_json::Value,
    }

    impl Project {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let fields = serde_json::json!({});
            let project = Self { folder, fields };
            project.write("pom.xml", "<project>");
            project.write("src/main/java/Shop.java", "class Shop { }");
            project
        }

        fn root(&self) -> &Utf8Path {
            Utf8Path::from_path(self.folder.path()).unwrap()
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.root().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn print(&self, most: usize, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
            let mut record = serde_json::json!({
                "basedir": self.root(), "module": "shop:shop", "execution": "default-test", "goal": "test",
                "java": "/jdk/bin/java", "skipped": false, "fork_count": "1", "fork_mode": null,
                "reuse_forks": true, "parallel": null, "sources": [], "test_sources": [], "tests": [],
            });
            for (key, value) in self.fields.as_object().unwrap() {
                record[key] = value.clone();
            }
            let place = tempfile::tempdir().unwrap();
            fs::write(place.path().join("module.json"), record.to_string()).unwrap();
            let place = Utf8Path::from_path(place.path()).unwrap();
            let module = Module::read(place, self.root()).unwrap();
            fingerprint_with(self.root(), &[module], most, variable)
        }

        fn state(&self) -> Option<String> {
            self.print(MOST, &|_| None)
        }
    }

    #[test]
    fn every_file_that_maven_may_read_counts() {
        let project = Project::new();
        for name in [
            "conf/app.properties",
            "build/values.txt",
            "test.settings",
            "build/parent.xml",
            "a/target/tax.txt",
            ".mvn/jvm.config",
        ] {
            project.write(name, "price=100");
            let before = project.state();
            assert_eq!(project.state(), before, "nothing has changed");
            project.write(name, "price=900");
            assert_ne!(project.state(), before, "{name}");
        }
    }

    #[test]
    fn what_is_built_and_what_tools_keep_does_not_count() {
        let project = Project::new();
        let before = project.state();
        for name in [
            "target/classes/shop/Shop.class",
            "target/surefire-reports/TEST-shop.xml",
            ".git/index",
            ".unflake/history.db",
            "node_modules/left/index.js",
        ] {
            project.write(name, "new");
            assert_eq!(project.state(), before, "{name}");
        }
    }

    #[test]
    fn what_the_model_names_outside_of_the_project_counts() {
        let mut project = Project::new();
        let outside = tempfile::tempdir().unwrap();
        let file = outside.path().join("values.txt");
        fs::write(&file, "price=100").unwrap();
        project.fields = serde_json::json!({ "inputs": [file] });
        let before = project.state();
        fs::write(&file, "price=900").unwrap();
        assert_ne!(project.state(), before);
    }

    #[test]
    fn the_variables_that_poms_and_filtered_resources_name_count_and_others_do_not() {
        let mut project = Project::new();
        project.fields =
            serde_json::json!({ "filtered": [project.root().join("src/main/resources")] });
        project.write("pom.xml", "<price>${env.PRICE}</price><name>env.CI</name>");
        project.write("src/main/resources/app.properties", "tax=${env.TAX}");
        let with = |set: &'static str| {
            project.print(MOST, &move |name| (name == set).then(|| "900".to_owned()))
        };
        let without = project.state();
        for name in ["PRICE", "CI", "TAX", "MAVEN_OPTS"] {
            assert_ne!(with(name), without, "{name}");
        }
        assert_eq!(with("SHLVL"), without);
    }

    #[test]
    fn too_many_files_have_no_fingerprint_and_a_circle_of_links_has_one() {
        let project = Project::new();
        symlink("..", project.root().join("src/up")).unwrap();
        assert!(project.state().is_some());
        assert_eq!(project.print(4, &|_| None), None);
    }
}
