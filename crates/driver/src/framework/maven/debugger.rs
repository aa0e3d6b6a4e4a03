//! The options of a JVM, besides Surefire's own, that is to be looked into.
//!
//! A JVM that only runs tests has nothing of this.

use std::fs;

use camino::Utf8Path;

/// The facts that are looked for in a VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Looking {
    /// Nothing: it runs tests.
    #[default]
    Nothing,
    /// The changes of its state.
    State,
    /// The lines that write it.
    Writes,
}

impl Looking {
    /// The word for it to the shell that starts the JVM; `None` for nothing.
    pub(super) fn word(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::State => Some("state"),
            Self::Writes => Some("writes"),
        }
    }
}

/// The version of a JDK by what it says beside its programs: 8, 17 and so on.
///
/// `None` for one that does not say it: it is newer than those that do not need to.
pub(super) fn version(java: &Utf8Path) -> Option<u32> {
    let release = java.parent()?.parent()?.join("release");
    // A JDK need not have the file.
    version_in(&fs::read_to_string(release).ok()?)
}

fn version_in(release: &str) -> Option<u32> {
    let line = release
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    let text = line.trim_matches('"');
    let text = text.strip_prefix("1.").unwrap_or(text);
    let digits = text.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// The JVM's own options for one that is looked into: from version 23 on, thread locals are not read without
/// a warning or at all.
pub(super) fn options(version: Option<u32>) -> &'static [&'static str] {
    match version {
        Some(version) if version >= 23 => &["--sun-misc-unsafe-memory-access=allow"],
        Some(_) | None => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jdk_says_its_version() {
        for (line, version) in [
            ("JAVA_VERSION=\"1.8.0_412\"", Some(8)),
            (
                "IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\nOS_NAME=\"Linux\"",
                Some(17),
            ),
            ("JAVA_VERSION=\"25\"", Some(25)),
            ("JAVA_VERSION=\"26-ea\"", Some(26)),
            ("OS_NAME=\"Linux\"", None),
        ] {
            assert_eq!(version_in(line), version, "{line}");
        }
    }
}
