//! Compiles the runner for JUnit, which is embedded in the binary, with the machine's JDK.
//!
//! Without a JDK the binary is built without Java support, and says so when it is asked for it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let runner = root.join("../../runners/junit");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed={}", runner.display());
    println!("cargo::rerun-if-env-changed=JAVA_HOME");
    let jar = out.join("runner.jar");
    if let Err(why) = compile(&runner, &out, &jar) {
        println!("cargo::warning=unflake is built without support for Java: {why}");
        // A file that is never there: the next build tries again.
        println!("cargo::rerun-if-changed={}", out.join("retry").display());
        fs::write(&jar, []).expect("the build's own folder can be written");
    }
}

fn compile(runner: &Path, out: &Path, jar: &Path) -> Result<(), String> {
    let stubs = out.join("stubs");
    let classes = out.join("classes");
    let debugger = out.join("debugger");
    for folder in [&stubs, &classes, &debugger] {
        // What an earlier build left must not get into this one.
        drop(fs::remove_dir_all(folder));
        fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    }
    // What is in a JVM of tests must do for Java 8.
    let oldest = ["--release", "8"];
    javac(&runner.join("stubs"), &stubs, &oldest, None)?;
    javac(&runner.join("src"), &classes, &oldest, Some(&stubs))?;
    // The debugger is a program of its own, and older ones have no module for it.
    let with_debugger = ["--release", "9", "--add-modules", "jdk.jdi"];
    javac(&runner.join("debugger"), &debugger, &with_debugger, None)?;
    let mut command = Command::new(tool("jar"));
    command.arg("cf").arg(jar).arg("-C").arg(&classes).arg(".");
    command.arg("-C").arg(&debugger).arg(".");
    command.arg("-C").arg(runner.join("resources")).arg(".");
    run(command)
}

/// Compiles all sources below a folder for a version of Java.
fn javac(
    sources: &Path,
    classes: &Path,
    version: &[&str],
    against: Option<&Path>,
) -> Result<(), String> {
    let mut files = Vec::new();
    find(sources, &mut files).map_err(|error| error.to_string())?;
    files.sort();
    let mut command = Command::new(tool("javac"));
    command.args(version);
    command.args(["-Xlint:all,-options", "-Werror", "-encoding", "UTF-8"]);
    command.arg("-d").arg(classes);
    if let Some(against) = against {
        command.arg("-cp").arg(against);
    }
    run({
        command.args(files);
        command
    })
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "java")
        {
            files.push(path);
        }
    }
    Ok(())
}

/// A tool of the JDK that the environment names, or of the one on the path.
fn tool(name: &str) -> PathBuf {
    let home = env::var("JAVA_HOME")
        .ok()
        .map(|home| Path::new(&home).join("bin").join(name));
    home.filter(|tool| tool.is_file())
        .unwrap_or_else(|| PathBuf::from(name))
}

fn run(mut command: Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said).replace('\n', " ");
            Err(format!("`{name}` failed: {said}"))
        }
        Err(error) => Err(format!("cannot start `{name}`: {error}")),
    }
}
