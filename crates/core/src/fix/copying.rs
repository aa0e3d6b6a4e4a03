//! A copy instead of a change in place: a function that changes what it was given, or what it took from
//! elsewhere, is to change a copy of it.

use super::block::{Function, assignment, indent_of, is_name, is_whole};
use crate::edit::Edit;

/// Methods that change what they are called on.
const METHODS: [&str; 19] = [
    "add",
    "append",
    "clear",
    "difference_update",
    "discard",
    "extend",
    "insert",
    "intersection_update",
    "pop",
    "popitem",
    "remove",
    "reverse",
    "setdefault",
    "sort",
    "symmetric_difference_update",
    "update",
    "appendleft",
    "extendleft",
    "rotate",
];

/// The code that changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A test's.
    Test,
    /// The project's: there a change in place may be meant, as that of a cache is. What is written in
    /// capitals, or is the default of a parameter, is not meant to be changed.
    Project,
}

/// The edit with which the statement in this line (from 0) changes a copy; `None` if it changes nothing
/// that has a name in its function, or something that no other name stands for.
pub fn copy_first(source: &str, line: usize, code: Code) -> Option<Edit> {
    let function = Function::around(source, line)?;
    let name = changed_name(function.line(line))?;
    let before = function.body().filter(|(at, _)| *at < line);
    let bound = before
        .rev()
        .find_map(|(at, text)| Some((at, assignment(text).filter(|(one, _)| *one == name)?.1)));
    let Some((at, value)) = bound else {
        return copy_argument(&function, name, line, code);
    };
    if !is_path(value) || (code == Code::Project && !is_constant(value)) {
        return None;
    }
    let margin = " ".repeat(indent_of(function.line(at)));
    Some(Edit {
        at,
        removed: 1,
        lines: vec![format!("{margin}{name} = {value}.copy()")],
    })
}

/// Copies an argument before the statement of the function's own block that a line is part of.
fn copy_argument(function: &Function<'_>, name: &str, line: usize, code: Code) -> Option<Edit> {
    let indent = function.indent();
    let is_own = |text: &str| !text.trim().is_empty() && indent_of(text) == indent;
    let mut upto = function.body().filter(|(at, _)| *at <= line);
    let (at, _) = upto.rfind(|(_, text)| is_own(text))?;
    let parameter = function.parameter(name)?;
    (code == Code::Test || parameter.contains('=')).then(|| Edit {
        at,
        removed: 0,
        lines: vec![format!("{}{name} = {name}.copy()", " ".repeat(indent))],
    })
}

/// The plain name of what a statement changes in place.
fn changed_name(statement: &str) -> Option<&str> {
    let statement = statement.trim();
    if !is_whole(statement) {
        return None;
    }
    if let Some(rest) = statement.strip_prefix("del ") {
        let (name, _) = rest.split_once('[')?;
        return is_name(name).then_some(name);
    }
    // What is changed may give a value at the same time.
    let called = assignment(statement).map_or(statement, |(_, value)| value);
    if let Some((name, rest)) = called.split_once('.')
        && let Some((method, _)) = rest.split_once('(')
        && is_name(name)
        && METHODS.contains(&method)
    {
        return Some(name);
    }
    let (target, _) = statement.split_once('=')?;
    let target = target.trim_end_matches(['+', '-', '|', '&', '^', '*', '/', '%', ' ']);
    let is_item = target.ends_with(']');
    let (name, _) = target.split_once('[').unwrap_or((target, ""));
    let is_changed = is_item || (statement.contains("+= ") || statement.contains("|= "));
    (is_changed && is_name(name)).then_some(name)
}

/// Whether an expression only says where something is: `shop.cart.RATES['eur']`.
fn is_path(value: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || "_.[]'\"".contains(letter);
    let starts_well = value.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
    starts_well && value.chars().all(is_part)
}

/// Whether a path leads to a name in capitals.
fn is_constant(path: &str) -> bool {
    let path = path.split('[').next().unwrap_or_default();
    let name = path.rsplit('.').next().unwrap_or_default();
    name.starts_with(|letter: char| letter.is_ascii_uppercase())
        && !name.contains(|letter: char| letter.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::apply;

    fn edited(source: &str, line: usize, code: Code) -> Option<String> {
        copy_first(source, line, code).map(|edit| apply(source, &edit))
    }

    #[test]
    fn what_a_function_took_from_elsewhere_is_copied_where_it_takes_it() {
        let source = "def test_one():\n    rates = shop.RATES\n    for name in 'ab':\n        rates[name] = 1\n    assert rates\n";
        let wanted = source.replace("shop.RATES", "shop.RATES.copy()");
        assert_eq!(edited(source, 3, Code::Test), Some(wanted.clone()));
        assert_eq!(edited(source, 3, Code::Project), Some(wanted));
        let cache = source.replace("RATES", "_cache");
        assert_eq!(edited(&cache, 3, Code::Project), None);
        assert!(edited(&cache, 3, Code::Test).is_some());
    }

    #[test]
    fn an_argument_is_copied_before_it_is_changed() {
        let source = "class Cart:\n    def add(self, item, items=[], *, size=max(1, 2)):\n        if item:\n            items.append(item)\n        return items\n";
        let wanted = source.replace(
            "        if item",
            "        items = items.copy()\n        if item",
        );
        assert_eq!(edited(source, 3, Code::Project), Some(wanted));
        let other = source.replace("items.append", "others.append");
        assert_eq!(edited(&other, 3, Code::Project), None);
        let given = source.replace("items=[]", "items");
        assert_eq!(edited(&given, 3, Code::Project), None);
        assert!(edited(&given, 3, Code::Test).is_some());
    }

    #[test]
    fn a_statement_that_changes_something_in_place_is_known() {
        for (statement, name) in [
            ("rates['eur'] = 2", Some("rates")),
            ("rates['eur'] += 2", Some("rates")),
            ("del rates['eur']", Some("rates")),
            ("rates.update(eur=2)", Some("rates")),
            ("last = rates.pop()", Some("rates")),
            ("rates += [1]", Some("rates")),
            ("rates = [1]", None),
            ("rates.get('eur')", None),
            ("shop.rates.update(eur=2)", None),
            ("rates.update(", None),
            ("assert rates == [1]", None),
        ] {
            assert_eq!(changed_name(statement), name, "{statement}");
        }
    }

    #[test]
    fn a_value_that_is_new_needs_no_copy() {
        let source = "def test_one():\n    rates = make()\n    rates.clear()\n";
        assert_eq!(edited(source, 2, Code::Test), None);
        assert_eq!(edited("rates.clear()\n", 0, Code::Test), None);
        assert_eq!(edited("rates.clear()\n", 7, Code::Test), None);
    }
}
