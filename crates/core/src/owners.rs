//! Who looks after a file: the rules of a CODEOWNERS file.

/// The rules, in the order of the file: the last that fits decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owners(Vec<(String, String)>);

impl Owners {
    /// Reads the lines of a CODEOWNERS file. Comments, sections and empty lines say nothing.
    pub fn parse(text: &str) -> Self {
        let mut rules = Vec::new();
        for line in text.lines() {
            let line = line.split(" #").next().unwrap_or(line).trim();
            if line.is_empty() || line.starts_with(['#', '[', '^']) {
                continue;
            }
            let (pattern, owners) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            rules.push((pattern.to_owned(), owners.trim().to_owned()));
        }
        Self(rules)
    }

    /// The owners of a test by its name, if its name says where it is; empty if nobody owns it.
    pub fn of_test(&self, name: &str) -> &str {
        if self.0.is_empty() {
            return "";
        }
        let file = match name.split_once("::") {
            Some((file, _)) => file.to_owned(),
            // A class of Java is in a folder for each part of its package.
            None => match name.split_once('#') {
                Some((class, _)) => format!("{}.java", class.replace('.', "/")),
                None => return "",
            },
        };
        let fits = |(pattern, _): &&(String, String)| matches(pattern, &file);
        let found = self.0.iter().rev().find(fits);
        found.map_or("", |(_, owners)| owners)
    }
}

/// Whether a pattern fits a path, by the rules of .gitignore: `*` stays within a folder, `**` does not, a
/// pattern with a slash before its end begins at the root, and a folder means all that is in it.
fn matches(pattern: &str, path: &str) -> bool {
    let body = pattern.trim_end_matches('/');
    let is_rooted = body.contains('/');
    let body = body.trim_start_matches('/');
    let fits = |path: &str| {
        let prefixes = path.match_indices('/').map(|(at, _)| &path[..at]);
        let whole = (!pattern.ends_with('/')).then_some(path);
        // A single star at the end names files, not what is in folders.
        let into_folders = !body.ends_with("/*");
        let mut all = prefixes.filter(|_| into_folders).chain(whole);
        all.any(|part| wild(body.as_bytes(), part.as_bytes()))
    };
    if is_rooted {
        return fits(path);
    }
    let starts = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
    std::iter::once(path).chain(starts).any(fits)
}

fn wild(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', b'*', b'/', rest @ ..] => {
            wild(rest, text)
                || (0..text.len()).any(|at| text[at] == b'/' && wild(rest, &text[at + 1..]))
        }
        [b'*', b'*', rest @ ..] => (0..=text.len()).any(|at| wild(rest, &text[at..])),
        [b'*', rest @ ..] => {
            let end = text
                .iter()
                .position(|one| *one == b'/')
                .unwrap_or(text.len());
            (0..=end).any(|at| wild(rest, &text[at..]))
        }
        [b'?', rest @ ..] => text.first().is_some_and(|one| *one != b'/') && wild(rest, &text[1..]),
        [one, rest @ ..] => text.first() == Some(one) && wild(rest, &text[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rule_that_fits_decides() {
        let owners = Owners::parse(
            "# all\n*  @all\n/tests/net/ @net @ops\ndocs/*  @docs\n*.java @java\n**/slow/* @slow\n/tests/free.py\n",
        );
        for (test, wanted) in [
            ("tests/net/test_a.py::test_x", "@net @ops"),
            ("more/tests/net/test_a.py::test_x", "@all"),
            ("docs/test_a.py::t", "@docs"),
            ("docs/deep/test_a.py::t", "@all"),
            ("a/b/slow/test_a.py::t", "@slow"),
            ("shop.CartTest#total", "@java"),
            ("tests/free.py::t", ""),
            ("tests.test_cart.test_total", ""),
        ] {
            assert_eq!(owners.of_test(test), wanted, "{test}");
        }
        assert_eq!(Owners::default().of_test("a.py::t"), "");
    }
}
