//! `unflake.toml`: where it is, what may stand in it, and what is said about a mistake.

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;
use toml::{Table, Value};

/// The file's name.
const NAME: &str = "unflake.toml";

/// The content of `unflake.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct Config {
    pub(crate) run: RunConfig,
    pub(crate) intersect: IntersectConfig,
    pub(crate) base: BaseConfig,
    #[serde(rename = "override")]
    pub(crate) overrides: Vec<OverrideConfig>,
    pub(crate) history: HistoryConfig,
    pub(crate) baseline: BaselineConfig,
    #[serde(rename = "release")]
    pub(crate) releases: Vec<ReleaseConfig>,
}

/// The table `[history]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct HistoryConfig {
    pub(crate) store: Option<Utf8PathBuf>,
    pub(crate) record: Option<bool>,
}

/// The table `[baseline]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct BaselineConfig {
    pub(crate) release: Option<String>,
    pub(crate) cycle_days: Option<i32>,
    pub(crate) days: Option<i32>,
    pub(crate) current_days: Option<i32>,
    pub(crate) branch: Option<String>,
}

/// A table `[[release]]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct ReleaseConfig {
    pub(crate) id: String,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
}

/// The table `[intersect]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct IntersectConfig {
    pub(crate) enabled: Option<bool>,
    pub(crate) base: Option<String>,
    pub(crate) check_base: Option<bool>,
    pub(crate) always: Vec<String>,
    pub(crate) never: Vec<String>,
}

/// The table `[base]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct BaseConfig {
    /// A command that makes a checkout of the base ready to run.
    pub(crate) setup: Option<String>,
    /// Seconds that may be spent to find out whose failures these are.
    pub(crate) budget: Option<f64>,
}

/// The table `[run]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct RunConfig {
    pub(crate) framework: Option<String>,
    pub(crate) quarantine: Option<String>,
    pub(crate) python: Option<Utf8PathBuf>,
    pub(crate) immediate: Option<u32>,
    pub(crate) end: Option<u32>,
    pub(crate) fresh: Option<u32>,
    pub(crate) fresh_by: Option<String>,
    pub(crate) threshold: Option<Share>,
    pub(crate) threshold_floor: Option<usize>,
    pub(crate) timeout: Option<f64>,
    pub(crate) jobs: Option<usize>,
    pub(crate) flaky: Option<String>,
    pub(crate) not_known: Option<String>,
    pub(crate) forgive: Option<String>,
    pub(crate) max_flaky: Option<usize>,
}

/// A table `[[override]]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct OverrideConfig {
    pub(crate) tests: String,
    pub(crate) immediate: Option<u32>,
    pub(crate) end: Option<u32>,
    pub(crate) fresh: Option<u32>,
    pub(crate) timeout: Option<f64>,
}

/// A share: `"1%"` or `0.01`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Share {
    Text(String),
    Number(f64),
}

/// The error in a configuration file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read {path}")]
    Read {
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("{path} is not valid TOML:\n{detail}")]
    Syntax { path: Utf8PathBuf, detail: String },
    #[error("{path} has an unknown key `{key}`{}", suggest(.nearest.as_deref()))]
    UnknownKey {
        path: Utf8PathBuf,
        key: String,
        nearest: Option<String>,
    },
    #[error("{path}: `{key}` {trouble}")]
    Value {
        path: Utf8PathBuf,
        key: String,
        trouble: String,
    },
}

fn suggest(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |key| format!("; did you mean `{key}`?"))
}

const TOP_KEYS: [&str; 7] = [
    "run",
    "intersect",
    "base",
    "override",
    "history",
    "baseline",
    "release",
];
const HISTORY_KEYS: [&str; 2] = ["store", "record"];
const BASELINE_KEYS: [&str; 5] = ["release", "cycle-days", "days", "current-days", "branch"];
const RELEASE_KEYS: [&str; 3] = ["id", "from", "to"];
const INTERSECT_KEYS: [&str; 5] = ["enabled", "base", "check-base", "always", "never"];
const BASE_KEYS: [&str; 2] = ["setup", "budget"];
const RUN_KEYS: [&str; 15] = [
    "framework",
    "quarantine",
    "python",
    "immediate",
    "end",
    "fresh",
    "fresh-by",
    "threshold",
    "threshold-floor",
    "timeout",
    "jobs",
    "flaky",
    "not-known",
    "forgive",
    "max-flaky",
];
const OVERRIDE_KEYS: [&str; 5] = ["tests", "immediate", "end", "fresh", "timeout"];

impl Config {
    /// Reads the given file, or the one that belongs to `folder`, or none.
    pub(crate) fn load(
        given: Option<&Utf8Path>,
        folder: &Utf8Path,
    ) -> Result<(Self, Option<Utf8PathBuf>), ConfigError> {
        let Some(path) = given.map(Utf8Path::to_owned).or_else(|| find(folder)) else {
            return Ok((Self::default(), None));
        };
        let text = fs::read_to_string(&path).map_err(|source| ConfigError::Read {
            path: path.clone(),
            source,
        })?;
        Ok((Self::parse(&text, &path)?, Some(path)))
    }

    fn parse(text: &str, path: &Utf8Path) -> Result<Self, ConfigError> {
        let syntax = |error: toml::de::Error| ConfigError::Syntax {
            path: path.to_owned(),
            detail: error.to_string().trim_end().to_owned(),
        };
        let table: Table = text.parse().map_err(syntax)?;
        check_keys(&table, path)?;
        let config: Self = toml::from_str(text).map_err(syntax)?;
        if config.overrides.iter().any(|one| one.tests.is_empty()) {
            return Err(ConfigError::Value {
                path: path.to_owned(),
                key: "override.tests".to_owned(),
                trouble: "is missing: it names the tests, for example \"tests/test_net.py::*\""
                    .to_owned(),
            });
        }
        Ok(config)
    }
}

/// The nearest `unflake.toml` from `folder` upwards, not beyond the repository.
fn find(folder: &Utf8Path) -> Option<Utf8PathBuf> {
    for ancestor in folder.ancestors() {
        let candidate = ancestor.join(NAME);
        if candidate.exists() {
            return Some(candidate);
        }
        if ancestor.join(".git").exists() {
            return None;
        }
    }
    None
}

fn check_keys(table: &Table, path: &Utf8Path) -> Result<(), ConfigError> {
    check(table, &TOP_KEYS, "", path)?;
    let known: [(&str, &[&str]); 7] = [
        ("run", &RUN_KEYS),
        ("intersect", &INTERSECT_KEYS),
        ("base", &BASE_KEYS),
        ("override", &OVERRIDE_KEYS),
        ("history", &HISTORY_KEYS),
        ("baseline", &BASELINE_KEYS),
        ("release", &RELEASE_KEYS),
    ];
    for (name, keys) in known {
        let tables = match table.get(name) {
            Some(Value::Array(tables)) => tables.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        for one in tables.iter().filter_map(Value::as_table) {
            check(one, keys, &format!("{name}."), path)?;
        }
    }
    Ok(())
}

fn check(table: &Table, known: &[&str], prefix: &str, path: &Utf8Path) -> Result<(), ConfigError> {
    let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) else {
        return Ok(());
    };
    let distance = |candidate: &&&str| strsim::damerau_levenshtein(candidate, key);
    let nearest = known
        .iter()
        .min_by_key(distance)
        .filter(|one| distance(one) <= 3);
    Err(ConfigError::UnknownKey {
        path: path.to_owned(),
        key: format!("{prefix}{key}"),
        nearest: nearest.map(|key| format!("{prefix}{key}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Utf8Path::new("unflake.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_whole_file_is_read() {
        let text = r#"
            [run]
            immediate = 0
            threshold = "2%"
            [intersect]
            never = ["docs/*"]
            [[override]]
            tests = "net.py::*"
            timeout = 2.5
        "#;
        let config = parse(text).unwrap();
        assert_eq!(config.run.immediate, Some(0));
        assert_eq!(config.overrides[0].timeout, Some(2.5));
        assert_eq!(config.intersect.never, ["docs/*"]);
    }

    #[test]
    fn a_misspelt_key_is_an_error_with_the_nearest_valid_one() {
        assert_eq!(
            parse("[run]\nimediate = 2").unwrap_err(),
            "unflake.toml has an unknown key `run.imediate`; did you mean `run.immediate`?"
        );
        assert_eq!(
            parse("[rum]").unwrap_err(),
            "unflake.toml has an unknown key `rum`; did you mean `run`?"
        );
        assert_eq!(
            parse("[run]\nxyzzy_plugh = 2").unwrap_err(),
            "unflake.toml has an unknown key `run.xyzzy_plugh`"
        );
    }

    #[test]
    fn an_override_without_tests_and_a_wrong_type_are_errors() {
        assert!(
            parse("[[override]]\nend = 2")
                .unwrap_err()
                .contains("override.tests")
        );
        assert!(
            parse("[run]\nend = \"two\"")
                .unwrap_err()
                .contains("not valid")
        );
        assert!(parse("[run").unwrap_err().contains("not valid TOML"));
    }
}
