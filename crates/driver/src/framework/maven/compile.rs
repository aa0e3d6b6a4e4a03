//! A changed test class, compiled by the JDK of the tests over its old classes in a copy of the project.

use std::io;
use std::process::{Command, Stdio};

use camino::Utf8Path;

use crate::framework::maven::{LONGEST_ARGUMENT, Project};

impl Project {
    /// Compiles a source of a test; false if it does not compile, or if nobody can.
    pub(crate) fn compile(&self, source: &Utf8Path) -> io::Result<bool> {
        let module = &self.module;
        let compiler = module.java.with_file_name("javac");
        let parts = module.classpath.iter().chain(module.framework());
        let parts: Vec<String> = parts.map(|part| self.place(part)).collect();
        // Surefire has the tests' own classes first.
        let classes = parts.iter().find(|part| Utf8Path::new(part).is_dir());
        let classpath = parts.join(":");
        let is_able =
            module.modular.is_empty() && compiler.is_file() && classpath.len() < LONGEST_ARGUMENT;
        let Some(classes) = classes.filter(|_| is_able) else {
            return Ok(false);
        };
        let status = Command::new(compiler)
            .args(["-encoding", "UTF-8", "-nowarn", "-g", "-d", classes])
            .args(["-cp", &classpath, source.as_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        Ok(status.success())
    }
}
