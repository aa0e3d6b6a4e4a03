//! The classes of a module's dependencies, read and checked once for many JVMs: an archive for the JVM's
//! class data sharing, made from those that some tests loaded.
//!
//! The JVM takes an archive only for jars that come first on the class path, and Maven's folders come before
//! them. To look into the jars first finds the same classes and resources as long as no folder has a file
//! that a jar has too; there is an archive only where that holds. It is kept beside what Maven said, and goes
//! with it.

use std::fs;
use std::io;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

use crate::framework::maven::module::Module;

/// The class in the runner that looks for files which are in a folder and in a jar.
const OVERLAP: &str = "unflake.junit.Overlap";

/// The place of a module's archive. It need not be there yet.
pub(crate) struct Archive<'a> {
    module: &'a Module,
}

impl<'a> Archive<'a> {
    /// The archive of a module; `None` if its JVM cannot have one.
    pub(crate) fn of(module: &'a Module) -> Option<Self> {
        let has_its_own = module.jvm_args.iter().any(|arg| is_about_sharing(arg));
        let can_share = module.modular.is_empty() && !is_old(&module.java) && !has_its_own;
        can_share.then_some(Self { module })
    }

    /// The file with the archive, if it was made.
    pub(crate) fn file(&self) -> Option<Utf8PathBuf> {
        let file = self.path("jsa");
        file.is_file().then_some(file)
    }

    /// The file in which a JVM records the names of the classes that it loads.
    pub(crate) fn list(&self) -> Utf8PathBuf {
        self.path("lst")
    }

    /// Whether an earlier run has tried to make it.
    pub(crate) fn is_settled(&self) -> bool {
        self.path("jsa").is_file() || self.path("none").is_file()
    }

    /// Makes it from the list of classes; leaves a mark if it cannot be.
    ///
    /// No agent has a part in it: the JVM asks agents about each class that it takes from an archive, and takes
    /// none where that cannot be.
    pub(crate) fn make(&self, runner: &Utf8Path) -> io::Result<()> {
        let (jars, folders) = split(self.module);
        let is_apart = quiet(&self.module.java)
            .args(["-cp", runner.as_str(), OVERLAP])
            .args(&folders)
            .arg("--")
            .args(&jars)
            .status()?
            .success();
        let fresh = self.path("new");
        let is_made = is_apart
            && !jars.is_empty()
            && quiet(&self.module.java)
                .arg("-Xshare:dump")
                .arg(format!("-XX:SharedClassListFile={}", self.list()))
                .arg(format!("-XX:SharedArchiveFile={fresh}"))
                .args(self.module.jvm_args.iter().filter(|arg| is_about_heap(arg)))
                .args(["-cp", &jars.join(":")])
                .status()?
                .success();
        if is_made && fresh.is_file() {
            fs::rename(fresh, self.path("jsa"))
        } else {
            fs::write(self.path("none"), "")
        }
    }

    fn path(&self, ending: &str) -> Utf8PathBuf {
        self.module.kept.join(format!("classes.{ending}"))
    }
}

/// The jars of a module's class path, and all else on it, each in its order.
pub(crate) fn split(module: &Module) -> (Vec<String>, Vec<String>) {
    let own = module.classpath.iter().chain(module.framework()).cloned();
    own.partition(|part| Utf8Path::new(part).extension() == Some("jar"))
}

/// Whether the project has an archive of its own, or wants none.
fn is_about_sharing(arg: &str) -> bool {
    let starts = ["-Xshare", "-XX:SharedArchiveFile", "-XX:ArchiveClasses"];
    starts.iter().any(|start| arg.starts_with(start))
}

/// Whether an argument says how objects lie in memory: a JVM where they lie in another way takes no archive.
fn is_about_heap(arg: &str) -> bool {
    let is_collector = arg.starts_with("-XX:+Use") && arg.ends_with("GC");
    is_collector || arg.starts_with("-Xmx") || arg.contains("UseCompressed")
}

fn quiet(java: &Utf8Path) -> Command {
    let mut command = Command::new(java);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Whether a JDK cannot share the classes of an application; it says its version beside its programs.
fn is_old(java: &Utf8Path) -> bool {
    let home = java.parent().and_then(Utf8Path::parent);
    let release = home.and_then(|home| fs::read_to_string(home.join("release")).ok());
    let version = release.as_deref().and_then(|text| {
        let value = text.split("JAVA_VERSION=\"").nth(1)?;
        value
            .split(['.', '"', '-', '+'])
            .next()?
            .parse::<u32>()
            .ok()
    });
    // A JDK that does not say its version is not asked for more than it is known to have.
    version.is_none_or(|version| version < 11)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_jdk_that_says_a_new_version_is_asked() {
        let home = tempfile::tempdir().unwrap();
        let java = Utf8Path::from_path(home.path()).unwrap().join("bin/java");
        assert!(is_old(&java));
        for (version, expected) in [("1.8.0_392", true), ("11.0.2", false), ("25", false)] {
            let text = format!("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"{version}\"\n");
            fs::write(home.path().join("release"), text).unwrap();
            assert_eq!(is_old(&java), expected, "{version}");
        }
    }
}
