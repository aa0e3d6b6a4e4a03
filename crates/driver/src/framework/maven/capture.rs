//! Asks Maven how it runs the tests of each module, and keeps the answer until something changes.
//!
//! Maven builds the project up to its tests with an extension of ours, which has Surefire start a
//! program of ours in place of the JVM. That program writes down what it is given and runs no test.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

use crate::framework::maven::JAR;
use crate::framework::maven::inputs::fingerprint;
use crate::framework::maven::module::Module;
use crate::framework::maven::nearby::sources_nearby;

/// The program that stands in for `java`.
const WRAPPER: &str = include_str!("../../../../../runners/junit/wrapper/java");

/// Maven's options that take the next word as their value.
const WITH_VALUE: [&str; 22] = [
    "-pl",
    "--projects",
    "-P",
    "--activate-profiles",
    "-f",
    "--file",
    "-s",
    "--settings",
    "-gs",
    "--global-settings",
    "-t",
    "--toolchains",
    "-gt",
    "--global-toolchains",
    "-T",
    "--threads",
    "-rf",
    "--resume-from",
    "-l",
    "--log-file",
    "-b",
    "--builder",
];

/// Why it is not known how Maven runs the tests.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The binary has no runner for Java.
    #[error("this unflake was built without support for Java")]
    NoSupport,
    /// No Maven.
    #[error("cannot start `{program}`")]
    NoMaven {
        /// The program that was tried.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// Maven failed.
    #[error("`{command}` failed ({how})")]
    Failed {
        /// The command as the user would type it.
        command: String,
        /// How it ended.
        how: String,
        /// Its output; only its errors if there are any.
        output: String,
    },
    /// There is nothing to run.
    #[error("Maven ran no tests in {folder}")]
    NoTests {
        /// The folder in which it was started.
        folder: Utf8PathBuf,
        /// The modules whose settings say that their tests are skipped.
        skipped: Vec<String>,
        /// The user's option that selects tests, if there is one.
        selecting: Option<String>,
    },
    /// The tests are of a kind that unflake does not know.
    #[error("{module} has tests that unflake does not support yet: {provider}")]
    Unsupported {
        /// The module.
        module: String,
        /// Surefire's name for what runs them.
        provider: String,
    },
    /// Surefire never started the JVM of the tests.
    #[error("Surefire started no JVM for the tests of {module}")]
    NotStarted {
        /// The module.
        module: String,
    },
    /// A file of the answer cannot be read or written.
    #[error("cannot keep what Maven says in {folder}")]
    Keep {
        /// The folder.
        folder: Utf8PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The modules that have tests, in the order in which Maven runs them, and the way in which it runs them.
///
/// `told` is called with Maven's command line before it is started; it is not started if nothing has
/// changed since the last time.
pub fn capture(
    folder: &Utf8Path,
    args: &[String],
    cache: &Utf8Path,
    told: impl FnOnce(&str),
) -> Result<Vec<Module>, CaptureError> {
    if JAR.is_empty() {
        return Err(CaptureError::NoSupport);
    }
    let mut hasher = DefaultHasher::new();
    (folder, args, JAR, env::var("JAVA_HOME").ok()).hash(&mut hasher);
    let place = cache.join(format!("{:016x}", hasher.finish()));
    let keep = |source| CaptureError::Keep {
        folder: place.clone(),
        source,
    };
    let known = fs::read_to_string(place.join("fingerprint")).ok();
    if let (Some(known), Ok(modules)) = (known, read_modules(&place, folder))
        && Some(known) == fingerprint(folder, &modules)
    {
        return choose(folder, args, modules);
    }
    prepare(&place).map_err(keep)?;
    run_maven(folder, args, &place, told)?;
    let modules = read_modules(&place, folder).map_err(keep)?;
    let chosen = choose(folder, args, modules.clone())?;
    // Without one, Maven is asked again next time.
    if let Some(fingerprint) = fingerprint(folder, &modules) {
        fs::write(place.join("fingerprint"), fingerprint).map_err(keep)?;
    }
    Ok(chosen)
}

/// An empty folder with our stand-in for a JDK.
fn prepare(place: &Utf8Path) -> io::Result<()> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    fs::create_dir_all(place.join("jdk/bin"))?;
    let wrapper = place.join("jdk/bin/java");
    fs::write(&wrapper, WRAPPER)?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    fs::write(place.join("extension.jar"), JAR)?;
    let own: BTreeMap<String, String> = env::vars().collect();
    fs::write(place.join("started-with"), serde_json::to_vec(&own)?)
}

fn run_maven(
    folder: &Utf8Path,
    args: &[String],
    place: &Utf8Path,
    told: impl FnOnce(&str),
) -> Result<(), CaptureError> {
    let program = find_maven(folder);
    let mut shown: Vec<&str> = vec![program.as_str()];
    shown.extend(args.iter().map(String::as_str));
    let goal = (!has_goal(args)).then_some("test");
    shown.extend(goal);
    let command = shown.join(" ");
    told(&command);
    let output = Command::new(&program)
        .args(["--batch-mode", "-T", "1"])
        .arg(format!(
            "-Dmaven.ext.class.path={}",
            place.join("extension.jar")
        ))
        .args(args)
        .args(goal)
        .current_dir(folder)
        .env("UNFLAKE_CAPTURE", place)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| CaptureError::NoMaven { program, source })?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let errors: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("[ERROR]"))
        .collect();
    Err(CaptureError::Failed {
        command,
        how: output.status.to_string(),
        output: if errors.is_empty() {
            said.clone()
        } else {
            errors.join("\n")
        },
    })
}

/// The user's Maven: the one on the path, or the project's own wrapper.
fn find_maven(folder: &Utf8Path) -> String {
    let folders = env::var("PATH").unwrap_or_default();
    let mut places = folders
        .split(':')
        .map(|place| Utf8Path::new(place).join("mvn"));
    let wrapper = folder.join("mvnw");
    if places.any(|place| place.is_file()) || !wrapper.is_file() {
        "mvn".to_owned()
    } else {
        wrapper.into_string()
    }
}

/// Whether the arguments name a phase or goal.
fn has_goal(args: &[String]) -> bool {
    let mut is_value = false;
    for arg in args {
        if !is_value && !arg.starts_with('-') {
            return true;
        }
        is_value = !is_value && WITH_VALUE.contains(&arg.as_str());
    }
    false
}

fn read_modules(place: &Utf8Path, folder: &Utf8Path) -> io::Result<Vec<Module>> {
    let mut modules = Vec::new();
    for number in 1.. {
        let record = place.join(number.to_string());
        if !record.join("module.json").is_file() {
            break;
        }
        modules.push(Module::read(&record, folder)?);
    }
    let named = modules.iter().flat_map(|one| one.sources.clone());
    let mut sources: Vec<String> = named.chain(sources_nearby(folder)).collect();
    sources.sort();
    sources.dedup();
    let resources: Vec<String> = modules
        .iter()
        .flat_map(|one| one.resources.clone())
        .collect();
    for module in &mut modules {
        module.tell_of_others(&sources, &resources)?;
    }
    Ok(modules)
}

/// The options that select tests.
const SELECTING: [&str; 4] = [
    "-Dtest=",
    "-Dgroups=",
    "-DexcludedGroups=",
    "-Dsurefire.includes",
];

/// The modules that have tests which can be run; an error if there are none.
fn choose(
    folder: &Utf8Path,
    args: &[String],
    modules: Vec<Module>,
) -> Result<Vec<Module>, CaptureError> {
    let skipped = modules.iter().filter(|module| module.is_skipped);
    let skipped: Vec<String> = skipped.map(|module| module.name.clone()).collect();
    let mut chosen = Vec::new();
    for module in modules {
        if module.is_bypassed {
            let module = module.name;
            return Err(CaptureError::NotStarted { module });
        }
        let Some(provider) = &module.provider else {
            continue;
        };
        let known = ["junitplatform", "junit4", "junitcore"];
        if !known.iter().any(|name| provider.contains(name)) {
            if module.tests.is_empty() {
                continue;
            }
            return Err(CaptureError::Unsupported {
                module: module.name.clone(),
                provider: describe_provider(provider),
            });
        }
        if !module.tests.is_empty() {
            chosen.push(module);
        }
    }
    if chosen.is_empty() {
        let selects = |arg: &&String| SELECTING.iter().any(|option| arg.starts_with(option));
        return Err(CaptureError::NoTests {
            folder: folder.to_owned(),
            skipped,
            selecting: args.iter().find(selects).cloned(),
        });
    }
    Ok(chosen)
}

fn describe_provider(provider: &str) -> String {
    if provider.contains("testng") {
        "TestNG".to_owned()
    } else if provider.contains("junit.JUnit3Provider") {
        "JUnit 3 without JUnit 4 on the class path, or plain classes".to_owned()
    } else {
        provider.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module whose record has these fields beside the usual ones.
    fn module(fields: &serde_json::Value) -> Module {
        let folder = tempfile::tempdir().unwrap();
        let mut record = serde_json::json!({
            "basedir": "/shop", "module": "shop:shop", "execution": "default-test", "goal": "test",
            "java": "/jdk/bin/java", "skipped": false, "fork_count": "1", "fork_mode": null,
            "reuse_forks": true, "parallel": null, "sources": [], "test_sources": [],
            "tests": ["shop.CartTest"],
        });
        for (key, value) in fields.as_object().unwrap() {
            record[key] = value.clone();
        }
        fs::write(folder.path().join("module.json"), record.to_string()).unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        Module::read(folder, Utf8Path::new("/shop")).unwrap()
    }

    #[test]
    fn only_tests_of_a_known_kind_are_run() {
        let choose =
            |fields: serde_json::Value| choose(Utf8Path::new("/"), &[], vec![module(&fields)]);
        let provider = |name: &str| serde_json::json!({ "provider": name });
        let known = choose(provider("org.apache.maven.surefire.junit4.JUnit4Provider"));
        assert_eq!(known.unwrap().len(), 1);
        let testng = choose(provider("org.apache.maven.surefire.testng.TestNGProvider"));
        let said = testng.unwrap_err().to_string();
        assert!(said.ends_with("does not support yet: TestNG"), "{said}");
        let skipped = choose(serde_json::json!({ "skipped": true }));
        assert!(
            matches!(skipped, Err(CaptureError::NoTests { skipped, .. }) if skipped == ["shop:shop"])
        );
        let bypassed = choose(serde_json::json!({ "bypassed": true }));
        assert!(matches!(bypassed, Err(CaptureError::NotStarted { .. })));
    }

    #[test]
    fn settings_that_one_jvm_cannot_have_are_told() {
        let fields = serde_json::json!({
            "fork_count": "2C", "reuse_forks": false, "parallel": "methods", "execution": "slow",
            "settings": { "runOrder": "failedfirst,alphabetical" },
        });
        let module = module(&fields);
        assert_eq!(
            module.differences,
            [
                "forkCount=2C",
                "reuseForks=false",
                "parallel=methods",
                "runOrder=failedfirst,alphabetical"
            ]
        );
        assert!(module.is_forked_by_class);
        assert_eq!(module.name, "shop:shop (test@slow)");
    }

    #[test]
    fn a_value_of_an_option_is_no_goal() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(!has_goal(&words("-pl core -am -Dx=y -o")));
        assert!(has_goal(&words("-pl core verify")));
    }
}
