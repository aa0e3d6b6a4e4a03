//! Maven's answer about the JVM of a module's tests, as the extension in `runners/junit` writes it.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;

/// Variables that say how Maven was called, or that every process has its own of.
const PASSING: [&str; 7] = [
    "UNFLAKE_CAPTURE",
    "MAVEN_CMD_LINE_ARGS",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "LINES",
];

/// The way in which Surefire starts the JVM of a module's tests.
#[derive(Clone, Debug)]
pub struct Module {
    /// Group and name, and what runs the tests if it is not the usual execution.
    pub name: String,
    /// The module's folder.
    pub basedir: Utf8PathBuf,
    /// The Java program.
    pub java: Utf8PathBuf,
    /// The working folder.
    pub folder: Utf8PathBuf,
    /// The JVM's own arguments.
    pub jvm_args: Vec<String>,
    /// The lines of the argument file for a module of Java's own kind; empty for the class path.
    pub modular: Vec<String>,
    /// The tests' class path.
    pub classpath: Vec<String>,
    /// Surefire's own class path.
    pub provider_classpath: Vec<String>,
    /// The test classes.
    pub tests: Vec<String>,
    /// Surefire's provider.
    pub provider: Option<String>,
    /// Whether the settings say that no test runs.
    pub is_skipped: bool,
    /// Whether Surefire ran tests in a JVM that we did not see.
    pub is_bypassed: bool,
    /// The settings of Surefire that unflake does not follow.
    pub differences: Vec<String>,
    /// Whether Surefire gives each test class a JVM of its own.
    pub is_forked_by_class: bool,
    /// Variables that Surefire sets.
    pub set: BTreeMap<String, String>,
    /// Variables that it takes away.
    pub unset: Vec<String>,
    /// All of it, for the runner.
    pub text: String,
    /// The folders of its sources.
    pub sources: Vec<String>,
    /// The folders of its resources.
    pub resources: Vec<String>,
    /// The folders of those resources into which Maven puts values.
    pub filtered: Vec<String>,
    /// The files that its effective model names.
    pub inputs: Vec<String>,
    /// The file in which this is kept.
    pub kept: Utf8PathBuf,
}

#[derive(Deserialize)]
struct Wire {
    basedir: Utf8PathBuf,
    module: String,
    execution: String,
    goal: String,
    java: Utf8PathBuf,
    skipped: bool,
    #[serde(default)]
    bypassed: bool,
    fork_count: Option<String>,
    fork_mode: Option<String>,
    reuse_forks: bool,
    parallel: Option<String>,
    #[serde(default)]
    jvm_args: Vec<String>,
    #[serde(default)]
    modular: Vec<String>,
    #[serde(default)]
    classpath: Vec<String>,
    #[serde(default)]
    provider_classpath: Vec<String>,
    #[serde(default)]
    tests: Vec<String>,
    provider: Option<String>,
    sources: Vec<String>,
    test_sources: Vec<String>,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    filtered: Vec<String>,
    #[serde(default)]
    inputs: Vec<String>,
    #[serde(default)]
    settings: BTreeMap<String, serde_json::Value>,
}

impl Module {
    /// Reads the record of one module. `root` is the folder to which its files are relative.
    pub(crate) fn read(record: &Utf8Path, root: &Utf8Path) -> io::Result<Self> {
        let text = fs::read_to_string(record.join("module.json"))?;
        let mut whole: serde_json::Value = serde_json::from_str(&text)?;
        whole["root"] = serde_json::Value::String(root.to_string());
        let wire: Wire = serde_json::from_str(&text)?;
        let folder = fs::read_to_string(record.join("folder")).unwrap_or_default();
        let folder = folder.trim_end_matches('\n');
        let (set, unset) = read_environment(record);
        let usual = wire.goal == "test" && wire.execution == "default-test";
        Ok(Self {
            name: if usual {
                wire.module.clone()
            } else {
                format!("{} ({}@{})", wire.module, wire.goal, wire.execution)
            },
            folder: if folder.is_empty() {
                wire.basedir.clone()
            } else {
                Utf8PathBuf::from(folder)
            },
            differences: differences(&wire),
            is_forked_by_class: is_forked_by_class(&wire),
            sources: [wire.sources, wire.test_sources].concat(),
            resources: wire.resources,
            filtered: wire.filtered,
            inputs: wire.inputs,
            basedir: wire.basedir,
            java: wire.java,
            jvm_args: wire.jvm_args,
            modular: wire.modular,
            classpath: wire.classpath,
            provider_classpath: wire.provider_classpath,
            tests: wire.tests,
            provider: wire.provider,
            is_skipped: wire.skipped,
            is_bypassed: wire.bypassed,
            set,
            unset,
            text: whole.to_string(),
            kept: record.to_owned(),
        })
    }

    /// Lets the runner know where the sources and resources of all modules are: tests use them as well.
    pub(crate) fn tell_of_others(
        &mut self,
        sources: &[String],
        resources: &[String],
    ) -> io::Result<()> {
        let mut whole: serde_json::Value = serde_json::from_str(&self.text)?;
        whole["other_sources"] = sources.into();
        whole["resources"] = resources.into();
        self.text = whole.to_string();
        Ok(())
    }

    /// The entries that Surefire adds to the class path and that are not its own: the launcher of the JUnit Platform,
    /// and an engine if the project has none.
    pub(crate) fn framework(&self) -> impl Iterator<Item = &String> {
        let is_own = |path: &&String| {
            let name = Utf8Path::new(path).file_name().unwrap_or_default();
            name.starts_with("surefire-") || name.starts_with("common-j")
        };
        self.provider_classpath
            .iter()
            .filter(move |path| !is_own(path))
    }
}

fn is_forked_by_class(wire: &Wire) -> bool {
    let mode = wire.fork_mode.as_deref();
    !wire.reuse_forks || matches!(mode, Some("always" | "pertest"))
}

/// The settings that one JVM, in which one test runs after the other, cannot have.
fn differences(wire: &Wire) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(count) = &wire.fork_count
        && count != "1"
    {
        found.push(format!("forkCount={count}"));
    }
    if !wire.reuse_forks {
        found.push("reuseForks=false".to_owned());
    }
    if let Some(mode) = &wire.fork_mode
        && mode != "once"
    {
        found.push(format!("forkMode={mode}"));
    }
    if let Some(parallel) = &wire.parallel
        && !parallel.is_empty()
        && parallel != "none"
    {
        found.push(format!("parallel={parallel}"));
    }
    let order = wire
        .settings
        .get("runOrder")
        .and_then(|order| order.as_str());
    let order = order.unwrap_or("filesystem");
    let is_seeded = wire.settings.contains_key("runOrderRandomSeed");
    // These look at earlier runs, or at nothing.
    let is_followed =
        |one: &str| !matches!(one, "failedfirst" | "balanced") && (one != "random" || is_seeded);
    if !order.to_lowercase().split(',').all(is_followed) {
        found.push(format!("runOrder={order}"));
    }
    found
}

/// The variables that Maven and Surefire set and took away, against those of this process.
fn read_environment(record: &Utf8Path) -> (BTreeMap<String, String>, Vec<String>) {
    let Ok(recorded) = fs::read(record.join("environment")) else {
        return (BTreeMap::new(), Vec::new());
    };
    let recorded = String::from_utf8_lossy(&recorded);
    let recorded = recorded.split('\0').filter_map(|one| one.split_once('='));
    let recorded: BTreeMap<&str, &str> = recorded.collect();
    let own: BTreeMap<String, String> = fs::read_to_string(record.join("../started-with"))
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_else(|| env::vars().collect());
    let is_passing = |name: &str| PASSING.contains(&name);
    let set = recorded.iter().filter(|(name, value)| {
        own.get(**name).map(String::as_str) != Some(**value) && !is_passing(name)
    });
    let set = set.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let unset = own
        .keys()
        .filter(|name| !recorded.contains_key(name.as_str()) && !is_passing(name));
    (set.collect(), unset.cloned().collect())
}
