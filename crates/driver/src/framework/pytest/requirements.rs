//! Files that say what is installed for a project of Python: what each asks for, and how two versions of it differ.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;
use toml::{Table, Value};

/// Lock files whose packages are tables of TOML with a name and a version.
const LOCKS: [&str; 3] = ["uv.lock", "poetry.lock", "pdm.lock"];
/// Tools whose settings have nothing to do with what is installed.
const HARMLESS: [&str; 12] = [
    "ruff",
    "black",
    "isort",
    "mypy",
    "pytest",
    "coverage",
    "pylint",
    "pyright",
    "flake8",
    "bandit",
    "codespell",
    "towncrier",
];
/// The fields in which a project describes itself to readers.
const PROSE: [&str; 8] = [
    "description",
    "readme",
    "authors",
    "maintainers",
    "keywords",
    "classifiers",
    "urls",
    "license",
];

/// The packages that such a file asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requirements {
    /// The packages, by their normalised names.
    pub(crate) packages: BTreeMap<String, BTreeSet<Package>>,
    /// Options of pip that say where packages are.
    pub(crate) options: Vec<String>,
    /// Whether it asks for no package, but says which versions there may be.
    pub(crate) is_constraint: bool,
    /// Whether all that it asks for is to be installed.
    is_list: bool,
    /// Whether it was written by a program that has chosen the versions.
    is_lock: bool,
    /// All else that may have to do with what is installed.
    others: BTreeMap<String, String>,
}

/// A package that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Package {
    /// The text in the file.
    written: String,
    /// The text for pip; `None` if pip cannot install it.
    pip: Option<String>,
}

/// The steps from the environment of one version of a file to that of another version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delta {
    /// Packages that differ in the other version, or that only the other version has: the name, and the text for pip.
    pub(crate) changed: BTreeSet<(String, String)>,
    /// Packages that the other version does not have.
    pub(crate) added: BTreeSet<String>,
    /// Packages of which the other version says something else, and that nobody has selected.
    pub(crate) absent: BTreeSet<String>,
}

impl Requirements {
    /// The packages that a file asks for; `None` if it is of no kind that we read.
    pub(crate) fn read(path: &str, text: &str) -> Option<Self> {
        let path = Utf8Path::new(path);
        let name = path.file_name()?;
        if LOCKS.contains(&name) {
            return read_lock(text);
        }
        if name == "pyproject.toml" {
            return read_pyproject(text);
        }
        matches!(path.extension(), Some("txt" | "in")).then(|| {
            let mut read = read_lines(text);
            read.is_constraint = name.starts_with("constraints");
            read.is_list = !read.is_constraint;
            read
        })
    }

    /// The packages with exactly one version, as texts for pip.
    pub(crate) fn pins(&self) -> impl Iterator<Item = (&String, &String)> {
        let single = self.packages.iter().filter(|(_, ways)| ways.len() == 1);
        single.filter_map(|(name, ways)| {
            let pip = ways.first()?.pip.as_ref()?;
            let is_exact = pip.contains("==") && !pip.contains(['*', ',', ';']);
            is_exact.then_some((name, pip))
        })
    }

    /// The steps from an environment that was made for `here`, and has these packages, to this version; an error names
    /// what is not understood.
    pub(crate) fn delta(
        &self,
        here: &Self,
        installed: &BTreeMap<String, String>,
    ) -> Result<Delta, String> {
        if let Some(what) = self.strange(here) {
            return Err(what);
        }
        let mut delta = Delta::default();
        for (name, ways) in &self.packages {
            let other = here.packages.get(name);
            let has = installed.contains_key(name);
            if other == Some(ways) {
                continue;
            }
            if !has && (other.is_some() || self.is_constraint) {
                if ways
                    .iter()
                    .any(|way| self.is_list && !way.written.contains(';'))
                {
                    return Err(format!("{name}, which is not installed as a package"));
                }
                delta.absent.insert(name.clone());
                continue;
            }
            if self.is_lock && other.is_some_and(|other| is_same_version(ways, other)) {
                return Err(format!("where {name} is wanted"));
            }
            for package in ways {
                let pip = package.pip.clone().ok_or_else(|| package.written.clone())?;
                delta.changed.insert((name.clone(), pip));
            }
        }
        for name in here.packages.keys() {
            if installed.contains_key(name) && !self.packages.contains_key(name) {
                if self.is_constraint {
                    return Err(format!("a constraint on {name}"));
                }
                delta.added.insert(name.clone());
            }
        }
        Ok(delta)
    }

    /// A difference in another version that is not understood.
    fn strange(&self, here: &Self) -> Option<String> {
        let own = self
            .others
            .iter()
            .find(|(what, text)| here.others.get(*what) != Some(text));
        let theirs = here
            .others
            .keys()
            .find(|what| !self.others.contains_key(*what));
        let options = || {
            let differ = self.options != here.options;
            let mut options = self.options.iter().chain(&here.options);
            options.next().filter(|_| differ).cloned()
        };
        own.map(|(what, _)| what.clone())
            .or_else(|| theirs.cloned())
            .or_else(options)
    }

    fn add(&mut self, name: &str, written: &str, pip: Option<String>) {
        let ways = self.packages.entry(normalize(name)).or_default();
        ways.insert(Package {
            written: written.to_owned(),
            pip,
        });
    }

    fn add_requirement(&mut self, text: &str) {
        let text = text.trim();
        match name_of(text) {
            Some(name) => self.add(name, text, Some(text.to_owned())),
            None => drop(self.others.insert(text.to_owned(), String::new())),
        }
    }
}

fn is_same_version(one: &BTreeSet<Package>, other: &BTreeSet<Package>) -> bool {
    let versions = |ways: &BTreeSet<Package>| -> BTreeSet<Option<String>> {
        ways.iter().map(|way| way.pip.clone()).collect()
    };
    let is_known = one.iter().all(|way| way.pip.is_some());
    is_known && versions(one) == versions(other)
}

/// A name of a package as all ways to write it.
pub(crate) fn normalize(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_lowercase()
}

/// The name that a requirement begins with, if it begins with one.
fn name_of(text: &str) -> Option<&str> {
    let is_part =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let is_name = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    // Anything else that begins so is the path of a file.
    let rest = rest.trim_start();
    let is_requirement =
        rest.is_empty() || rest.starts_with(['[', '=', '<', '>', '!', '~', ';', '@', '(']);
    (is_name && is_requirement).then_some(name)
}

/// A file of requirements or constraints.
fn read_lines(text: &str) -> Requirements {
    let mut read = Requirements::default();
    let whole = text.replace("\\\r\n", " ").replace("\\\n", " ");
    for line in whole.lines() {
        let line = line.trim();
        let line = line.split(" #").next().unwrap_or(line).trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let places = [
            "-i",
            "--index-url",
            "--extra-index-url",
            "-f",
            "--find-links",
            "--no-index",
            "--trusted-host",
            "--pre",
        ];
        let first = line.split([' ', '=']).next().unwrap_or(line);
        if places.contains(&first) {
            read.options.push(line.to_owned());
        } else if line.starts_with('-') {
            read.others.insert(line.to_owned(), String::new());
        } else {
            // The digests of its files, and options for its build.
            let text = line.split(" --").next().unwrap_or(line);
            read.add_requirement(text);
        }
    }
    read
}

/// A lock file; `None` if it has no packages, or others than we know. Its tables are written by programs, one value in a
/// line.
fn read_lock(text: &str) -> Option<Requirements> {
    let mut read = Requirements {
        is_lock: true,
        ..Requirements::default()
    };
    for package in text.split("[[package]]").skip(1) {
        let mut section = "";
        let (mut name, mut version, mut source) = (None, None, Vec::new());
        let mut conditions = Vec::new();
        for line in package.lines() {
            let Some((key, value)) = line.split_once(" = ") else {
                section = if line.starts_with('[') { line } else { section };
                continue;
            };
            let value = value.trim().trim_matches('"');
            match (section, key) {
                ("", "name") => name = Some(value),
                ("", "version") => version = Some(value),
                ("", "source" | "git" | "path" | "url") => source.push(value),
                // Poetry's word for another registry is "legacy".
                ("[package.source]", "type") if value != "legacy" => source.push(value),
                ("", "optional" | "markers" | "groups" | "resolution-markers") => {
                    conditions.push(line);
                }
                _other_facts => {}
            }
        }
        let is_registry = source.iter().all(|one| one.starts_with("{ registry ="));
        let is_project = source
            .iter()
            .any(|one| one.starts_with("{ editable =") || one.starts_with("{ virtual ="));
        if let (Some(name), Some(version), false) = (name, version, is_project) {
            let pin = format!("{name}=={version}");
            let written = [&[pin.as_str()][..], &source, &conditions]
                .concat()
                .join(" ");
            read.add(name, &written, is_registry.then_some(pin));
        }
    }
    // The lock's own tool alone can read which of several versions is installed.
    for ways in read.packages.values_mut().filter(|ways| ways.len() > 1) {
        let unclear = ways.iter().map(|way| Package {
            pip: None,
            ..way.clone()
        });
        *ways = unclear.collect();
    }
    (!read.packages.is_empty()).then_some(read)
}

/// A `pyproject.toml`; `None` if it is none.
fn read_pyproject(text: &str) -> Option<Requirements> {
    let mut all: Table = text.parse().ok()?;
    let mut read = Requirements::default();
    let own = all
        .get("project")
        .and_then(|project| project.get("name")?.as_str())
        .map(normalize);
    let take = |list: &Value, what: &str, read: &mut Requirements| {
        for one in list.as_array().into_iter().flatten() {
            match one.as_str() {
                Some(text) if name_of(text).map(normalize) != own => read.add_requirement(text),
                Some(_) | None => {
                    drop(read.others.insert(format!("[{what}] {one}"), String::new()));
                }
            }
        }
    };
    if let Some(Value::Table(project)) = all.get_mut("project") {
        if let Some(list) = project.remove("dependencies") {
            take(&list, "project.dependencies", &mut read);
        }
        if let Some(Value::Table(extras)) = project.remove("optional-dependencies") {
            extras
                .values()
                .for_each(|list| take(list, "project.optional-dependencies", &mut read));
        }
        project.retain(|key, _| !PROSE.contains(&key));
    }
    if let Some(Value::Table(groups)) = all.remove("dependency-groups") {
        groups
            .values()
            .for_each(|list| take(list, "dependency-groups", &mut read));
    }
    if let Some(Value::Table(tools)) = all.get_mut("tool") {
        tools.retain(|name, _| !HARMLESS.contains(&name));
        if let Some(Value::Table(poetry)) = tools.get_mut("poetry") {
            read_poetry(poetry, &mut read);
        }
    }
    if let Some(Value::Table(tools)) = all.remove("tool") {
        let tools = tools
            .iter()
            .map(|(name, value)| (format!("[tool.{name}]"), value.to_string()));
        read.others.extend(tools);
    }
    let rest = all
        .iter()
        .map(|(name, value)| (format!("[{name}]"), value.to_string()));
    read.others.extend(rest);
    Some(read)
}

/// Poetry's own tables. What they say of a version is no word of pip's: a lock file has it.
fn read_poetry(poetry: &mut Table, read: &mut Requirements) {
    let mut lists: Vec<Value> = Vec::new();
    lists.extend(poetry.remove("dependencies"));
    lists.extend(poetry.remove("dev-dependencies"));
    if let Some(Value::Table(groups)) = poetry.remove("group") {
        let groups = groups
            .values()
            .filter_map(|group| group.get("dependencies"));
        lists.extend(groups.cloned());
    }
    for (name, value) in lists.iter().filter_map(Value::as_table).flatten() {
        if name == "python" {
            read.others.insert("python".to_owned(), value.to_string());
        } else {
            read.add(name, &value.to_string(), Some(name.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(path: &str, base: &str, here: &str) -> Result<Delta, String> {
        let names = ["tax", "levy", "pytest", "shop"];
        let installed = names.map(|name| (name.to_owned(), "2".to_owned()));
        let read = |text| Requirements::read(path, text).unwrap();
        read(base).delta(&read(here), &installed.into())
    }

    fn found(changed: &[&str], added: &[&str]) -> Delta {
        let changed = changed.iter().map(|text| {
            let name = name_of(text).unwrap();
            (normalize(name), (*text).to_owned())
        });
        Delta {
            changed: changed.collect(),
            added: added.iter().map(ToString::to_string).collect(),
            absent: BTreeSet::new(),
        }
    }

    #[test]
    fn lines_that_changed_and_went_are_asked_for_and_new_ones_are_told() {
        let base = "tax==1 --hash=sha256:aa \\\n    --hash=sha256:bb\n# a word\nold>=3 # why\npytest\nPy.Test\n";
        let here = "Tax==2\npytest\nlevy\n";
        let same = "tax==1\npy_test\nold>=3\npytest";
        let found_here = delta("requirements.txt", base, here);
        assert_eq!(
            found_here,
            Ok(found(&["tax==1", "old>=3", "Py.Test"], &["levy"]))
        );
        let read = |text| {
            Requirements::read("requirements.txt", text)
                .unwrap()
                .packages
                .into_keys()
                .collect::<Vec<_>>()
        };
        assert_eq!(read(base), read(same));
    }

    #[test]
    fn a_package_that_is_in_both_and_not_installed_is_one_that_nobody_selected() {
        let absent = |path: &str, base: &str, here: &str| {
            let delta = delta(path, base, here)?;
            assert!(delta.changed.is_empty() && delta.added.is_empty());
            Ok(delta.absent.into_iter().collect::<Vec<String>>())
        };
        let marker = "; sys_platform == 'win32'";
        let (base, here) = (format!("dos==1{marker}"), format!("dos==2{marker}"));
        let names = Ok(vec!["dos".to_owned()]);
        assert_eq!(absent("requirements.in", &base, &here), names);
        assert_eq!(absent("constraints.txt", "dos==1", "dos==2"), names);
        let missing = "dos, which is not installed as a package".to_owned();
        assert_eq!(absent("requirements.in", "dos==1", "dos==2"), Err(missing));
        assert_eq!(
            delta("constraints.txt", "dos<1\ntax<2", "dos<1"),
            Ok(found(&["tax<2"], &[]))
        );
        let new = Err("a constraint on tax".to_owned());
        assert_eq!(delta("constraints.txt", "", "tax<3"), new);
    }

    #[test]
    fn what_is_not_understood_is_named_only_where_it_changed() {
        let same = "-r more.txt\n-e .\n--index-url https://a\n";
        let base = format!("{same}tax==1");
        let here = format!("{same}tax==2");
        assert_eq!(
            delta("requirements.txt", &base, &here),
            Ok(found(&["tax==1"], &[]))
        );
        for (base, here) in [
            ("-r a.txt", ""),
            ("", "git+https://a"),
            ("-i https://a", ""),
            ("./tax", ""),
        ] {
            assert_eq!(
                delta("requirements.txt", base, here),
                Err([base, here].concat())
            );
        }
        for path in [
            "setup.py",
            "environment.yml",
            "Cargo.lock",
            "requirements/more.cfg",
        ] {
            assert_eq!(Requirements::read(path, ""), None, "{path}");
        }
    }

    #[test]
    fn a_lock_file_pins_what_comes_from_a_registry() {
        let lock = |version: &str, source: &str| {
            format!(
                "version = 1\n\n[[package]]\nname = \"shop\"\nversion = \"{version}\"\nsource = {{ editable = \".\" }}\n\n\
                 [[package]]\nname = \"tax\"\nversion = \"{version}\"\n{source}\ndependencies = [\n    {{ name = \"levy\" }},\n]\n\n\
                 [package.metadata]\nname = \"x\"\n"
            )
        };
        let uv = "source = { registry = \"https://pypi.org/simple\" }";
        let git = "source = { git = \"https://a#1\" }";
        let poetry = "description = \"\"\n[package.source]\ntype = \"git\"";
        assert_eq!(
            delta("uv.lock", &lock("1", uv), &lock("2", uv)),
            Ok(found(&["tax==1"], &[]))
        );
        assert_eq!(
            delta("poetry.lock", &lock("1", ""), &lock("2", "")),
            Ok(found(&["tax==1"], &[]))
        );
        for source in [git, poetry] {
            let found = delta("uv.lock", &lock("1", source), &lock("2", source));
            assert!(found.is_err_and(|what| what.starts_with("tax==1 ")));
        }
        let two = lock("1", uv) + &lock("3", uv);
        assert!(delta("uv.lock", &two, &lock("2", uv)).is_err());
        assert_eq!(Requirements::read("poetry.lock", "tax==1\n"), None);
        let optional = lock("1", "optional = true");
        let found = delta("poetry.lock", &optional, &lock("1", "optional = false"));
        assert_eq!(found, Err("where tax is wanted".to_owned()));
        let read = Requirements::read("uv.lock", &lock("1", uv)).unwrap();
        let pins: Vec<_> = read.pins().map(|(_, pin)| pin.as_str()).collect();
        assert_eq!(pins, ["tax==1"]);
    }

    #[test]
    fn a_pyproject_asks_for_its_dependencies_and_much_of_it_asks_for_nothing() {
        let base = "[project]\nname = \"shop\"\ndescription = \"old\"\ndependencies = [\"tax<2\"]\n\
                    [project.optional-dependencies]\ntest = [\"pytest>=8\", \"shop[cli]\"]\n[tool.ruff]\nline-length = 80\n";
        let harmless = base.replace("old", "new").replace("80", "100");
        assert_eq!(
            delta("pyproject.toml", base, &harmless),
            Ok(found(&[], &[]))
        );
        let bumped = base
            .replace("tax<2", "tax>=2")
            .replace("\"pytest>=8\"", "\"pytest>=8\", \"levy\"");
        assert_eq!(
            delta("pyproject.toml", base, &bumped),
            Ok(found(&["tax<2"], &["levy"]))
        );
        let built = format!("{base}[build-system]\nrequires = [\"hatchling\"]\n");
        assert_eq!(
            delta("pyproject.toml", base, &built),
            Err("[build-system]".to_owned())
        );
        let group = format!("{base}[dependency-groups]\ndev = [\"levy\"]\n");
        assert_eq!(
            delta("pyproject.toml", base, &group),
            Ok(found(&[], &["levy"]))
        );
        let poetry = |version: &str| {
            format!("[tool.poetry.dependencies]\npython = \"^3\"\ntax = \"{version}\"\n")
        };
        assert_eq!(
            delta("pyproject.toml", &poetry("^1"), &poetry("^2")),
            Ok(found(&["tax"], &[]))
        );
    }
}
