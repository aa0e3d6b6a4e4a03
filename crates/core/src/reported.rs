//! A failure that another command reported, and which test of the project it is.
//!
//! JUnit XML names a test by a class and a name in it. How a framework makes these from its own ids is
//! its habit: this file knows pytest's and Surefire's.

use std::fmt::{self, Write};
use std::time::Duration;

use crate::outcome::Outcome;
use crate::test::{Test, TestId};
use crate::trial::{Account, Part};

/// A failure that another command reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The report's number among those given.
    pub report: usize,
    /// The name of its class in the report.
    pub classname: String,
    /// Its name in there.
    pub name: String,
    /// The file that the report names, if it does.
    pub file: Option<String>,
    /// The framework's own name, if the report has it.
    pub id: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// Its duration.
    pub duration: Duration,
    /// The report's own words about it.
    pub account: Account,
}

impl fmt::Display for Reported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.classname.is_empty() { "" } else { "." };
        write!(formatter, "{}{dot}{}", self.classname, self.name)
    }
}

/// The tests that a reported failure can belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// This one; or these, which have the same name.
    Found(Vec<TestId>),
    /// Several, of which the report does not say which.
    Ambiguous(Vec<TestId>),
    /// None that the project has.
    None,
}

/// Finds the test that a report is about.
///
/// By the framework's own name if the report has it; else by class and name as pytest writes them; else
/// by the end of the class, because the report may have been made in another folder or with a prefix.
pub fn find_test(tests: &[Test], reported: &Reported) -> Match {
    let with = |fits: &dyn Fn(&Test) -> bool| -> Vec<TestId> {
        let fitting = tests.iter().filter(|test| fits(test));
        fitting.map(|test| test.id.clone()).collect()
    };
    if let Some(id) = &reported.id {
        let found = with(&|test| test.id.name() == id);
        if !found.is_empty() {
            return Match::Found(found);
        }
    }
    let exact =
        with(&|test| junit_name(&test.id) == (reported.classname.clone(), reported.name.clone()));
    if !exact.is_empty() {
        return one_of(exact);
    }
    let mut near = with(&|test| {
        let (classname, name) = junit_name(&test.id);
        let is_method = test.id.class_and_method().is_some();
        // Surefire reports each part of a parametrised test, which is one test here.
        let is_it = name == reported.name || is_method && plain(&name) == plain(&reported.name);
        is_it && is_end(&classname, &reported.classname)
    });
    if near.len() > 1
        && let Some(file) = &reported.file
    {
        near.retain(|id| id.name().starts_with(file.as_str()));
    }
    if near.is_empty() {
        Match::None
    } else {
        one_of(near)
    }
}

/// The part of a test that a reported failure is about: Surefire numbers the parts of a parametrised test, `total(int)[2]`.
/// `None` if it is about the whole test. A number that cannot be read is left empty, and equals no other.
pub fn part_of(test: &TestId, reported: &Reported) -> Option<Part> {
    let (_, method) = test.class_and_method()?;
    if escape(method) == reported.name {
        return None;
    }
    let mut numbers = Vec::new();
    let mut rest = reported.name.as_str();
    while let Some((head, number)) = rest
        .strip_suffix(']')
        .and_then(|rest| rest.rsplit_once('['))
    {
        numbers.insert(0, number);
        rest = head;
    }
    Some(Part {
        number: numbers.join("."),
        name: String::new(),
    })
}

/// One test and its namesakes, or several that differ.
fn one_of(found: Vec<TestId>) -> Match {
    if found.iter().all(|test| test.name() == found[0].name()) {
        Match::Found(found)
    } else {
        Match::Ambiguous(found)
    }
}

/// Whether one dotted name is the end of the other.
fn is_end(one: &str, other: &str) -> bool {
    let ends = |long: &str, short: &str| {
        !short.is_empty()
            && long
                .strip_suffix(short)
                .is_some_and(|head| head.ends_with('.'))
    };
    one == other || ends(one, other) || ends(other, one)
}

/// The name of a method without its parameters and the number of a part.
fn plain(name: &str) -> &str {
    let end = name.find(['(', '{', '[', ' ']);
    end.map_or(name, |end| &name[..end])
}

/// The class and name under which pytest or Surefire writes a test into JUnit XML.
pub fn junit_name(test: &TestId) -> (String, String) {
    if let Some((class, method)) = test.class_and_method() {
        return (class.to_owned(), escape(method));
    }
    let (path, parameters) = match test.name().find('[') {
        Some(at) => test.name().split_at(at),
        None => (test.name(), ""),
    };
    let mut parts: Vec<String> = path.split("::").map(ToOwned::to_owned).collect();
    let file = parts[0].replace('/', ".");
    file.strip_suffix(".py")
        .unwrap_or(&file)
        .clone_into(&mut parts[0]);
    let name = parts.pop().unwrap_or_default() + parameters;
    (parts.join("."), escape(&name))
}

/// pytest writes characters that XML cannot hold as their numbers.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for one in text.chars() {
        let code = u32::from(one);
        let is_allowed = matches!(code, 0x09 | 0x0A | 0x0D | 0x20..=0x7E | 0x80..=0xD7FF | 0xE000..=0xFFFD)
            || code >= 0x10000;
        if is_allowed {
            escaped.push(one);
        } else {
            let width = if code <= 0xFF { 2 } else { 4 };
            // Writing into a string cannot fail.
            let _ = write!(escaped, "#x{code:0width$X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_parametrised_method_is_found_by_its_method() {
        let tests = tests(&["shop.CartTest#total(int)", "shop.CartTest#empty"]);
        let mut reported = reported("shop.CartTest", "total(int)[2]");
        let total = Match::Found(vec![TestId::new("shop.CartTest#total(int)")]);
        assert_eq!(find_test(&tests, &reported), total);
        reported.name = "total{int}[1]".to_owned();
        assert_eq!(find_test(&tests, &reported), total);
        reported.name = "totals".to_owned();
        assert_eq!(find_test(&tests, &reported), Match::None);
    }

    #[test]
    fn a_part_is_told_by_its_numbers() {
        let test = TestId::new("shop.CartTest#total(int)");
        let number =
            |name: &str| part_of(&test, &reported("shop.CartTest", name)).map(|part| part.number);
        assert_eq!(number("total(int)"), None);
        assert_eq!(number("total(int)[2]").as_deref(), Some("2"));
        assert_eq!(number("total{int}[1][3]").as_deref(), Some("1.3"));
        assert_eq!(number("total(int) tea").as_deref(), Some(""));
    }

    fn tests(names: &[&str]) -> Vec<Test> {
        let tests = names.iter().map(|name| Test {
            id: TestId::new(name),
            file: name.split("::").next().unwrap().to_owned(),
            line: 1,
        });
        tests.collect()
    }

    fn reported(classname: &str, name: &str) -> Reported {
        Reported {
            report: 0,
            classname: classname.to_owned(),
            name: name.to_owned(),
            file: None,
            id: None,
            outcome: Outcome::Failed,
            duration: Duration::ZERO,
            account: Account::default(),
        }
    }

    fn found(names: &[&str]) -> Match {
        Match::Found(names.iter().map(|name| TestId::new(name)).collect())
    }

    #[test]
    fn functions_classes_and_parameters_are_found_as_pytest_names_them() {
        let suite = tests(&[
            "tests/test_cart.py::test_total",
            "tests/test_cart.py::TestCart::test_total",
            "tests/test_cart.py::test_sum[a::b/c.py]",
            "tests/test_cart.py::test_sum[\u{1b}]",
            "README.rst::README.rst",
        ]);
        for (classname, name, place) in [
            ("tests.test_cart", "test_total", 0),
            ("tests.test_cart.TestCart", "test_total", 1),
            ("tests.test_cart", "test_sum[a::b/c.py]", 2),
            ("tests.test_cart", "test_sum[#x1B]", 3),
            ("README.rst", "README.rst", 4),
        ] {
            let found = find_test(&suite, &reported(classname, name));
            assert_eq!(found, Match::Found(vec![suite[place].id.clone()]), "{name}");
        }
    }

    #[test]
    fn a_report_from_another_folder_is_matched_by_the_end_of_the_class() {
        let suite = tests(&[
            "shop/tests/test_cart.py::test_total",
            "other/test_net.py::test_total",
        ]);
        let inside = find_test(&suite, &reported("tests.test_cart", "test_total"));
        assert_eq!(inside, found(&["shop/tests/test_cart.py::test_total"]));
        let outside = find_test(&suite, &reported("mono.other.test_net", "test_total"));
        assert_eq!(outside, found(&["other/test_net.py::test_total"]));
        let half = find_test(&suite, &reported("cart", "test_total"));
        assert_eq!(half, Match::None, "a part of a name is another name");
    }

    #[test]
    fn what_fits_several_tests_is_none_of_them_unless_the_file_says_which() {
        let suite = tests(&["a/test_x.py::test_it", "b/test_x.py::test_it"]);
        let mut case = reported("test_x", "test_it");
        assert!(matches!(find_test(&suite, &case), Match::Ambiguous(both) if both.len() == 2));
        case.file = Some("b/test_x.py".to_owned());
        assert_eq!(find_test(&suite, &case), found(&["b/test_x.py::test_it"]));
        assert_eq!(
            find_test(&suite, &reported("test_x", "test_gone")),
            Match::None
        );
    }

    #[test]
    fn the_frameworks_own_name_beats_all_guesses() {
        let suite = tests(&["a/test_x.py::test_it", "b/test_x.py::test_it"]);
        let mut case = reported("unflake", "whatever");
        case.id = Some("b/test_x.py::test_it".to_owned());
        assert_eq!(find_test(&suite, &case), found(&["b/test_x.py::test_it"]));
    }
}
