//! The command that repeats a finding: the same order, seed and settings.

use camino::Utf8Path;
use unflake_core::event::Listing;
use unflake_core::test::TestId;
use unflake_core::verdict::{Finding, Verdict};

use crate::flags::args::{AgainstArgs, FrameworkArg, FreshBy, RunArgs, When};
use crate::view::report::Report;

/// The call of unflake, as far as a repetition needs it.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    /// The verb.
    verb: &'static str,
    /// The flags that were typed and change what is run.
    flags: Vec<String>,
    /// The arguments for the framework.
    args: Vec<String>,
    /// The folder in which it was called.
    folder: String,
}

impl Invocation {
    pub(crate) fn new(args: &RunArgs, folder: &Utf8Path) -> Self {
        let mut flags = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                flags.extend([format!("--{name}"), value]);
            }
        };
        let framework = args.project.framework.map(|framework| match framework {
            FrameworkArg::Pytest => "pytest".to_owned(),
            FrameworkArg::Maven => "maven".to_owned(),
        });
        add("framework", framework);
        add(
            "python",
            args.project.python.as_ref().map(ToString::to_string),
        );
        add(
            "config",
            args.project.config.as_ref().map(ToString::to_string),
        );
        add("immediate", args.immediate.map(|count| count.to_string()));
        add("end", args.end.map(|count| count.to_string()));
        add("fresh", args.ladder.fresh.map(|count| count.to_string()));
        let fresh_by = args.ladder.fresh_by.map(|how| match how {
            FreshBy::Exec => "exec".to_owned(),
            FreshBy::Fork => "fork".to_owned(),
        });
        add("fresh-by", fresh_by);
        let timeout = args
            .ladder
            .timeout
            .map(|limit| limit.as_secs_f64().to_string());
        add("timeout", timeout);
        add("base", args.against.base.clone());
        let switches = [
            ("intersect", args.against.intersect),
            ("check-base", args.against.check_base),
        ];
        for (name, when) in switches {
            let when = when.map(|when| match when {
                When::Always => format!("--{name}"),
                When::Never => format!("--{name}=never"),
            });
            flags.extend(when);
        }
        Self {
            verb: "run",
            flags,
            args: args.project.framework_args.clone(),
            folder: folder.to_string(),
        }
    }

    /// The call of `unflake nio`, as far as a repetition needs it.
    pub(crate) fn of_nio(args: &RunArgs, folder: &Utf8Path) -> Self {
        let args = RunArgs {
            against: AgainstArgs::default(),
            ..args.clone()
        };
        let verb = "nio";
        Self {
            verb,
            ..Self::new(&args, folder)
        }
    }

    /// The call of `unflake order`, as far as a repetition needs it.
    pub(crate) fn of_order(args: &RunArgs, folder: &Utf8Path) -> Self {
        Self {
            verb: "order",
            ..Self::of_nio(args, folder)
        }
    }

    /// The two commands that show with plain pytest how a test ends alone, and after its culprits.
    pub(crate) fn order_recipe(&self, report: &Report, finding: &Finding) -> Option<[String; 2]> {
        let listing = report.listing.as_ref()?;
        if finding.test.class_and_method().is_some() {
            // Surefire cannot be told an order of tests.
            return None;
        }
        let dependence = finding.dependence.as_ref()?;
        if dependence.needs_suite {
            return None; // These tests alone do not show it.
        }
        let culprit = dependence.diagnosis.culprits.first()?;
        let test = self.path_to(listing, &finding.test)?;
        let before = culprit.tests.iter().map(|test| self.path_to(listing, test));
        let mut order: Vec<String> = before.collect::<Option<_>>()?;
        order.push(test.clone());
        let command = |paths: Vec<String>| {
            let words = again(listing, paths);
            let quote =
                |word: &String| shlex::try_quote(word).map_or_else(|_| word.clone(), Into::into);
            let words: Vec<String> = words.iter().map(quote).collect();
            format!("python -m pytest {}", words.join(" "))
        };
        Some([command(vec![test]), command(order)])
    }

    /// The commands by which plain pytest shows that a test fails when it runs twice: a plugin of two lines, and the
    /// call.
    pub(crate) fn recipe(&self, report: &Report, finding: &Finding) -> Option<[String; 2]> {
        let listing = report.listing.as_ref()?;
        let test = self.path_to(listing, &finding.test)?;
        let is_junit = finding.test.class_and_method().is_some();
        if is_junit || !matches!(finding.verdict, Verdict::Nio(_)) {
            return None;
        }
        let plugin = "import copy, _pytest.runner as runner; pytest_runtest_protocol = lambda item: \
                      runner.runtestprotocol(item, nextitem=copy.copy(item)) and None";
        let quote =
            |word: &str| shlex::try_quote(word).map_or_else(|_| word.to_owned(), Into::into);
        let words = again(listing, vec![test]);
        let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
        Some([
            format!("echo {} > twice.py", quote(plugin)),
            format!("PYTHONPATH=. python -m pytest -p twice {}", words.join(" ")),
        ])
    }

    /// The command that shows `finding` again.
    ///
    /// A test that fails alone is run alone. For all others the order is part of the finding: what
    /// ran before them in their VM runs again before them.
    pub(crate) fn repeat(&self, report: &Report, finding: &Finding) -> String {
        let Some(listing) = &report.listing else {
            return self.command(&[], self.args.clone());
        };
        // In another order of sets the same name may be another test.
        let seed = listing
            .hash_seed
            .map(|seed| format!("PYTHONHASHSEED={seed} "));
        let command = self.repeat_listed(report, listing, finding);
        seed.unwrap_or_default() + &command
    }

    fn repeat_listed(&self, report: &Report, listing: &Listing, finding: &Finding) -> String {
        if self.verb == "order" {
            let args = self.args.iter().chain(&listing.replay).cloned().collect();
            return self.command(&[finding.test.name()], args);
        }
        let is_nio = matches!(finding.verdict, Verdict::Nio(_));
        let fails_alone = finding.verdict.fails_alone() || is_nio;
        if let (true, Some(test)) = (fails_alone, self.path_to(listing, &finding.test)) {
            let args = again(listing, vec![test]);
            return self.command(&[], args);
        }
        if listing.jobs > 1
            && finding.test.class_and_method().is_none()
            && let Some(files) = self.files_before(report, listing, finding)
        {
            let args = again(listing, files);
            return self.command(&["--jobs", "1"], args);
        }
        let args = self.args.iter().chain(&listing.replay).cloned().collect();
        self.command(&[], args)
    }

    /// The command that looks for the tests that `finding` depends on.
    pub(crate) fn order(&self, report: &Report, finding: &Finding) -> String {
        let order = Self {
            verb: "order",
            flags: self.project_flags(),
            ..self.clone()
        };
        order.repeat(report, finding)
    }

    /// The command that explains `finding`; `None` if the framework has no tracer.
    pub(crate) fn why(&self, finding: &Finding) -> Option<String> {
        if !finding.verdict.is_flaky() || finding.test.class_and_method().is_some() {
            return None;
        }
        let why = Self {
            verb: "why",
            flags: self.project_flags(),
            ..self.clone()
        };
        Some(why.command(&[finding.test.name()], self.args.clone()))
    }

    /// The flags that say which project it is.
    fn project_flags(&self) -> Vec<String> {
        let flags = self.flags.chunks(2);
        let flags = flags
            .filter(|flag| ["--framework", "--python", "--config"].contains(&flag[0].as_str()));
        flags.flatten().cloned().collect()
    }

    fn command(&self, more: &[&str], args: Vec<String>) -> String {
        let mut words = vec!["unflake".to_owned(), self.verb.to_owned()];
        words.extend(self.flags.iter().cloned());
        words.extend(more.iter().map(ToString::to_string));
        if !args.is_empty() {
            words.push("--".to_owned());
            words.extend(args);
        }
        let quoted = words.iter().map(|word| {
            // Only a NUL cannot be quoted, and no test can be named by one on a command line.
            shlex::try_quote(word).unwrap_or_else(|_| word.replace('\0', "").into())
        });
        quoted.collect::<Vec<_>>().join(" ")
    }

    /// A test's id as an argument in the folder of this call; `None` if it names no file.
    fn path_to(&self, listing: &Listing, test: &TestId) -> Option<String> {
        let name = test.name();
        if let Some((class, method)) = test.class_and_method() {
            return surefire_pattern(class, method);
        }
        let file = name.split_once("::").map_or(name, |(file, _)| file);
        if file.contains('[') || !Utf8Path::new(&listing.root).join(file).is_file() {
            return None;
        }
        Some(self.relative(listing, name))
    }

    fn relative(&self, listing: &Listing, name: &str) -> String {
        let whole = Utf8Path::new(&listing.root).join(name);
        let short = whole.strip_prefix(&self.folder);
        short.map_or_else(|_| whole.to_string(), ToString::to_string)
    }

    /// The files that the VM of a failure ran, in order, up to the failure's own.
    fn files_before(
        &self,
        report: &Report,
        listing: &Listing,
        finding: &Finding,
    ) -> Option<Vec<String>> {
        let first = finding.trials.first()?;
        let log = report.vms.get(&first.vm)?;
        let mut files: Vec<String> = Vec::new();
        let place = log.order.iter().position(|test| *test == finding.test)?;
        for test in &log.order[..=place] {
            let file = self.relative(listing, &report.test(test)?.file);
            if files.last() != Some(&file) {
                files.push(file);
            }
        }
        Some(files)
    }
}

/// Surefire's option for one test method, all parts of it if it has parameters; `None` if its pattern
/// cannot hold the name.
fn surefire_pattern(class: &str, method: &str) -> Option<String> {
    let end = method.find(['(', '[', '{']).unwrap_or(method.len());
    let (plain, rest) = method.split_at(end);
    let is_word = |text: &str| {
        let mut letters = text.chars();
        letters.all(|one| one.is_alphanumeric() || "._$".contains(one))
    };
    let star = if rest.starts_with('[') { "*" } else { "" };
    (is_word(class) && is_word(plain)).then(|| format!("{SELECTION}{class}#{plain}{star}"))
}

/// The framework arguments of another run of these paths: the same options, and the same seed.
fn again(listing: &Listing, paths: Vec<String>) -> Vec<String> {
    let selects = |arg: &&String| arg.starts_with(SELECTION);
    let is_selected = paths.iter().any(|path| selects(&path));
    let options = listing.options.iter().chain(&listing.replay);
    // The last selection is the one that counts for Maven.
    let options = options.filter(|option| !(is_selected && selects(option)));
    options.cloned().chain(paths).collect()
}

/// Surefire's option for the tests that are to run.
const SELECTION: &str = "-Dtest=";

#[cfg(test)]
mod tests {
    use clap::Parser;
    use unflake_core::event::Event;
    use unflake_core::test::Test;
    use unflake_core::verdict::{Flakiness, Reason};

    use super::*;
    use crate::flags::args::{Args, Verb};

    fn parse(command: &str) -> RunArgs {
        let words = shlex::split(command).expect("a command is quoted well");
        match Args::try_parse_from(words).expect(command).verb {
            Verb::Run(args) => *args,
            Verb::Triage(_)
            | Verb::Nio(_)
            | Verb::Order(_)
            | Verb::Why(_)
            | Verb::List(_)
            | Verb::History(_)
            | Verb::Serve(_)
            | Verb::Token(_) => {
                panic!("not a run: {command}")
            }
        }
    }

    /// A report of one test, in this source file so that its path exists.
    fn report(typed: &str, id: &str) -> Report {
        let folder = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
        let options: &[&str] = if id.contains('#') {
            &["-pl", "core", "-Dtest=Of*User"]
        } else {
            &["-k", "a b"]
        };
        let mut report = Report::new(Invocation::new(&parse(typed), folder));
        report.read(Event::Listed(Listing {
            framework: "pytest 9".to_owned(),
            language: "Python 3".to_owned(),
            root: folder.to_string(),
            tests: vec![Test {
                id: TestId::new(id),
                file: "src/view/repeat.rs".to_owned(),
                line: 1,
            }],
            deselected: 0,
            jobs: 1,
            replay: vec!["--randomly-seed=7".to_owned()],
            options: options.iter().map(ToString::to_string).collect(),
            installed: None,
            hash_seed: (!id.contains('#')).then_some(41),
        }));
        report
    }

    fn repeat(typed: &str, id: &str, verdict: Verdict) -> RunArgs {
        let report = report(typed, id);
        let finding = Finding {
            test: TestId::new(id),
            verdict,
            trials: Vec::new(),
            blame: None,
            left_behind: Vec::new(),
            is_latent: false,
            dependence: None,
            cause: None,
        };
        let command = report.invocation.repeat(&report, &finding);
        let seed = "PYTHONHASHSEED=41 ";
        assert_eq!(command.starts_with(seed), !id.contains('#'), "{command}");
        parse(command.trim_start_matches(seed))
    }

    #[test]
    fn every_command_is_one_that_we_parse_whatever_the_test_is_called() {
        let typed =
            "unflake run --python p --immediate 3 --timeout 2.5 --fresh-by exec -- -k 'a b' src";
        for odd in [
            "a b",
            "x::y",
            "it's \"q\" $HOME `id` \\",
            "line\nbreak",
            "--dash",
            "é 漢 🦀",
        ] {
            let id = format!("src/view/repeat.rs::test[{odd}]");
            let args = repeat(typed, &id, Verdict::Broken);
            assert_eq!(args.immediate, Some(3));
            assert_eq!(args.ladder.fresh_by, Some(FreshBy::Exec));
            assert_eq!(
                args.ladder.timeout,
                Some(std::time::Duration::from_millis(2500))
            );
            let expected = ["-k", "a b", "--randomly-seed=7", &id];
            assert_eq!(
                args.project.framework_args, expected,
                "alone, without the paths"
            );
        }
    }

    #[test]
    fn a_junit_test_is_selected_by_surefires_option() {
        let broken = Verdict::Broken;
        let args = |id: &str| {
            let args = repeat("unflake run", id, broken);
            args.project
                .framework_args
                .last()
                .cloned()
                .unwrap_or_default()
        };
        assert_eq!(args("shop.CartTest#total"), "-Dtest=shop.CartTest#total");
        let all = repeat("unflake run", "shop.CartTest#total", broken);
        let all = all.project.framework_args.join(" ");
        assert!(!all.contains("-Dtest=Of*User"), "{all}");
        assert_eq!(args("shop.A$B#all(int)"), "-Dtest=shop.A$B#all");
        assert_eq!(
            args("shop.CartTest#rows[1: a]"),
            "-Dtest=shop.CartTest#rows*"
        );
        assert_eq!(args("shop.CartTest#some words"), "--randomly-seed=7");
    }

    #[test]
    fn a_test_that_passes_alone_is_repeated_in_its_order() {
        let state = Verdict::Flaky(Flakiness::StateDependent);
        for verdict in [state, Verdict::Unexamined(Reason::TooManyFailures)] {
            let args = repeat("unflake run -- -v src", "src/view/repeat.rs::t", verdict);
            assert_eq!(
                args.project.framework_args,
                ["-v", "src", "--randomly-seed=7"]
            );
        }
    }

    #[test]
    fn a_test_that_no_path_selects_is_repeated_with_all_others() {
        let args = repeat("unflake run", "nowhere.py::t", Verdict::Broken);
        assert_eq!(args.project.framework_args, ["--randomly-seed=7"]);
    }
}
