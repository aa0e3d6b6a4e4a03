//! JUnit XML as all tools write it: which test cases a report names, and how they ended.
//!
//! It says what stands in the report and no more: which test a case is, and what the outcome means
//! for it, is decided elsewhere. The words of the dialects:
//!
//! - Surefire, nextest and unflake: `rerunFailure` and `rerunError` beside a `failure`, or
//!   `flakyFailure` and `flakyError` without one.
//! - gotestsum, Gradle and Xcode: the same `testcase` once per run.
//! - pytest: the same `testcase` twice if the tear-down fails after the body.
//! - Bazel: one `testcase` per target, its output beside it.
//! - Firebase Test Lab: `flaky="true"` beside a `failure`.

mod case;
mod encoding;
mod excerpt;
mod fold;
mod markup;
mod source;
mod suite;

use std::io::{self, BufRead};
use std::time::Duration;

use unflake_core::trial::Account;

use excerpt::Excerpt;
use markup::{Element, Markup, Piece};
use suite::Gathering;

/// Reads a whole report, of which only what `CaseReport` holds stays in memory.
///
/// Long texts are cut in the middle at 64 KiB each. A `testcase` that occurs again in the same
/// `testsuite` element, with the same class name, name and file, is another run of the same test.
/// Across suites nothing is folded, not even if they have the same name: merged reports come from
/// shards, modules and interpreters, where a failure here and a pass there are two facts.
pub fn read_junit(reader: impl BufRead) -> Result<CaseReport, JunitError> {
    read_suites(reader, Gathering::add)
}

/// Reads a report of any size, and hands out its cases whenever a suite has ended.
///
/// Of each case only what `trim` leaves stays in memory until then. From a suite with very many cases or
/// failures they are handed out in parts; a case that is repeated in two parts is then not seen to be the same.
pub fn stream_junit(
    reader: impl BufRead,
    trim: impl Fn(&mut Case),
    mut hand_out: impl FnMut(Vec<Case>),
) -> Result<(), JunitError> {
    let report = read_suites(reader, |gathering, mut case| {
        trim(&mut case);
        let finished = gathering.take_finished();
        if !finished.is_empty() {
            hand_out(finished);
        }
        gathering.add(case);
        let part = gathering.take_part();
        if !part.is_empty() {
            hand_out(part);
        }
    })?;
    hand_out(report.cases);
    Ok(())
}

fn read_suites(
    reader: impl BufRead,
    mut add: impl FnMut(&mut Gathering, Case),
) -> Result<CaseReport, JunitError> {
    let mut markup = Markup::new(reader)?;
    let mut gathering = Gathering::default();
    gathering.enter(read_root(&mut markup)?);
    while gathering.is_inside() {
        match markup.next(&mut Excerpt::default())? {
            Piece::Open(element) => match element.name.as_str() {
                "testsuite" | "testsuites" => gathering.enter(element),
                "testcase" => add(&mut gathering, case::read(&mut markup, element)?),
                "system-out" | "system-err" => gathering.add_output(&markup.text()?),
                _ => markup.skip()?,
            },
            Piece::Close => gathering.leave(),
            Piece::End => break,
        }
    }
    let line = markup.line();
    let mut rest = Excerpt::default();
    let last = markup.next(&mut rest)?;
    if rest.is_blank() && matches!(last, Piece::End) {
        return Ok(gathering.into_report());
    }
    Err(JunitError::Trailing { line })
}

/// A report: what it says about its run, and its test cases in the order of their first mention.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseReport {
    /// The test cases, each once per suite.
    pub cases: Vec<Case>,
    /// The machine of the first suite that names one.
    pub hostname: Option<String>,
    /// The start of the first suite that names one, in the report's own format.
    pub timestamp: Option<String>,
}

/// A test case of a report, all its runs folded together.
///
/// It is what a report names, not yet a test of the project. Texts are as the tool wrote them, with
/// its own escapes for characters that XML cannot hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The names of the suites around it, the outermost first; those without a name are left out.
    pub suites: Vec<String>,
    /// What the tool calls its class: in the dialects also a module, a package or a file. May be empty.
    pub classname: String,
    /// Its name in there, with parameters. May be empty: Surefire does so if a class does not start.
    pub name: String,
    /// The file that it, or the nearest suite around it, names.
    pub file: Option<String>,
    /// The line in that file, as the report has it: pytest counts from 0, others from 1.
    pub line: Option<u32>,
    /// How it ended, all runs considered.
    pub outcome: CaseOutcome,
    /// When it ran, or when the nearest suite around it that says so began; in the report's own format.
    pub timestamp: Option<String>,
    /// The time of the run that `account` is about.
    pub duration: Option<Duration>,
    /// The type of the failure, as an exception's class, or of the skip. May be empty.
    pub kind: String,
    /// What the tool says about the run that decides: the last one where the case is repeated, and the
    /// one of `failure` or `error` where the others are named reruns.
    pub account: Account,
    /// All failures that `account` is not about: of other runs, or of the tear-down after a failure.
    pub other_failures: Vec<CaseFailure>,
    /// How many `testcase` elements were folded into it.
    ///
    /// More than one means that the tool ran the test repeatedly, or that it gives one name to several
    /// tests, as some do to all parameters of a test: the report cannot tell.
    pub elements: usize,
    /// How many of these passed at last.
    pub passes: usize,
    /// The properties of the case, in the report's order.
    pub properties: Vec<(String, String)>,
}

/// How a test case ended, all its runs considered.
///
/// This is the reporting tool's opinion, not a verdict of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseOutcome {
    /// All runs passed.
    Passed,
    /// The last run failed, in the test's body as far as the report says.
    Failed,
    /// The last run failed around the test's body, or by something else than an assertion.
    Errored,
    /// It did not run.
    Skipped,
    /// It failed at first and passed at last.
    Flaky,
}

impl CaseOutcome {
    /// Whether it makes a suite red.
    pub fn is_failure(self) -> bool {
        match self {
            Self::Failed | Self::Errored => true,
            Self::Passed | Self::Skipped | Self::Flaky => false,
        }
    }
}

/// A failure of a test case besides the one that its `account` is about.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseFailure {
    /// `Failed` or `Errored`.
    pub outcome: CaseOutcome,
    /// The time of the run, if the report says it for this run.
    pub duration: Option<Duration>,
    /// The type of the failure, as an exception's class. May be empty.
    pub kind: String,
    /// What the tool says about it.
    pub account: Account,
}

/// Why a report cannot be read. Lines are counted from 1.
#[derive(Debug, thiserror::Error)]
pub enum JunitError {
    /// The bytes do not come.
    #[error("cannot read the report")]
    Read {
        /// What the system says.
        source: io::Error,
    },
    /// There is no element in it.
    #[error("the report is empty")]
    Empty,
    /// Its characters are in a code that we do not know.
    #[error("the report is encoded as `{name}`, which is not known here: convert it to UTF-8")]
    Encoding {
        /// The encoding that it declares.
        name: String,
    },
    /// There is something before the first tag.
    #[error("the report is not XML: it starts with `{start}`")]
    NotXml {
        /// Its first characters.
        start: String,
    },
    /// It is another kind of XML.
    #[error(
        "line {line}: the report is not JUnit XML: it is a `{root}`, not a `testsuites` or `testsuite`"
    )]
    NotJunit {
        /// Where the root ends its start tag.
        line: u64,
        /// The name of the root.
        root: String,
    },
    /// It ends before its end.
    #[error("line {line}: the report ends inside `{open}`: was its writer killed?")]
    Truncated {
        /// Where the unfinished text or markup starts.
        line: u64,
        /// The innermost element that is not closed.
        open: String,
    },
    /// It goes on after its end.
    #[error(
        "line {line}: the report goes on after its end: are these several reports in one file?"
    )]
    Trailing {
        /// Where its end is.
        line: u64,
    },
    /// It breaks the rules of XML.
    #[error("line {line}: the report is not well-formed XML: {reason}")]
    Malformed {
        /// Where the broken markup starts.
        line: u64,
        /// The rule that it breaks.
        reason: String,
    },
    /// Its elements are nested like in no report.
    #[error("line {line}: more than {limit} elements are nested")]
    TooDeep {
        /// Where the limit is reached.
        line: u64,
        /// How many may be nested.
        limit: usize,
    },
    /// It has a tag like no report.
    #[error("line {line}: a tag or comment is longer than {limit} bytes")]
    TooLong {
        /// Where the tag starts.
        line: u64,
        /// How long it may be.
        limit: u64,
    },
}

fn read_root<R: BufRead>(markup: &mut Markup<R>) -> Result<Element, JunitError> {
    let mut before = Excerpt::default();
    let first = markup.next(&mut before);
    // Markup that is broken as well matters less than that this never was XML.
    if !before.is_blank() && !matches!(first, Err(JunitError::Read { .. })) {
        let start = before.into_string();
        let start = start
            .trim_start()
            .chars()
            .take(40)
            .flat_map(char::escape_debug);
        let start = start.collect();
        return Err(JunitError::NotXml { start });
    }
    match first? {
        Piece::Open(root) if matches!(root.name.as_str(), "testsuites" | "testsuite") => Ok(root),
        Piece::Open(root) => Err(JunitError::NotJunit {
            line: markup.line(),
            root: root.name,
        }),
        Piece::Close | Piece::End => Err(JunitError::Empty),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};

    use std::io::Read as _;

    use super::*;

    fn read(xml: &str) -> CaseReport {
        read_junit(xml.as_bytes()).unwrap()
    }

    fn error(bytes: &[u8]) -> JunitError {
        read_junit(bytes).unwrap_err()
    }

    /// The cases as `name outcome message/other,messages`.
    fn brief(xml: &str) -> Vec<String> {
        let one = |case: &Case| {
            let others: Vec<&str> = case
                .other_failures
                .iter()
                .map(|failure| failure.account.message.as_str())
                .collect();
            let (name, outcome) = (&case.name, case.outcome);
            format!(
                "{name} {outcome:?} {}/{}",
                case.account.message,
                others.join(",")
            )
        };
        read(xml).cases.iter().map(one).collect()
    }

    #[test]
    fn pytest_names_files_and_lines_in_xunit1() {
        let report = read(
            r#"<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite
            name="pytest" errors="0" failures="1" skipped="1" tests="3" time="0.253"
            timestamp="2026-11-16T04:21:41.237359+00:00" hostname="ci-7"><testcase
            classname="tests.test_a.TestC" name="test_p[a#x1Bb-&lt;&amp;&gt;]" file="tests/test_a.py"
            line="0" time="0.125"><properties><property name="k" value="v&lt;" /></properties
            ><system-out>out
</system-out><system-err>err
</system-err></testcase><testcase classname="tests.test_a" name="test_f" file="tests/test_a.py"
            line="9" time="0.001"><failure message="AssertionError: a&#10;assert 1 == 2">def test_f():
&gt;       assert 1 == 2

tests/test_a.py:10: AssertionError</failure></testcase><testcase classname="tests.test_a"
            name="test_x" file="tests/test_a.py" line="20" time="0.000"><skipped type="pytest.xfail"
            message="known" /></testcase></testsuite></testsuites>"#,
        );
        assert_eq!(report.hostname.as_deref(), Some("ci-7"));
        let timestamp = report.timestamp.as_deref();
        assert_eq!(timestamp, Some("2026-11-16T04:21:41.237359+00:00"));
        let [passed, failed, expected] = report.cases.as_slice() else {
            panic!("{report:?}")
        };
        assert_eq!(passed.suites, ["pytest"]);
        assert_eq!(passed.classname, "tests.test_a.TestC");
        assert_eq!(passed.name, "test_p[a#x1Bb-<&>]");
        assert_eq!(passed.file.as_deref(), Some("tests/test_a.py"));
        assert_eq!(passed.line, Some(0));
        assert_eq!(passed.outcome, CaseOutcome::Passed);
        assert_eq!(passed.duration, Some(Duration::from_millis(125)));
        assert_eq!(passed.account.output, "out\nerr\n");
        assert_eq!(passed.properties, [("k".to_owned(), "v<".to_owned())]);
        assert_eq!(failed.outcome, CaseOutcome::Failed);
        assert_eq!(failed.account.message, "AssertionError: a\nassert 1 == 2");
        assert!(
            failed
                .account
                .text
                .starts_with("def test_f():\n>       assert")
        );
        assert_eq!(expected.outcome, CaseOutcome::Skipped);
        assert_eq!(
            (expected.kind.as_str(), expected.elements),
            ("pytest.xfail", 1)
        );
    }

    #[test]
    fn pytest_tells_of_a_failed_body_and_a_failed_tear_down_in_two_elements() {
        let xml = r#"<testsuites><testsuite name="pytest">
            <testcase classname="test_a" name="both" time="0.002"><failure message="body" /></testcase>
            <testcase classname="test_a" name="both" time="0.000"><error message="tear-down" />
              <system-out>hi</system-out></testcase>
            <testcase classname="test_a" name="skip"><skipped message="why" /><error message="e" />
            </testcase>
            <testcase classname="test_a" name="setup"><error message="set-up" /></testcase>
            <testcase classname="" name="test_b"><error message="collection failure" /></testcase>
            </testsuite></testsuites>"#;
        let expected = [
            "both Failed body/tear-down",
            "skip Errored e/",
            "setup Errored set-up/",
            "test_b Errored collection failure/",
        ];
        assert_eq!(brief(xml), expected);
        let both = &read(xml).cases[0];
        assert_eq!(both.duration, Some(Duration::from_millis(2)));
        assert_eq!((both.account.output.as_str(), both.elements), ("hi", 2));
        assert_eq!(both.other_failures[0].outcome, CaseOutcome::Errored);
    }

    #[test]
    fn pytest_rerunfailures_repeats_a_case_whose_tear_down_fails() {
        let xml = r#"<testsuites><testsuite name="pytest">
            <testcase classname="a" name="t" time="0.1" /><testcase classname="a" name="t" time="0.1" />
            <testcase classname="a" name="t"><error message="failed on teardown" /></testcase>
            </testsuite></testsuites>"#;
        assert_eq!(brief(xml), ["t Errored failed on teardown/"]);
    }

    #[test]
    fn surefire_has_words_for_reruns_and_flakes() {
        let xml = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuite xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="x.xsd"
    version="3.0" name="demo.DemoTest" time="1,234.039" tests="3" flakes="2">
  <properties><property name="java.version" value="17"/></properties>
  <testcase name="fails" classname="demo.DemoTest" time="1,000.5">
    <failure message="m1 &lt;a&gt;" type="org.opentest4j.AssertionFailedError"><![CDATA[first: <a>
	at demo.DemoTest.fails(DemoTest.java:12)
]]></failure>
    <rerunFailure message="m2" type="org.opentest4j.AssertionFailedError">
      <stackTrace><![CDATA[second]]></stackTrace>
      <system-out><![CDATA[run 2
]]></system-out>
      <system-err><![CDATA[err 2
]]></system-err>
    </rerunFailure>
    <rerunError message="m3" type="java.lang.Error"><stackTrace>third</stackTrace></rerunError>
  </testcase>
  <testcase name="flaky" classname="demo.DemoTest" time="0.001">
    <system-out><![CDATA[own]]></system-out>
    <flakyFailure message="f1" type="T"><stackTrace><![CDATA[stack 1]]></stackTrace></flakyFailure>
    <flakyError message="f2" type="T"><stackTrace><![CDATA[stack 2]]></stackTrace></flakyError>
  </testcase>
  <testcase name="skipped" classname="demo.DemoTest" time="0.0"><skipped message="later"/></testcase>
  <testcase name="" classname="demo.OtherTest"><error type="java.lang.Error"/></testcase>
</testsuite>"#;
        let expected = [
            "fails Failed m1 <a>/m2,m3",
            "flaky Flaky /f1,f2",
            "skipped Skipped later/",
            " Errored /",
        ];
        assert_eq!(brief(xml), expected);
        let cases = read(xml).cases;
        let (fails, flaky) = (&cases[0], &cases[1]);
        assert_eq!(fails.duration, Some(Duration::from_millis(1_000_500)));
        assert_eq!(fails.kind, "org.opentest4j.AssertionFailedError");
        assert!(fails.account.text.ends_with("DemoTest.java:12)\n"));
        let rerun = &fails.other_failures[0].account;
        assert_eq!(
            (rerun.text.as_str(), rerun.output.as_str()),
            ("second", "run 2\nerr 2\n")
        );
        assert_eq!(fails.other_failures[1].outcome, CaseOutcome::Errored);
        assert_eq!(flaky.account.output, "own");
        assert_eq!(flaky.other_failures[1].account.text, "stack 2");
    }

    #[test]
    fn nextest_writes_the_account_of_an_attempt_as_text() {
        let xml = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="1" failures="0" errors="0" uuid="45c50042" timestamp="2026-06-05T23:01:03+00:00" time="0.5">
    <testsuite name="demo::bin/demo" tests="1" disabled="0" errors="0" failures="0">
        <testcase name="tests::flaky" classname="demo::bin/demo" timestamp="2026-06-05T23:01:03+00:00" time="0.25">
            <flakyFailure timestamp="2026-06-05T23:01:03+00:00" time="0.125" message="thread panicked" type="test failure with exit code 101">thread &apos;tests::flaky&apos; panicked
note: run with RUST_BACKTRACE=1
                <system-out>running 1 test</system-out>
                <system-err>thread panicked</system-err>
            </flakyFailure>
        </testcase>
    </testsuite>
</testsuites>"#;
        let report = read(xml);
        assert_eq!(
            report.timestamp.as_deref(),
            Some("2026-06-05T23:01:03+00:00")
        );
        let case = &report.cases[0];
        assert_eq!(case.outcome, CaseOutcome::Flaky);
        let failure = &case.other_failures[0];
        assert_eq!(failure.duration, Some(Duration::from_millis(125)));
        assert_eq!(failure.kind, "test failure with exit code 101");
        assert!(
            failure
                .account
                .text
                .starts_with("thread 'tests::flaky' panicked\nnote")
        );
        assert_eq!(failure.account.output, "running 1 test\nthread panicked");
    }

    #[test]
    fn gotestsum_gradle_and_xcode_repeat_the_case_for_each_run() {
        let run = |name: &str, failure: &str| match failure {
            "" => format!("<testcase classname='demo' name='{name}' time='0.1'></testcase>"),
            text => format!(
                "<testcase classname='demo' name='{name}'><failure message='{text}' type=''>\
                 === RUN&#xA;--- FAIL&#xA;</failure></testcase>"
            ),
        };
        let runs = [
            run("TestFlaky", "1"),
            run("TestBroken", "1"),
            run("TestLate", ""),
            run("TestBroken", "2"),
            run("TestFlaky", "2"),
            run("TestBroken", "3"),
            run("TestLate", "1"),
            run("TestFlaky", ""),
            run("TestTwice", ""),
            run("TestTwice", ""),
            run("TestEach", "1"),
            run("TestEach", ""),
            run("TestEach", ""),
            run("TestEither", ""),
            run("TestEither", "1"),
            run("TestEither", ""),
        ];
        let xml = format!(
            "<testsuites><testsuite name='demo'>{}</testsuite></testsuites>",
            runs.concat()
        );
        let expected = [
            "TestFlaky Flaky /1,2",
            "TestBroken Failed 3/1,2",
            "TestLate Failed 1/",
            "TestTwice Passed /",
            // Several tests of one name: none of these passes is that of the failure.
            "TestEach Failed 1/",
            "TestEither Failed 1/",
        ];
        assert_eq!(brief(&xml), expected);
        assert_eq!(read(&xml).cases[0].elements, 3);
    }

    #[test]
    fn a_skip_beside_other_runs_says_nothing() {
        let xml = "<testsuite><testcase name='a'><skipped/></testcase><testcase name='a'/>
            <testcase name='b'><failure message='x'/></testcase><testcase name='b'><skipped/></testcase>
            <testcase name='c'><skipped message='y'/></testcase><testcase name='c'><skipped/></testcase>
            </testsuite>";
        assert_eq!(brief(xml), ["a Passed /", "b Failed x/", "c Skipped y/"]);
    }

    #[test]
    fn bazel_writes_the_output_of_a_target_beside_its_only_case() {
        let xml = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="pkg/a_test" tests="1" failures="0" errors="1">
    <testcase name="pkg/a_test" status="run" duration="2" time="2"><error message="exited with error code 1"></error></testcase>
      <system-out>
Generated test.log (if the file is not UTF-8, then this may be unreadable):
<![CDATA[exec ${PAGER:-/usr/bin/less} "$0" || exit 1
boom]]>
      </system-out>
    </testsuite>
</testsuites>"#;
        assert_eq!(brief(xml), ["pkg/a_test Errored exited with error code 1/"]);
        let case = &read(xml).cases[0];
        assert_eq!((case.classname.as_str(), case.suites.len()), ("", 1));
        assert!(case.account.output.contains("exit 1\nboom"));
        let two = "<testsuite><testcase name='a'/><testcase name='b'/><system-out>x</system-out>\
                   </testsuite>";
        assert!(
            read(two)
                .cases
                .iter()
                .all(|case| case.account.output.is_empty())
        );
    }

    #[test]
    fn googletest_writes_a_failure_per_expectation_and_no_element_for_a_disabled_test() {
        let xml = r#"<testsuites name="AllTests"><testsuite name="Math">
            <testcase name="Adds" file="math.cc" line="7" status="run" result="completed" time="0."
              classname="Math"><failure message="first" type=""><![CDATA[one]]></failure>
              <failure message="second" type=""><![CDATA[two]]></failure></testcase>
            <testcase name="DISABLED_Subtracts" status="notrun" result="suppressed" classname="Math" />
            </testsuite></testsuites>"#;
        let expected = ["Adds Failed first/", "DISABLED_Subtracts Skipped /"];
        assert_eq!(brief(xml), expected);
        let adds = &read(xml).cases[0];
        assert_eq!(
            (adds.account.text.as_str(), adds.line),
            ("one\ntwo", Some(7))
        );
    }

    #[test]
    fn firebase_calls_a_case_flaky_in_an_attribute() {
        let xml = r#"<testsuite name="device"><testcase name="t" classname="C" time="3.3" flaky="true">
            <failure>Exception</failure></testcase></testsuite>"#;
        let case = &read(xml).cases[0];
        assert_eq!(case.outcome, CaseOutcome::Flaky);
        assert_eq!(case.other_failures[0].account.text, "Exception");
        assert_eq!(case.account, Account::default());
    }

    #[test]
    fn nested_suites_give_their_names_and_files_but_fold_nothing_across() {
        let xml =
            "<testsuites name='all'><testsuite name='a' file='a.spec.js'><testsuite name='in'>
            <testcase name='t'/></testsuite><testsuite><testcase name='t'/></testsuite>
            <testcase name='t' file='b.js'><failure/></testcase></testsuite>
            <testsuite name='a' file='a.spec.js'><testcase name='t'/></testsuite>
            <testcase name='t'/></testsuites>";
        let cases = read(xml).cases;
        let place = |case: &Case| (case.suites.join("/"), case.file.clone().unwrap_or_default());
        let places: Vec<(String, String)> = cases.iter().map(place).collect();
        let expected = [
            ("a/in", "a.spec.js"),
            ("a", "a.spec.js"),
            ("a", "b.js"),
            ("a", "a.spec.js"),
            ("", ""),
        ];
        let expected = expected.map(|(suites, file)| (suites.to_owned(), file.to_owned()));
        assert_eq!(places, expected);
        assert!(cases.iter().all(|case| case.elements == 1));
    }

    #[test]
    fn unknown_elements_and_a_strange_order_do_no_harm() {
        let xml = "\u{feff}<?xml version='1.0'?><!-- hi --><?xml-stylesheet href='a.xsl'?>
            <!DOCTYPE testsuite SYSTEM 'http://example.invalid/junit.dtd'>
            <j:testsuite xmlns:j='urn:x'><j:testcase><testcase name='inner'/><system-err>e</system-err>
            <what><failure/></what><j:failure>a<b>c</b>d</j:failure></j:testcase><nothing/>
            <testcase name='n' name='m' line='x' time='?'/></j:testsuite>\n<!-- bye -->\n";
        let cases = read(xml).cases;
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[0].outcome, CaseOutcome::Failed);
        assert_eq!(cases[0].account.text, "ad");
        assert_eq!(cases[0].account.output, "e");
        let (line, duration) = (cases[1].line, cases[1].duration);
        assert_eq!((cases[1].name.as_str(), line, duration), ("n", None, None));
    }

    #[test]
    fn other_encodings_are_read() {
        let latin =
            b"<?xml version='1.0' encoding='ISO-8859-1'?><testsuite><testcase name='caf\xe9'/>\
                      </testsuite>";
        let text = "<?xml version='1.0' encoding='utf-16'?>\r\n<testsuite><testcase name='café'/>\
                    </testsuite>";
        let mut wide = vec![0xFF, 0xFE];
        wide.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        for bytes in [latin.as_slice(), text.as_bytes(), &wide] {
            assert_eq!(read_junit(bytes).unwrap().cases[0].name, "café");
        }
        for (declared, sign) in [("windows-1252", b'\x80'), ("iso-8859-15", b'\xa4')] {
            let start =
                format!("<?xml version='1.0' encoding='{declared}'?><testsuite><testcase name='5 ");
            let bytes = [start.as_bytes(), &[sign], b"'/></testsuite>"].concat();
            assert_eq!(read_junit(&bytes[..]).unwrap().cases[0].name, "5 €");
        }
    }

    #[test]
    fn what_is_no_report_is_an_error_that_says_what_is_there_instead() {
        let texts = [
            ("", "the report is empty"),
            (
                " \n<?xml version='1.0'?>\n<!-- -->\n",
                "the report is empty",
            ),
            (
                "{\"tests\": [\"<a>\"]}",
                "the report is not XML: it starts with `{\\\"tests\\\": [\\\"`",
            ),
            (
                "\u{1f}\u{8b}\0<\0",
                "the report is not XML: it starts with `\\u{1f}\\u{8b}\\0`",
            ),
            (
                "<!DOCTYPE html>\n<html><body>Not found<br></body></html>",
                "line 2: the report is not JUnit XML: it is a `html`, not a `testsuites` or \
                 `testsuite`",
            ),
            (
                "<?xml version='1.0' encoding='ebcdic-cp-us'?><testsuite/>",
                "the report is encoded as `ebcdic-cp-us`, which is not known here: convert it to UTF-8",
            ),
            (
                "<testsuite>\n<testcase name='a'>\n<failure>xyz",
                "line 3: the report ends inside `failure`: was its writer killed?",
            ),
            (
                "<testsuite/>\n<testsuite/>",
                "line 1: the report goes on after its end: are these several reports in one file?",
            ),
            (
                "<testsuite>\n<a>\n</b></testsuite>",
                "line 3: the report is not well-formed XML: ill-formed document: expected `</a>`, \
                 but `</b>` was found",
            ),
        ];
        for (text, expected) in texts {
            assert_eq!(error(text.as_bytes()).to_string(), expected);
        }
    }

    #[test]
    fn a_report_is_whole_or_an_error_wherever_it_was_cut() {
        let xml = "<?xml version='1.0'?><testsuite name='s'><testcase name='a'><failure message='m'>\
                   &lt;<![CDATA[x]]></failure></testcase></testsuite>";
        for length in 0..xml.len() {
            let cut = &xml.as_bytes()[..length];
            assert!(read_junit(cut).is_err(), "{}", &xml[..length]);
        }
        assert_eq!(read(xml).cases.len(), 1);
    }

    #[test]
    fn a_bomb_of_nested_elements_is_refused() {
        let bomb = "<testsuite>".repeat(100_000);
        assert!(matches!(
            error(bomb.as_bytes()),
            JunitError::TooDeep {
                line: 1,
                limit: 256
            }
        ));
        let bomb = format!("<testsuite>{}", "<x>".repeat(100_000));
        assert!(matches!(error(bomb.as_bytes()), JunitError::TooDeep { .. }));
    }

    #[test]
    fn a_tag_without_an_end_is_refused() {
        let flood = format!("<testsuite>\n<testcase name='{}", "x".repeat(70_000_000));
        let error = error(flood.as_bytes());
        assert!(
            matches!(error, JunitError::TooLong { line: 2, .. }),
            "{error:?}"
        );
    }

    #[test]
    fn long_texts_lose_their_middle() {
        let long = "é&lt;".repeat(50_000);
        let xml = format!(
            "<testsuite><testcase name='a'><failure message='{long}'>{long}</failure>\
             <system-out><![CDATA[{long}]]></system-out></testcase></testsuite>"
        );
        let account = read(&xml).cases.remove(0).account;
        for text in [account.message, account.text, account.output] {
            assert!(text.len() < 66_000 && text.contains(" characters left out …]\n"));
        }
    }

    fn text() -> impl Strategy<Value = String> {
        // Without `\r`, which XML reads as `\n`, and without what quick-junit takes out because it may
        // be a terminal's.
        let anything = "[ -~\né€😀\u{a0}-\u{2ff}&<>\"']{0,30}";
        anything.prop_map(|text: String| {
            if text.trim().is_empty() {
                String::new()
            } else {
                text
            }
        })
    }

    fn told() -> impl Strategy<Value = (NonSuccessKind, String, String, String, String)> {
        let kinds = prop_oneof![Just(NonSuccessKind::Failure), Just(NonSuccessKind::Error)];
        (kinds, text(), text(), text(), text())
    }

    fn to_failure(
        (kind, message, type_name, text, output): &(NonSuccessKind, String, String, String, String),
    ) -> CaseFailure {
        CaseFailure {
            outcome: match kind {
                NonSuccessKind::Failure => CaseOutcome::Failed,
                NonSuccessKind::Error => CaseOutcome::Errored,
            },
            duration: None,
            kind: type_name.clone(),
            account: Account {
                message: message.clone(),
                text: text.clone(),
                output: output.clone(),
                ..Account::default()
            },
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            read_junit(bytes.as_slice()).err();
        }

        #[test]
        fn any_heap_of_markup_is_read_or_refused(
            heap in proptest::collection::vec(
                prop_oneof![
                    Just("<testsuite>"), Just("</testsuite>"), Just("<testcase name='a'>"),
                    Just("</testcase>"), Just("<failure>"), Just("</failure>"), Just("<x/>"),
                    Just("<![CDATA["), Just("]]>"), Just("<!--"), Just("-->"), Just("&lt;"),
                    Just("&"), Just("é"), Just("<"), Just(">"), Just("'"), Just("<!DOCTYPE ["),
                    Just("<?"), Just("\r"),
                ],
                0..30,
            ),
        ) {
            let xml = format!("<testsuite>{}</testsuite>", heap.concat());
            read_junit(xml.as_bytes()).err();
        }

        #[test]
        fn what_quick_junit_writes_is_read_back_the_same(
            cases in proptest::collection::vec(
                (text(), text(), proptest::option::of(told()), proptest::collection::vec(told(), 0..3)),
                0..5,
            ),
            suite_name in text(),
        ) {
            let mut suite = TestSuite::new(suite_name.as_str());
            let mut expected = Vec::new();
            for (index, (classname, name, failure, reruns)) in cases.iter().enumerate() {
                let name = format!("{index}{name}");
                let mut status = TestCaseStatus::success();
                if let Some((kind, message, type_name, text, _)) = failure {
                    status = TestCaseStatus::non_success(*kind);
                    status.set_message(message.as_str()).set_type(type_name.as_str());
                    status.set_description(text.as_str());
                }
                for (kind, message, type_name, text, output) in reruns {
                    let mut rerun = TestRerun::new(*kind);
                    rerun.set_message(message.as_str()).set_type(type_name.as_str());
                    rerun.set_stack_trace(text.as_str()).set_system_out(output.as_str());
                    status.add_rerun(rerun);
                }
                let mut written = TestCase::new(name.as_str(), status);
                written.set_classname(classname.as_str()).set_time(Duration::from_millis(1500));
                let main = failure.as_ref().map(to_failure);
                if let Some(failure) = &main {
                    written.set_system_out(failure.account.output.as_str());
                }
                suite.add_test_case(written);
                let outcome = match &main {
                    Some(failure) => failure.outcome,
                    None if reruns.is_empty() => CaseOutcome::Passed,
                    None => CaseOutcome::Flaky,
                };
                let (kind, account) = main.map(|main| (main.kind, main.account)).unwrap_or_default();
                expected.push(Case {
                    suites: Some(suite_name.clone()).filter(|name| !name.is_empty()).into_iter().collect(),
                    classname: classname.clone(),
                    name,
                    file: None,
                    line: None,
                    outcome,
                    timestamp: None,
                    duration: Some(Duration::from_millis(1500)),
                    kind,
                    account,
                    other_failures: reruns.iter().map(to_failure).collect(),
                    elements: 1,
                    passes: usize::from(!outcome.is_failure()),
                    properties: Vec::new(),
                });
            }
            let mut report = Report::new("report");
            report.add_test_suite(suite);
            let xml = report.to_string().unwrap();
            prop_assert_eq!(read(&xml).cases, expected, "{}", xml);
        }
    }

    #[test]
    fn a_case_that_fails_again_and_again_is_handed_out_in_parts() {
        let begin = &b"<testsuite>"[..];
        let fails =
            b"<testcase classname='c' name='t'><failure message='m'/></testcase>".repeat(250_000);
        let report = begin.chain(&fails[..]).chain(&b"</testsuite>"[..]);
        let mut parts = Vec::new();
        stream_junit(
            std::io::BufReader::new(report),
            |_| {},
            |cases| {
                let failures = cases.iter().map(|case| 1 + case.other_failures.len());
                parts.push(failures.sum::<usize>());
            },
        )
        .unwrap();
        assert_eq!(parts, [200_000, 50_000]);
    }
}
