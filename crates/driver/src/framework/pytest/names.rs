//! pytest's ids, and the functions of a Python source: `tests/test_cart.py::TestCart::test_total[1]`.

use camino::Utf8Path;
use unflake_core::test::TestId;

use crate::framework::project::Place;

/// The place of a test, if ids begin in the folder `root`.
pub(crate) fn place_of(test: &TestId, root: &Utf8Path) -> Option<Place> {
    let (file, rest) = test.name().split_once("::")?;
    Some(Place {
        source: root.join(file),
        function: function(rest).to_owned(),
    })
}

/// The id of the same test in another source and with another function's name.
pub(crate) fn id_at(test: &TestId, root: &Utf8Path, place: &Place) -> Option<TestId> {
    let (_, rest) = test.name().split_once("::")?;
    let file = place.source.strip_prefix(root).ok()?;
    let start = function(rest).as_ptr() as usize - rest.as_ptr() as usize;
    let (class, own) = rest.split_at(start);
    let parameters = &own[function(rest).len()..];
    let name = format!("{file}::{class}{}{parameters}", place.function);
    Some(TestId::copy_of(&name, test.copy()))
}

/// The name, among the frames of `new`, of a function among the frames of `old`: a frame has the bare name.
pub(crate) fn in_frames(frame: &str, old: &TestId, new: &TestId) -> Option<String> {
    let own = |test: &TestId| {
        let (_, rest) = test.name().split_once("::")?;
        Some(function(rest).to_owned())
    };
    (own(old)? == frame).then(|| own(new)).flatten()
}

/// The functions of a source, each with its text without its own name.
pub(crate) fn functions(source: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = source.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let head = trimmed
            .strip_prefix("def ")
            .or_else(|| trimmed.strip_prefix("async def "));
        let Some((name, rest)) = head.and_then(|head| head.split_once('(')) else {
            continue;
        };
        let depth = indent(line);
        let more = lines[at + 1..].iter();
        let inner = more.take_while(|next| next.trim().is_empty() || indent(next) > depth);
        let inner: Vec<&str> = inner
            .map(|next| next.trim_end())
            .filter(|next| !next.is_empty())
            .collect();
        found.push((
            name.trim().to_owned(),
            format!("({rest}\n{}", inner.join("\n")),
        ));
    }
    found
}

/// The function in what stands behind the file, without class and parameters.
fn function(rest: &str) -> &str {
    let plain = rest.split('[').next().unwrap_or(rest);
    plain
        .rsplit_once("::")
        .map_or(plain, |(_, function)| function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_keeps_its_class_and_parameters_under_another_name() {
        let root = Utf8Path::new("/shop");
        let test = TestId::new("tests/test_cart.py::TestCart::test_total[a::b]");
        let place = place_of(&test, root).unwrap();
        assert_eq!(place.source, "/shop/tests/test_cart.py");
        assert_eq!(place.function, "test_total");
        let old = Place {
            source: "/shop/test_old.py".into(),
            function: "test_sum".to_owned(),
        };
        let id = id_at(&test, root, &old).unwrap();
        assert_eq!(id.name(), "test_old.py::TestCart::test_sum[a::b]");
        let now = in_frames("test_sum", &id, &test);
        assert_eq!(now.as_deref(), Some("test_total"));
        assert_eq!(in_frames("helper", &id, &test), None);
    }
}
