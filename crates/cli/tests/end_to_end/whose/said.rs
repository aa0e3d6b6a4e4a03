//! What unflake said of a history, and the questions that a test asks about it.

use serde_json::Value;

use crate::project::Run;

/// An exit code and a report.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) run: Run,
    pub(super) report: Value,
}

impl Said {
    pub(super) fn of(run: Run) -> Self {
        let report = serde_json::from_str(&run.stdout);
        let report = report.unwrap_or_else(|error| panic!("{error}: {run:#?}"));
        Self { run, report }
    }

    /// The finding of a test; without it a panic.
    pub(super) fn finding(&self, test: &str) -> &Value {
        let findings = self.report["findings"].as_array().unwrap();
        let found = findings.iter().find(|finding| finding["id"] == test);
        found.unwrap_or_else(|| panic!("no finding of {test}: {:#}", self.report["findings"]))
    }

    /// The tests that have a finding, sorted.
    pub(super) fn tests(&self) -> Vec<&str> {
        let findings = self.report["findings"].as_array().unwrap();
        let mut tests: Vec<&str> = findings
            .iter()
            .map(|finding| finding["id"].as_str().unwrap())
            .collect();
        tests.sort_unstable();
        tests
    }

    /// The exit code is this one.
    pub(super) fn ends(&self, code: i32) -> &Self {
        assert_eq!(self.run.code, Some(code), "{self}");
        assert_eq!(self.report["exit_code"], code, "{self}");
        self
    }

    /// A test fails in this way.
    pub(super) fn fails_as(&self, test: &str, verdict: &str) -> &Self {
        let finding = self.finding(test);
        assert_eq!(finding["verdict"], verdict, "{self}");
        self
    }

    /// The failure of a test is of this answer, for one of these reasons.
    pub(super) fn is(&self, test: &str, answer: &str, because: &[&str]) -> &Self {
        let whose = &self.finding(test)["whose"];
        assert_eq!(whose["answer"], answer, "{test}: {self}");
        let word = whose["because"].as_str().unwrap_or_default();
        assert!(because.contains(&word), "{word:?} of {test}: {self}");
        assert!(whose["sentence"].is_string(), "{test}: {self}");
        let settles = whose["settle"].is_string();
        assert_eq!(settles, answer == "not-known", "{test}: {self}");
        self
    }

    /// The failure of a test is not said to be somebody else's.
    pub(super) fn is_not_acquitted(&self, test: &str) -> &Self {
        let answer = &self.finding(test)["whose"]["answer"];
        assert!(
            *answer == "yours" || *answer == "not-known",
            "{answer} of {test}: {self}"
        );
        self
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(formatter, "exit code {:?}", self.run.code)?;
        for finding in self.report["findings"].as_array().into_iter().flatten() {
            let [id, verdict, kind] = ["id", "verdict", "kind"].map(|key| &finding[key]);
            writeln!(formatter, "{id}: {verdict} {kind}")?;
            writeln!(formatter, "whose: {:#}", finding["whose"])?;
            for attempt in finding["attempts"].as_array().into_iter().flatten() {
                let [rung, outcome, message] =
                    ["rung", "outcome", "message"].map(|key| &attempt[key]);
                writeln!(formatter, "  {rung} {outcome} {message}")?;
            }
        }
        writeln!(formatter, "notes: {:#}", self.report["notes"])?;
        write!(formatter, "{}", self.run.stderr)
    }
}
