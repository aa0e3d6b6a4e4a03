//! The suites around the cases of a report: which cases are the same, and what they inherit.

use std::collections::HashMap;
use std::mem;

use super::excerpt::Excerpt;
use super::markup::Element;
use super::{Case, CaseReport, fold};

/// So many cases and failures of one suite are held at most where they are handed out.
const MOST_HELD: usize = 200_000;

/// A report as far as it is read.
#[derive(Default)]
pub(super) struct Gathering {
    report: CaseReport,
    /// The suites around the next case, the outermost first.
    suites: Vec<Suite>,
    /// How many cases the report has, and what else takes memory: their further failures and properties.
    held: usize,
}

/// One `testsuite` or `testsuites` element.
struct Suite {
    name: Option<String>,
    file: Option<String>,
    timestamp: Option<String>,
    output: Excerpt,
    /// Its own cases, by what tells them apart, with their place in the report.
    cases: HashMap<Key, usize>,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    classname: String,
    name: String,
    file: Option<String>,
}

impl Gathering {
    /// A suite starts.
    pub(super) fn enter(&mut self, mut element: Element) {
        let report = &mut self.report;
        report.hostname = report.hostname.take().or(element.take("hostname"));
        let timestamp = element.take("timestamp");
        report.timestamp = report.timestamp.take().or_else(|| timestamp.clone());
        // The name of `testsuites` is that of the report.
        let name = element.take("name").filter(|_| element.name == "testsuite");
        self.suites.push(Suite {
            name: name.filter(|name| !name.is_empty()),
            file: element.take("file"),
            timestamp,
            output: Excerpt::default(),
            cases: HashMap::new(),
        });
    }

    /// Whether the root is still open.
    pub(super) fn is_inside(&self) -> bool {
        !self.suites.is_empty()
    }

    /// A case of the innermost suite.
    pub(super) fn add(&mut self, mut case: Case) {
        if case.file.is_none() {
            let mut suites = self.suites.iter().rev();
            case.file = suites.find_map(|suite| suite.file.clone());
        }
        if case.timestamp.is_none() {
            let mut suites = self.suites.iter().rev();
            case.timestamp = suites.find_map(|suite| suite.timestamp.clone());
        }
        let names = self.suites.iter().filter_map(|suite| suite.name.clone());
        case.suites = names.collect();
        let key = Key {
            classname: case.classname.clone(),
            name: case.name.clone(),
            file: case.file.clone(),
        };
        let Some(suite) = self.suites.last_mut() else {
            return;
        };
        let cases = &mut self.report.cases;
        // A pass of a case that is there adds nothing to it.
        let adds = case.outcome.is_failure() || !case.properties.is_empty();
        let at = *suite.cases.entry(key).or_insert(cases.len());
        if let Some(held) = cases.get_mut(at) {
            fold::fold(held, case);
            self.held += usize::from(adds);
        } else {
            cases.push(case);
            self.held += 1;
        }
    }

    /// Output of the innermost suite.
    pub(super) fn add_output(&mut self, output: &str) {
        if let Some(suite) = self.suites.last_mut() {
            suite.output.break_line();
            suite.output.push(output);
        }
    }

    /// The innermost suite ends.
    pub(super) fn leave(&mut self) {
        let Some(suite) = self.suites.pop() else {
            return;
        };
        // Bazel writes the output of a target beside its only case. With several cases it could be
        // anybody's.
        let mut places = suite.cases.into_values();
        if let (Some(at), None) = (places.next(), places.next()) {
            let output = &mut self.report.cases[at].account.output;
            if output.is_empty() {
                *output = suite.output.into_text();
            }
        }
    }

    /// The cases that no open suite can add to any more, once the suites inside the root have ended.
    pub(super) fn take_finished(&mut self) -> Vec<Case> {
        let is_open = |suite: &Suite| !suite.cases.is_empty();
        if self.suites.iter().any(is_open) {
            return Vec::new();
        }
        self.take_cases()
    }

    /// The cases of the open suites too, when there are very many of them.
    pub(super) fn take_part(&mut self) -> Vec<Case> {
        if self.held < MOST_HELD {
            return Vec::new();
        }
        for suite in &mut self.suites {
            suite.cases.clear();
        }
        self.take_cases()
    }

    fn take_cases(&mut self) -> Vec<Case> {
        self.held = 0;
        mem::take(&mut self.report.cases)
    }

    /// All that was read.
    pub(super) fn into_report(self) -> CaseReport {
        self.report
    }
}
