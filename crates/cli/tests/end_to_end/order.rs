//! Every folder in `fixtures/order` is a test: what depends on order there, on which tests and by which
//! piece of state, is found, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use crate::cases::{check_all, find_cases};
use crate::nio::files_of;
use crate::project::{Project, Python, Run};

/// The planted truth of a fixture. `docs/fixtures.md` says what each key means.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    exit: i32,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    repository: bool,
    findings: BTreeMap<String, Finding>,
}

/// What must be found about one test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Finding {
    verdict: String,
    #[serde(default)]
    culprits: Vec<BTreeSet<String>>,
    #[serde(default)]
    ordered: Vec<Vec<String>>,
    #[serde(default)]
    cleaners: BTreeSet<String>,
    kind: Option<String>,
    path: Option<String>,
    before: Option<String>,
    after: Option<String>,
    owner: Option<String>,
    mock: Option<bool>,
    written: Option<String>,
    #[serde(default)]
    needs_suite: bool,
    #[serde(default)]
    suspect: bool,
    fix: Option<String>,
    #[serde(default)]
    no_fix: bool,
}

/// What was found beside what was planted.
#[derive(Default)]
struct Comparison {
    troubles: Vec<String>,
}

impl Comparison {
    fn compare(
        &mut self,
        (test, what): (&str, &str),
        found: &dyn std::fmt::Debug,
        planted: &dyn std::fmt::Debug,
    ) {
        let (found, planted) = (format!("{found:#?}"), format!("{planted:#?}"));
        if found != planted {
            self.troubles.push(format!(
                "{what} of {test}: found {found}\nplanted {planted}"
            ));
        }
    }

    fn compare_finding(&mut self, id: &str, planted: &Finding, found: Option<&Value>) {
        let verdict = found.map(verdict);
        let is_found = verdict.as_ref() == Some(&planted.verdict);
        self.compare((id, "verdict"), &verdict, &Some(&planted.verdict));
        let Some(found) = found.filter(|_| is_found) else {
            return;
        };
        let order = &found["order"];
        let culprits = || order["culprits"].as_array().into_iter().flatten();
        let plain = culprits().filter(|culprit| culprit["ordered"] == false);
        let plain: BTreeSet<BTreeSet<String>> =
            plain.map(|culprit| texts(&culprit["tests"])).collect();
        let sets: BTreeSet<&BTreeSet<String>> = planted.culprits.iter().collect();
        self.compare((id, "culprits"), &plain, &sets);
        let ordered = culprits().filter(|culprit| culprit["ordered"] == true);
        let ordered: BTreeSet<Vec<String>> =
            ordered.map(|culprit| texts(&culprit["tests"])).collect();
        let sequences: BTreeSet<&Vec<String>> = planted.ordered.iter().collect();
        self.compare((id, "ordered"), &ordered, &sequences);
        let cleaners: BTreeSet<String> = texts(&order["cleaners"]);
        self.compare((id, "cleaners"), &cleaners, &planted.cleaners);
        let needs_suite = order["needs_suite"] == true;
        self.compare((id, "needs_suite"), &needs_suite, &planted.needs_suite);
        // Culprits that do not do it by themselves are no recipe.
        if !planted.culprits.is_empty() {
            let has_recipe = found["recipe"].is_array();
            self.compare((id, "recipe"), &has_recipe, &!planted.needs_suite);
        }
        self.compare_cause(id, planted, &found["cause"]);
        self.compare_fix(id, planted, &found["cause"]["fix"]);
    }

    /// The planted line is one of those that the suggested change brings.
    fn compare_fix(&mut self, id: &str, planted: &Finding, fix: &Value) {
        if planted.no_fix {
            self.compare((id, "no_fix"), &fix.is_null(), &true);
        }
        let Some(line) = &planted.fix else {
            return;
        };
        let diff = text(&fix["diff"]);
        let mut new = diff.lines().filter_map(|line| line.strip_prefix('+'));
        if !new.any(|new| new.trim() == line) {
            self.troubles
                .push(format!("fix of {id}: found {diff}\nplanted {line}"));
        }
    }

    /// Of the pieces that are shown, or suspects where none is, exactly the planted one is there.
    fn compare_cause(&mut self, id: &str, planted: &Finding, cause: &Value) {
        let Some(path) = &planted.path else {
            return;
        };
        let pieces = |key: &str| cause[key].as_array().cloned().unwrap_or_default();
        let (shown, suspects) = (pieces("shown"), pieces("suspects"));
        let is_suspect = shown.is_empty() && !suspects.is_empty();
        let pieces = if is_suspect { suspects } else { shown };
        let paths: Vec<String> = pieces.iter().map(|piece| text(&piece["path"])).collect();
        let is_right = paths.len() == 1 && paths.iter().all(|found| fits(found, path));
        let expected = vec![path.clone()];
        // A path that fits its pattern is as good as the pattern itself.
        let found = if is_right { &expected } else { &paths };
        self.compare((id, "path"), found, &expected);
        let Some(piece) = pieces.first().filter(|_| is_right) else {
            return;
        };
        self.compare((id, "suspect"), &is_suspect, &planted.suspect);
        for (key, planted) in [
            ("kind", &planted.kind),
            ("before", &planted.before),
            ("after", &planted.after),
            ("owner", &planted.owner),
        ] {
            if let Some(planted) = planted {
                self.compare((id, key), &text(&piece[key]), planted);
            }
        }
        if let Some(mock) = planted.mock {
            self.compare((id, "mock"), &piece["mock"].as_bool(), &Some(mock));
        }
        if let Some(written) = &planted.written {
            let place = format!("{}:{}", text(&piece["file"]), piece["line"]);
            self.compare((id, "written"), &place, written);
        }
    }
}

#[test]
fn every_order_fixture_gets_its_planted_findings() {
    check_all(find_cases("order"), |case| {
        check(case).map_err(|trouble| format!("--- {}\n{trouble}", case.display()))
    });
}

fn check(case: &Path) -> Result<(), String> {
    let truth = fs::read_to_string(case.join("expected.toml")).unwrap();
    let expected: Expected = toml::from_str(&truth).map_err(|error| error.to_string())?;
    let Some(python) = Python::Plain.find() else {
        return Ok(());
    };
    let project = Project::copy_of(case);
    if expected.repository {
        project.commit();
    }
    let before = files_of(project.path());
    let (report, run) = order_json(&project, &python, &expected.args);
    let mut comparison = Comparison::default();
    let whole = (".", "exit");
    comparison.compare(whole, &run.code, &Some(expected.exit));
    let findings = report["findings"].as_array().unwrap();
    let found: BTreeMap<String, &Value> = findings
        .iter()
        .map(|finding| (text(&finding["id"]), finding))
        .collect();
    for (id, planted) in &expected.findings {
        comparison.compare_finding(id, planted, found.get(id).copied());
    }
    let extra = found
        .iter()
        .filter(|(id, _)| !expected.findings.contains_key(*id));
    let extra: Vec<String> = extra
        .map(|(id, finding)| format!("{id}: {}", verdict(finding)))
        .collect();
    let none: [String; 0] = [];
    comparison.compare((".", "more"), &extra, &none);
    let is_untouched = files_of(project.path()) == before;
    comparison.compare((".", "untouched"), &is_untouched, &true);
    if comparison.troubles.is_empty() {
        return Ok(());
    }
    let troubles = comparison.troubles.join("\n");
    Err(format!("{troubles}\nstandard error:\n{}", run.stderr))
}

/// `unflake order --format json` with this interpreter, and a folder that outlives every copy of the project.
fn order_json(project: &Project, python: &Path, arguments: &[String]) -> (Value, Run) {
    let outside = TempDir::with_prefix("unflake-test-").unwrap();
    let mut all = vec!["order", "--python", python.to_str().unwrap()];
    all.extend(["--format", "json"]);
    all.extend(arguments.iter().map(String::as_str));
    let mut command = project.unflake(&all);
    command.env("UNFLAKE_TEST_FOLDER", outside.path());
    let run = Run::of(command.output().expect("unflake starts"));
    let json = serde_json::from_str(&run.stdout);
    (
        json.unwrap_or_else(|error| panic!("{error}: {run:#?}")),
        run,
    )
}

fn verdict(finding: &Value) -> String {
    let kind = finding["kind"].as_str().unwrap_or_default();
    let verdict = format!("{} {kind}", text(&finding["verdict"]));
    verdict.trim_end().to_owned()
}

/// Whether a text is a pattern, in which a `*` at an end stands for anything.
fn fits(text: &str, pattern: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => text.ends_with(end),
        (_, Some(start)) => text.starts_with(start),
        (None, None) => text == pattern,
    }
}

fn texts<T: FromIterator<String>>(value: &Value) -> T {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
