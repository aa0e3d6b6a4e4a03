//! The server as CI jobs and browsers meet it: the real binary over real sockets.

mod board;
mod crash;
mod locked;
mod quarantine;
mod sending;

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use ureq::Agent;

/// A server on a port of its own, which is killed when the test is over.
pub(super) struct Server {
    child: Child,
    pub(super) url: String,
}

impl Server {
    /// Serves a store.
    pub(super) fn start(store: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_unflake"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--store"])
            .arg(store);
        command.args(more).current_dir(store.parent().unwrap());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let (_, address) = line
            .trim()
            .rsplit_once(' ')
            .unwrap_or_else(|| panic!("it says: {line}"));
        Self {
            url: address.to_owned(),
            child,
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        let number = i32::try_from(self.child.id()).unwrap();
        kill(Pid::from_raw(number), signal).unwrap();
    }

    /// Waits for its end, and says its exit code.
    pub(super) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// A page or an answer: status and text.
    pub(super) fn get(&self, path: &str) -> (u16, String) {
        self.get_as(path, None)
    }

    pub(super) fn get_as(&self, path: &str, token: Option<&str>) -> (u16, String) {
        let mut request = agent().get(format!("{}{path}", self.url));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        read(request.call().unwrap())
    }

    pub(super) fn json(&self, path: &str) -> Value {
        let (status, text) = self.get(path);
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Sends a body, and says status and answer.
    pub(super) fn post(&self, path: &str, kind: &str, body: &str) -> (u16, Value) {
        self.post_with(path, body, &[("content-type", kind)])
    }

    pub(super) fn post_with(
        &self,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> (u16, Value) {
        let mut request = agent().post(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (status, text) = read(request.send(body).unwrap());
        (
            status,
            serde_json::from_str(&text).unwrap_or(Value::String(text)),
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn agent() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0);
    config.max_redirects_will_error(false).build().into()
}

fn read(mut response: ureq::http::Response<ureq::Body>) -> (u16, String) {
    let status = response.status().as_u16();
    (status, response.body_mut().read_to_string().unwrap())
}

/// A folder for a store that is not there yet.
pub(super) fn new_store() -> (TempDir, PathBuf) {
    let folder = TempDir::with_prefix("unflake-test-").unwrap();
    let path = folder.path().join("history.db");
    (folder, path)
}

/// A report in JUnit XML: tests with the message of their failure, if they failed.
pub(super) fn junit(time: &str, cases: &[(&str, Option<&str>)]) -> String {
    let escape = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('"', "&quot;")
    };
    let mut xml = format!("<testsuites><testsuite name=\"s\" timestamp=\"{time}\">");
    for (name, failure) in cases {
        let _ = write!(
            xml,
            "<testcase classname=\"shop\" name=\"{}\" time=\"0.1\">",
            escape(name)
        );
        if let Some(message) = failure {
            let _ = write!(
                xml,
                "<failure message=\"{}\">text</failure>",
                escape(message)
            );
        }
        xml += "</testcase>";
    }
    xml + "</testsuite></testsuites>"
}
