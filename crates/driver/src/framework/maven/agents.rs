//! The options of a JVM beside the suite's: every agent and argument that the suite's own JVM has.
//!
//! An agent changes what tests can do: that of `JaCoCo` opens `java.lang` to all. So none is left out. Only where
//! it writes its report and where it listens is changed, because both belong to the suite's JVM.

use camino::{Utf8Path, Utf8PathBuf};

/// Ports of the JDK's own management agent; 0 lets the system choose.
const MANAGEMENT_PORTS: [&str; 2] = [
    "-Dcom.sun.management.jmxremote.port=",
    "-Dcom.sun.management.jmxremote.rmi.port=",
];

/// The beginnings of arguments that ask for a debugger of the project.
const DEBUGGERS: [&str; 2] = ["-agentlib:jdwp=", "-Xrunjdwp:"];

/// The arguments of the suite's JVM for another JVM, whose reports go into `folder`.
pub(super) fn beside_the_suite(args: &[String], folder: &Utf8Path) -> Vec<String> {
    args.iter().map(|arg| moved_aside(arg, folder)).collect()
}

fn moved_aside(arg: &str, folder: &Utf8Path) -> String {
    if let Some(agent) = arg.strip_prefix("-javaagent:") {
        let (jar, options) = agent.split_once('=').unwrap_or((agent, ""));
        let name = Utf8Path::new(jar).file_name().unwrap_or_default();
        if name.contains("jacoco") {
            return format!("-javaagent:{jar}={}", coverage(options, folder));
        }
    }
    for start in MANAGEMENT_PORTS {
        if arg.starts_with(start) {
            return format!("{start}0");
        }
    }
    for start in DEBUGGERS {
        if let Some(options) = arg.strip_prefix(start)
            && options.split(',').any(|option| option == "server=y")
        {
            return format!("{start}{}", listener(options));
        }
    }
    arg.to_owned()
}

/// The options of `JaCoCo`'s agent with a file of ours for its report, which each JVM writes anew: thousands
/// of reports one after the other would fill the disk. An agent that sends its report writes it instead.
fn coverage(options: &str, folder: &Utf8Path) -> String {
    let options = split_options(options);
    if options.contains(&"output=none") {
        return options.join(",");
    }
    let report: Utf8PathBuf = folder.join("jacoco.exec");
    let mut ours = vec![
        ("destfile", report.into_string()),
        ("append", "false".to_owned()),
        ("output", "file".to_owned()),
    ];
    let mut all: Vec<String> = Vec::new();
    for option in options {
        let key = option.split('=').next().unwrap_or(option);
        if let Some(at) = ours.iter().position(|(own, _)| *own == key) {
            let (key, value) = ours.remove(at);
            all.push(format!("{key}={value}"));
        } else if key == "classdumpdir" {
            all.push(format!("{key}={}", folder.join("jacoco-classes")));
        } else {
            all.push(option.to_owned());
        }
    }
    // JaCoCo's defaults need not be written, except where it writes and that it appends.
    let missing = ours.into_iter().filter(|(key, _)| *key != "output");
    all.extend(missing.map(|(key, value)| format!("{key}={value}")));
    all.join(",")
}

/// The options of `JaCoCo`'s agent as it splits them itself: a value may have a comma that no `name=` follows.
fn split_options(options: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, _) in options.match_indices(',') {
        if begins_option(&options[at + 1..]) {
            found.push(&options[start..at]);
            start = at + 1;
        }
    }
    found.push(&options[start..]);
    found.retain(|option| !option.is_empty());
    found
}

fn begins_option(text: &str) -> bool {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let rest = text.trim_start_matches(is_of_name);
    rest.len() < text.len() && rest.starts_with('=')
}

/// The options of a debugger that listens, at a port that the system chooses; it does not wait for anybody.
fn listener(options: &str) -> String {
    let options = options.split(',');
    let kept = options.filter(|option| !option.starts_with("address="));
    let kept = kept.map(|option| match option {
        "suspend=y" => "suspend=n",
        other => other,
    });
    let mut all: Vec<&str> = kept.collect();
    // A debugger waits where nothing is said.
    if !all.contains(&"suspend=n") {
        all.push("suspend=n");
    }
    all.join(",")
}

#[cfg(test)]
mod tests {
    use std::process::Command as Process;
    use std::sync::Arc;

    use proptest::prelude::*;
    use unflake_core::test::TestId;

    use super::*;
    use crate::framework::maven::debugger::Looking;
    use crate::framework::maven::module::Module;
    use crate::framework::maven::{Project, QUICK_START};

    /// One argument as the suite's JVM has it, and as another one must have it.
    type Pair = (String, String);

    fn same(arg: String) -> Pair {
        (arg.clone(), arg)
    }

    /// Arguments that every JVM has alike: options of the JVM, properties, agents, and what Surefire left as it was.
    fn plain() -> impl Strategy<Value = Pair> {
        let words = prop::sample::select(vec![
            "-ea",
            "-Xmx512m",
            "-Xms1g",
            "-XX:+UseParallelGC",
            "-XX:MaxMetaspaceSize=128m",
            "--add-opens",
            "java.base/java.lang=ALL-UNNAMED",
            "--add-opens=java.base/java.util=ALL-UNNAMED",
            "@{argLine}",
            "-agentlib:hprof=cpu=samples",
            "-agentpath:/opt/agent dir/libagent.so=file=out.txt",
            "-agentlib:jdwp=transport=dt_socket,server=n,address=127.0.0.1:5005",
            "-javaagent:/repo/mockito-core.jar",
            "-javaagent:/jacoco/tracing.jar=destfile=trace.bin,port=1",
            "-Djacoco.destfile=/shop/target/jacoco.exec",
            "-Dcom.sun.management.jmxremote",
        ]);
        let property = "-D[a-z.]{1,8}=[ -~]{0,12}";
        prop_oneof![
            words.prop_map(|word| same(word.to_owned())),
            property.prop_map(same)
        ]
    }

    /// Options of `JaCoCo`'s agent that say nothing about its report.
    fn measures() -> impl Strategy<Value = Vec<String>> {
        let option = prop::sample::select(vec![
            "includes=shop.*,till",
            "excludes=*Test:*Mock",
            "sessionid=a b",
            "inclnolocationclasses=true",
            "jmx=true",
        ]);
        prop::collection::vec(option.prop_map(str::to_owned), 0..3)
    }

    fn agent(before: &[String], report: &[&str], after: &[String]) -> String {
        let report = report.iter().map(|&option| option.to_owned());
        let all = before.iter().cloned().chain(report);
        let all: Vec<String> = all.chain(after.iter().cloned()).collect();
        format!(
            "-javaagent:/my repo/org.jacoco.agent-runtime.jar={}",
            all.join(",")
        )
    }

    fn jacoco() -> impl Strategy<Value = Pair> {
        let reports = prop::sample::select(vec![
            (
                vec!["destfile=/my shop/target/jacoco.exec", "append=true"],
                vec!["destfile=/ours/jacoco.exec", "append=false"],
            ),
            (
                vec!["append=false", "destfile=it,too.exec", "output=file"],
                vec!["append=false", "destfile=/ours/jacoco.exec", "output=file"],
            ),
            (
                vec![
                    "output=tcpserver",
                    "port=6300",
                    "append=true",
                    "destfile=target/jacoco.exec",
                ],
                vec![
                    "output=file",
                    "port=6300",
                    "append=false",
                    "destfile=/ours/jacoco.exec",
                ],
            ),
            (vec!["output=none"], vec!["output=none"]),
        ]);
        (measures(), reports, measures()).prop_map(|(before, (suite, other), after)| {
            (
                agent(&before, &suite, &after),
                agent(&before, &other, &after),
            )
        })
    }

    fn listeners() -> impl Strategy<Value = Pair> {
        let pairs = prop::sample::select(vec![
            (
                "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=*:5005",
                "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n",
            ),
            (
                "-Xrunjdwp:transport=dt_socket,address=5005,server=y",
                "-Xrunjdwp:transport=dt_socket,server=y,suspend=n",
            ),
            (
                "-Dcom.sun.management.jmxremote.port=9010",
                "-Dcom.sun.management.jmxremote.port=0",
            ),
        ]);
        pairs.prop_map(|(suite, other)| (suite.to_owned(), other.to_owned()))
    }

    fn project(jvm_args: &[String]) -> Project {
        let record = serde_json::json!({
            "basedir": "/shop", "module": "shop:shop", "execution": "default-test", "goal": "test",
            "java": "/jdk/bin/java", "skipped": false, "fork_count": "1", "fork_mode": null,
            "reuse_forks": true, "parallel": null, "sources": [], "test_sources": [],
            "tests": ["shop.CartTest"], "jvm_args": jvm_args, "classpath": ["/shop/target/classes"],
        });
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("module.json"), record.to_string()).unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let module = Module::read(folder, Utf8Path::new("/shop")).unwrap();
        Project {
            folder: Utf8PathBuf::from("/shop"),
            args: Vec::new(),
            module: Arc::new(module),
            moved: None,
            temporary: None,
            record: None,
            only: Vec::new(),
            lists_classes: false,
            looking: Looking::Nothing,
        }
    }

    fn words(process: &Process) -> Vec<String> {
        let words = process.get_args();
        words
            .map(|word| word.to_str().unwrap().to_owned())
            .collect()
    }

    proptest! {
        #[test]
        fn a_fresh_jvm_has_all_that_the_suites_has_and_writes_its_reports_elsewhere(
            pairs in prop::collection::vec(prop_oneof![plain(), jacoco(), listeners()], 0..8),
        ) {
            let (suite, other): (Vec<String>, Vec<String>) = pairs.into_iter().unzip();
            let project = project(&suite);
            let folder = Utf8Path::new("/ours");
            let first = project.process(folder, &Project::start(false, &[])).unwrap();
            let tests = [TestId::new("shop.CartTest#total")];
            let fresh = project.process(folder, &Project::start(true, &tests)).unwrap();
            // The program, what is ours, what is the project's, the class path and what follows.
            let parts = |own: &[&str], project: &[String]| {
                let mut all: Vec<String> = words(&first)[..4].to_vec();
                all.extend(own.iter().map(|&word| word.to_owned()));
                all.extend_from_slice(project);
                all.extend_from_slice(&words(&first)[4 + suite.len()..]);
                all
            };
            prop_assert_eq!(words(&first), parts(&[], &suite));
            prop_assert_eq!(words(&fresh), parts(&QUICK_START, &other));
        }
    }

    #[test]
    fn jacoco_without_options_writes_into_our_folder_too() {
        let args = ["-javaagent:/jacocoagent.jar".to_owned()];
        assert_eq!(
            beside_the_suite(&args, Utf8Path::new("/ours")),
            ["-javaagent:/jacocoagent.jar=destfile=/ours/jacoco.exec,append=false"]
        );
    }
}
