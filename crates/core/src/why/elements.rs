//! What is in the collections that a call returned: the element whose presence tells failing runs from passing ones.
//!
//! `random.sample` hardly ever returns the same list twice, but all lists that make a test fail may have one element
//! in common. Collections are taken apart from their text, as Python and Java write them.

use std::collections::BTreeSet;

use crate::why::ledger::{Evidence, Ledger, Side, Sides};
use crate::why::predicate::Claim;

/// Collections that are longer are not taken apart.
const LONGEST: usize = 64;

impl Ledger {
    /// The element that is most often in the returned collections of one side and not in those of the other, and the
    /// number of runs with it. `None` if a call returned something else too, or more values than are told apart.
    pub(crate) fn split_elements(&self, evidence: &Evidence) -> Option<(Claim, Sides<u32>)> {
        let is_one = evidence.values.len() < 2 || evidence.raised != [0; 2];
        if is_one || !evidence.is_told_apart() {
            return None;
        }
        let mut collections = Vec::new();
        for value in &evidence.values {
            collections.push((elements(&value.text)?, value.counts));
        }
        let all: BTreeSet<&str> = collections
            .iter()
            .flat_map(|(all, _)| all)
            .copied()
            .collect();
        let among = u32::try_from(all.len()).ok()?;
        let counted = all.into_iter().map(|element| {
            let with = collections.iter().filter(|(all, _)| all.contains(&element));
            let yes = with.fold([0, 0], |yes, (_, counts)| {
                [yes[0] + counts[0], yes[1] + counts[1]]
            });
            (element, yes)
        });
        let difference = |yes: Sides<u32>| {
            let share = |side: Side| {
                let side = side as usize;
                f64::from(yes[side]) / f64::from(self.runs[side].max(1))
            };
            (share(Side::Failing) - share(Side::Passing)).abs()
        };
        let best =
            counted.max_by(|(_, one), (_, two)| difference(*one).total_cmp(&difference(*two)));
        best.map(|(element, yes)| {
            let element = element.to_owned();
            (Claim::Contains { element, among }, yes)
        })
    }
}

/// The elements of a list, tuple, set or mapping by its text; `None` if it is another value, or was cut.
fn elements(text: &str) -> Option<BTreeSet<&str>> {
    let closing = match text.chars().next()? {
        '[' => ']',
        '(' => ')',
        '{' => '}',
        _ => return None,
    };
    let inner = text[1..].strip_suffix(closing)?;
    let mut found = BTreeSet::new();
    let (mut start, mut depth) = (0, 0_usize);
    let mut quote: Option<char> = None;
    let mut letters = inner.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (Some(_), '\\') => {
                letters.next();
            }
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[' | '(' | '{') => depth += 1,
            (None, ']' | ')' | '}') => depth = depth.checked_sub(1)?,
            (None, ',') if depth == 0 => {
                found.insert(inner[start..at].trim());
                start = at + 1;
            }
            (Some(_) | None, _) => {}
        }
    }
    found.insert(inner[start..].trim());
    found.remove("");
    (quote.is_none() && depth == 0 && found.len() <= LONGEST).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::tests::{Pen, ledger};
    use crate::why::trace::{Kind, Trace};

    fn of(text: &str) -> Option<Vec<&str>> {
        elements(text).map(|all| all.into_iter().collect())
    }

    #[test]
    fn collections_are_taken_apart_at_their_own_commas() {
        assert_eq!(
            of("['a, b', \"c's\", (1, 2)]"),
            Some(vec!["\"c's\"", "'a, b'", "(1, 2)"])
        );
        assert_eq!(
            of("{'a': [1, 2], 'b': 3}"),
            Some(vec!["'a': [1, 2]", "'b': 3"])
        );
        assert_eq!(of("('a\\', b',)"), Some(vec!["'a\\', b'"]));
        assert_eq!(of("[]"), Some(vec![]));
    }

    #[test]
    fn what_is_no_whole_collection_is_not_taken_apart() {
        for text in ["", "7", "'a, b'", "['a', 'b", "[1, 2…", "[1)], 2]", "['a]"] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    fn drawn(people: &str) -> Trace {
        let mut pen = Pen::new();
        pen.timed(
            (7, "random.sample", Kind::Randomness),
            people,
            0,
            (10_000, 1_000),
        );
        pen.done()
    }

    #[test]
    fn an_element_that_only_failing_runs_drew_is_named_although_no_draw_comes_twice() {
        let failing = [
            "['admin', 'a']",
            "['b', 'admin']",
            "['admin', 'c']",
            "['d', 'admin']",
        ];
        let passing = [
            "['a', 'b']",
            "['b', 'c']",
            "['c', 'd']",
            "['d', 'a']",
            "['b', 'a']",
            "['a', 'c']",
        ];
        let [passing, failing] =
            [&passing[..], &failing].map(|all| all.iter().map(|one| drawn(one)).collect());
        let ranked = ledger(passing, failing).rank(&[]);
        let element = "'admin'".to_owned();
        assert_eq!(
            ranked[0].claim,
            Claim::Contains { element, among: 5 },
            "{ranked:#?}"
        );
        assert!(ranked[0].holds);
    }

    #[test]
    fn an_element_that_only_passing_runs_have_is_told_as_missing() {
        let failing = ["['a']", "['b']", "['a', 'b']", "[]"];
        let passing = [
            "['a', 'x']",
            "['x']",
            "['x', 'b']",
            "['b', 'x']",
            "['a', 'b', 'x']",
        ];
        let [passing, failing] =
            [&passing[..], &failing].map(|all| all.iter().map(|one| drawn(one)).collect());
        let ranked = ledger(passing, failing).rank(&[]);
        let element = "'x'".to_owned();
        assert_eq!(
            ranked[0].claim,
            Claim::Contains { element, among: 3 },
            "{ranked:#?}"
        );
        assert!(!ranked[0].holds);
    }
}
