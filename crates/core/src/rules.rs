//! What is known about changed files before any run is looked at.

use crate::pattern::Pattern;

/// Files whose changes nothing can rule out: they shape the environment in which every test runs.
const ALWAYS: [&str; 46] = [
    // How the project is built, configured and tested.
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    "tox.ini",
    "tox.toml",
    "noxfile.py",
    "MANIFEST.in",
    "unflake.toml",
    "Makefile",
    "CMakeLists.txt",
    "meson.build",
    "build.rs",
    "pom.xml",
    ".mvn/*",
    "mvnw",
    "Cargo.toml",
    "BUILD",
    "BUILD.bazel",
    // What it depends on.
    "requirements*.txt",
    "requirements*.in",
    "*requirements/*",
    "constraints*.txt",
    "*.lock",
    "Pipfile",
    "environment*.yml",
    "environment*.yaml",
    ".gitmodules",
    // The interpreter and its surroundings.
    ".python-version",
    ".tool-versions",
    "*.pth",
    "sitecustomize.py",
    "usercustomize.py",
    ".env*",
    // Where the tests run.
    "Dockerfile*",
    "*compose*.yml",
    "*compose*.yaml",
    ".github/workflows/*",
    ".gitlab-ci*.yml",
    ".circleci/*",
    ".buildkite/*",
    "azure-pipelines*.yml",
    ".travis.yml",
    "Jenkinsfile*",
];

/// Files that say what is installed or running around the tests. A checkout of the base has its own of these, and still
/// runs with what the work tree's asked for.
const ENVIRONMENT: [&str; 16] = [
    "Makefile",
    "CMakeLists.txt",
    "meson.build",
    "build.rs",
    ".python-version",
    ".tool-versions",
    ".env*",
    "Dockerfile*",
    "*compose*.yml",
    "*compose*.yaml",
    ".github/workflows/*",
    ".gitlab-ci*.yml",
    ".circleci/*",
    ".buildkite/*",
    "azure-pipelines*.yml",
    "Jenkinsfile*",
];

/// The files among them that say what is installed: an environment of the base's own has what the base's files say.
const INSTALLED: [&str; 11] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements*.txt",
    "requirements*.in",
    "*requirements/*",
    "constraints*.txt",
    "*.lock",
    "Pipfile",
    "environment*.yml",
    "environment*.yaml",
];

/// What is known about changed files before any run is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Files whose changes nothing can rule out.
    always: Vec<Pattern>,
    /// Files whose changes no test depends on. They beat `always`.
    never: Vec<Pattern>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            always: ALWAYS.into_iter().map(Pattern::new).collect(),
            never: Vec::new(),
        }
    }
}

impl Rules {
    /// The usual rules, with more files on either side. A pattern without `/` is for names in any
    /// folder, one with `/` for paths from the repository's root.
    pub fn with(always: &[String], never: &[String]) -> Self {
        let patterns = |texts: &[String]| -> Vec<Pattern> {
            texts.iter().map(|text| Pattern::new(text)).collect()
        };
        let mut rules = Self::default();
        rules.always.extend(patterns(always));
        rules.never = patterns(never);
        rules
    }

    /// Whether every test may depend on this file.
    pub fn is_always(&self, path: &str) -> bool {
        matches_path(&self.always, path)
    }

    /// Whether this file says what is installed or running around the tests.
    pub fn shapes_environment(&self, path: &str) -> bool {
        let around = ENVIRONMENT.map(Pattern::new);
        (matches_path(&around, path) || says_installed(path)) && !self.is_never(path)
    }

    /// Whether no test depends on this file.
    pub fn is_never(&self, path: &str) -> bool {
        matches_path(&self.never, path)
    }
}

/// Whether this file says what is installed.
pub fn says_installed(path: &str) -> bool {
    matches_path(&INSTALLED.map(Pattern::new), path)
}

fn matches_path(patterns: &[Pattern], path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut patterns = patterns.iter();
    patterns.any(|pattern| {
        let whole = pattern.as_str().contains('/');
        pattern.matches(if whole { path } else { name })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shapes_the_environment_cannot_be_ruled_out_in_any_folder() {
        let rules = Rules::default();
        for path in [
            "pyproject.toml",
            "services/shop/pyproject.toml",
            "requirements-dev.txt",
            "requirements/test.txt",
            "poetry.lock",
            ".github/workflows/ci.yml",
            ".env.test",
            "docker/Dockerfile.ci",
        ] {
            assert!(rules.is_always(path), "{path}");
        }
        for path in ["shop/cart.py", "docs/pyproject.md", "data/lock.json"] {
            assert!(!rules.is_always(path), "{path}");
        }
    }

    #[test]
    fn what_a_checkout_brings_itself_does_not_move_the_environment() {
        let rules = Rules::default();
        for path in [
            "requirements.txt",
            "services/a/uv.lock",
            ".env",
            "docker/Dockerfile",
        ] {
            assert!(rules.shapes_environment(path), "{path}");
        }
        for path in ["pytest.ini", "unflake.toml", "pom.xml", "shop/cart.py"] {
            assert!(!rules.shapes_environment(path), "{path}");
        }
        for (path, is_installed) in [
            ("requirements.txt", true),
            ("uv.lock", true),
            (".env", false),
        ] {
            assert_eq!(says_installed(path), is_installed, "{path}");
        }
        let rules = Rules::with(&[], &[".env*".to_owned()]);
        assert!(!rules.shapes_environment(".env"));
    }

    #[test]
    fn the_user_can_add_to_the_list_and_cut_from_it() {
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let rules = Rules::with(&texts(&["*.proto"]), &texts(&["docs/*", "Makefile"]));
        assert!(rules.is_always("api/shop.proto"));
        assert!(rules.is_never("docs/a/b.md") && !rules.is_never("shop/docs/a.md"));
        assert!(rules.is_never("tools/Makefile"));
    }
}
