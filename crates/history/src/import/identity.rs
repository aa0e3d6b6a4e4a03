//! What tells a report from all others: its bytes, and what was said of it.
//!
//! Digests stay in stores for years, and a client asks a server for a report by its digest. So the bytes that a digest
//! is made of are written out here and never change, whatever fields are called elsewhere. The words are those that the
//! first stores were written with.

use super::columns::{Columns, Field};
use super::{Format, Wish};
use crate::run::Provenance;

/// The fields of a table in the order of these bytes, and their words in them. A new field comes at the end.
const FIELDS: [(Field, &str); 12] = [
    (Field::Test, "Test"),
    (Field::Time, "Time"),
    (Field::Verdict, "Verdict"),
    (Field::Release, "Release"),
    (Field::Bug, "Bug"),
    (Field::Branch, "Branch"),
    (Field::Revision, "Revision"),
    (Field::Environment, "Environment"),
    (Field::Job, "Job"),
    (Field::Duration, "Duration"),
    (Field::Attempt, "Attempt"),
    (Field::Message, "Message"),
];

/// The digest of a report: of what is said of it, and then of its bytes.
pub fn digest_of_report(bytes: &[u8], wish: &Wish) -> [u8; 32] {
    let mut hasher = hasher(wish);
    hasher.update(bytes);
    *hasher.finalize().as_bytes()
}

/// A digest that begins with what is said of a report.
pub(super) fn hasher(wish: &Wish) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    hasher.update(canonical(wish).as_bytes());
    hasher
}

/// What is said of a report, as the bytes that stand before its own. The present is no part of it.
fn canonical(wish: &Wish) -> String {
    let Wish {
        provenance,
        columns,
        format,
        now: _,
    } = wish;
    let mut text = String::new();
    write_provenance(&mut text, provenance);
    text.push(' ');
    write_columns(&mut text, columns);
    text.push_str(match format {
        None => " None",
        Some(Format::Junit) => " Some(Junit)",
        Some(Format::Csv) => " Some(Csv)",
        Some(Format::JsonLines) => " Some(JsonLines)",
    });
    text
}

/// Writes where runs come from. A field that is added later is left out where it is empty.
fn write_provenance(text: &mut String, provenance: &Provenance) {
    let Provenance {
        revision,
        branch,
        release,
        environment,
        job,
    } = provenance;
    let all = [
        ("revision", revision),
        ("branch", branch),
        ("release", release),
        ("environment", environment),
        ("job", job),
    ];
    text.push_str("Provenance {");
    for (place, (name, value)) in all.into_iter().enumerate() {
        text.push_str(if place == 0 { " " } else { ", " });
        text.push_str(name);
        text.push_str(": ");
        quote(text, value);
    }
    text.push_str(" }");
}

fn write_columns(text: &mut String, columns: &Columns) {
    let named = FIELDS
        .iter()
        .filter_map(|(field, word)| Some((word, columns.named(*field)?)));
    text.push_str("Columns { named: {");
    for (place, (word, column)) in named.enumerate() {
        if place > 0 {
            text.push_str(", ");
        }
        text.push_str(word);
        text.push_str(": ");
        quote(text, column);
    }
    text.push_str("} }");
}

/// Writes a text between quotes. What ends it, and what cannot be seen, is escaped, so that no two texts are written alike.
fn quote(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '\'' => text.push(character),
            other => text.extend(other.escape_debug()),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(provenance: [&str; 5], columns: &[&str], format: Option<Format>) -> Wish {
        let [revision, branch, release, environment, job] = provenance.map(ToOwned::to_owned);
        let mut wish = Wish {
            provenance: Provenance {
                revision,
                branch,
                release,
                environment,
                job,
            },
            format,
            now: 5,
            ..Wish::default()
        };
        for column in columns {
            wish.columns.name(column).unwrap();
        }
        wish
    }

    fn digest(bytes: &[u8], wish: &Wish) -> String {
        let digest = blake3::Hash::from_bytes(digest_of_report(bytes, wish));
        digest.to_hex().to_string()
    }

    /// A column for each field, named in another order than that of the bytes.
    const COLUMNS: [&str; 12] = [
        "message=why \"so\"",
        "attempt=a",
        "duration=d",
        "job=j",
        "environment=e",
        "revision=r",
        "branch=b",
        "bug=TR id",
        "release=rel",
        "verdict=v",
        "time=when",
        "test=name",
    ];

    /// A text with each kind of characters: quotes, what cannot be seen, other scripts, marks on letters, private ones.
    const HARD: &str = "a'b\"c\\d\0\t\r\n\u{7f}é e\u{301} 中 🙂 \u{202e}\u{200b}\u{e000}\u{a0}";

    #[test]
    fn these_bytes_are_those_that_the_first_stores_were_written_with() {
        let plain = wish(["", "", "", "", ""], &[], None);
        assert_eq!(
            canonical(&plain),
            "Provenance { revision: \"\", branch: \"\", release: \"\", environment: \"\", job: \"\" } \
             Columns { named: {} } None"
        );
        let all = wish([HARD, "main", "R1", "", "7"], &COLUMNS, Some(Format::Csv));
        assert_eq!(
            canonical(&all),
            "Provenance { revision: \"a'b\\\"c\\\\d\\0\\t\\r\\n\\u{7f}é e\\u{301} 中 🙂 \\u{202e}\\u{200b}\\u{e000}\\u{a0}\", \
             branch: \"main\", release: \"R1\", environment: \"\", job: \"7\" } \
             Columns { named: {Test: \"name\", Time: \"when\", Verdict: \"v\", Release: \"rel\", Bug: \"TR id\", \
             Branch: \"b\", Revision: \"r\", Environment: \"e\", Job: \"j\", Duration: \"d\", Attempt: \"a\", \
             Message: \"why \\\"so\\\"\"} } Some(Csv)"
        );
    }

    #[test]
    fn these_digests_stand_in_stores() {
        let none = ["", "", "", "", ""];
        let some = ["abc+", "main", "", "linux", "job 7"];
        let hard = [HARD; 5];
        let golden = [
            (
                wish(none, &[], None),
                "b14f972026cfe37fa523378ee3e52268dd0e17eb5e4b2f7809e48b91c55f614b",
            ),
            (
                wish(some, &[], Some(Format::Junit)),
                "e75c1193210ce71da6d2aad54cd291a34ab0a99a02c41340691a481f796d0b18",
            ),
            (
                wish(some, &["bug=TR id"], Some(Format::Csv)),
                "81800ad314987fb6b4baffbd6ce84eab7afc98503becac422a311258f514cf81",
            ),
            (
                wish(hard, &COLUMNS, Some(Format::JsonLines)),
                "f58d10212cafe45983ad31822b1aa2e8687a078b59aad3f2ca628498536dae3f",
            ),
        ];
        for (wish, expected) in golden {
            assert_eq!(digest(b"a report", &wish), expected, "{}", canonical(&wish));
        }
    }
}
