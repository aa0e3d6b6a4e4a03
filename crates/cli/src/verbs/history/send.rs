//! `unflake record --to`: sends reports to a server, with patience, and never one that it has taken.

use std::fmt::Write;
use std::io::Read;
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use unflake_history::import::{Format, Wish, digest_of_report, guess_format};
use unflake_history::run::Provenance;
use ureq::http::StatusCode;
use ureq::{Agent, Body};

use super::record::{Row, Skipped, open};
use crate::view::explain::Trouble;

/// So often a report is tried: with the pauses between them, about two minutes.
const ATTEMPTS: u32 = 8;

/// The first pause; each is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(500);

/// The most of an answer that is read.
const ANSWER: u64 = 1024 * 1024;

/// The way to a server.
pub(super) struct Sender {
    agent: Agent,
    url: String,
    token: Option<String>,
}

/// What a server says about a report.
#[derive(Debug, Deserialize)]
struct Answer {
    result: String,
    #[serde(default)]
    runs: u64,
    #[serde(default)]
    skipped: Vec<ServerSkip>,
}

#[derive(Debug, Deserialize)]
struct ServerSkip {
    reason: String,
    count: u64,
    first: String,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    error: String,
}

/// How one attempt ended.
enum Attempt {
    Done(Answer),
    /// It may work later; a server may say when.
    Later(String, Option<Duration>),
    /// It will not.
    Never(String),
}

impl Sender {
    /// A sender to the server at this address.
    pub(super) fn new(url: &str) -> Result<Self, Trouble> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(Trouble::Server {
                url: url.to_owned(),
            });
        }
        let config = Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(90)))
            .timeout_connect(Some(Duration::from_secs(10)))
            .http_status_as_error(false)
            .build();
        let token = std::env::var("UNFLAKE_TOKEN").ok();
        Ok(Self {
            agent: config.into(),
            url: url.trim_end_matches('/').to_owned(),
            token: token.filter(|token| !token.is_empty()),
        })
    }

    /// Where it sends to.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Sends one file, and says what came of it.
    pub(super) fn send(&self, file: &camino::Utf8Path, wish: &Wish, told: impl Fn(&str)) -> Row {
        let failed = |error: String| Row {
            file: file.to_string(),
            result: "failed",
            runs: 0,
            error: Some(error),
            skipped: Vec::new(),
        };
        let mut bytes = Vec::new();
        let (name, written) = match open(file) {
            Err(error) => return failed(format!("it cannot be read: {error}")),
            Ok(mut input) => match input.bytes.read_to_end(&mut bytes) {
                Err(error) => return failed(format!("it cannot be read: {error}")),
                Ok(_) => (input.name, input.written),
            },
        };
        let guessed = wish.format.map_or_else(|| guess_format(&name, &bytes), Ok);
        let format = match guessed {
            Ok(format) => format,
            Err(error) => return failed(error.to_string()),
        };
        let wish = Wish {
            format: Some(format),
            ..wish.clone()
        };
        let report = Report {
            name,
            written,
            digest: hex(&digest_of_report(&bytes, &wish)),
            bytes,
            format,
            provenance: wish.provenance,
        };
        match self.deliver(&report, told) {
            Err(error) => failed(error),
            Ok(answer) => Row {
                file: file.to_string(),
                result: if answer.result == "added" {
                    "added"
                } else {
                    "known"
                },
                runs: answer.runs,
                error: None,
                skipped: answer.skipped.into_iter().map(to_skipped).collect(),
            },
        }
    }

    /// Tries until the server has the report, or says that it never will.
    fn deliver(&self, report: &Report, told: impl Fn(&str)) -> Result<Answer, String> {
        let mut trouble = String::new();
        for attempt in 0..ATTEMPTS {
            match self.attempt(report) {
                Attempt::Done(answer) => return Ok(answer),
                Attempt::Never(error) => return Err(error),
                Attempt::Later(error, wait) => {
                    if attempt + 1 < ATTEMPTS {
                        let pause = wait.unwrap_or_else(|| pause(attempt, &report.digest));
                        told(&format!(
                            "{error}; trying again in {:.1} s",
                            pause.as_secs_f64()
                        ));
                        thread::sleep(pause);
                    }
                    trouble = error;
                }
            }
        }
        Err(format!("{trouble}; gave up after {ATTEMPTS} attempts"))
    }

    /// Asks whether the server has it, and sends it if not: an answer that was lost is found again.
    fn attempt(&self, report: &Report) -> Attempt {
        let url = format!("{}/api/v1/reports/{}", self.url, report.digest);
        let mut request = self.agent.get(url);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        match request.call() {
            Err(error) => return Attempt::Later(error.to_string(), None),
            Ok(response) if response.status() == StatusCode::NOT_FOUND => {}
            Ok(response) => return judge(response),
        }
        let mut request = self
            .agent
            .post(format!("{}/api/v1/reports", self.url))
            .header("content-type", content_type(report.format))
            .query("name", cut(&report.name));
        for (name, value) in report.fields() {
            if !value.is_empty() {
                request = request.query(name, value);
            }
        }
        if let Some(written) = report.written {
            request = request.query("written", written.to_string());
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        match request.send(report.bytes.as_slice()) {
            Err(error) => Attempt::Later(error.to_string(), None),
            Ok(response) => judge(response),
        }
    }
}

/// A file on its way.
struct Report {
    name: String,
    written: Option<i64>,
    bytes: Vec<u8>,
    format: Format,
    digest: String,
    provenance: Provenance,
}

impl Report {
    fn fields(&self) -> [(&'static str, &str); 5] {
        let Provenance {
            revision,
            branch,
            release,
            environment,
            job,
        } = &self.provenance;
        [
            ("revision", revision),
            ("branch", branch),
            ("release", release),
            ("environment", environment),
            ("job", job),
        ]
    }
}

/// What an answer means for what is done next.
fn judge(mut response: ureq::http::Response<Body>) -> Attempt {
    let status = response.status();
    let wait = response.headers().get("retry-after");
    let wait = wait.and_then(|value| value.to_str().ok()?.parse().ok());
    let wait = wait.map(|seconds: u64| Duration::from_secs(seconds.min(60)));
    let body = response
        .body_mut()
        .with_config()
        .limit(ANSWER)
        .read_to_vec();
    let body = match body {
        Ok(body) => body,
        Err(error) => return Attempt::Later(error.to_string(), wait),
    };
    if status.is_success() {
        return match serde_json::from_slice(&body) {
            Ok(answer) => Attempt::Done(answer),
            Err(_) => Attempt::Never("this is no server of unflake".to_owned()),
        };
    }
    let said = serde_json::from_slice::<Refusal>(&body).map(|refusal| refusal.error);
    let error = match said {
        Ok(said) => format!("the server says {}: {said}", status.as_u16()),
        Err(_) => format!("the server says {}", status.as_u16()),
    };
    let may_change = status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT;
    if may_change {
        Attempt::Later(error, wait)
    } else {
        Attempt::Never(error)
    }
}

/// Twice as long each time, and not the same for all reports: they must not come back together.
fn pause(attempt: u32, digest: &str) -> Duration {
    let spread = digest.bytes().map(u32::from).sum::<u32>() % 500;
    PAUSE * 2_u32.pow(attempt) + Duration::from_millis(u64::from(spread))
}

fn content_type(format: Format) -> &'static str {
    match format {
        Format::Junit => "application/xml",
        Format::Csv => "text/csv",
        Format::JsonLines => "application/x-ndjson",
    }
}

/// A name that a server takes.
fn cut(name: &str) -> String {
    let plain = name.chars().filter(|one| !one.is_control());
    plain.take(500).collect()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn to_skipped(skip: ServerSkip) -> Skipped {
    Skipped {
        reason: skip.reason,
        count: skip.count,
        first: skip.first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_differ() {
        assert!(pause(3, "ab") > pause(2, "ab") * 3 / 2);
        assert_ne!(pause(0, "ab"), pause(0, "ac"));
        let all: Duration = (0..ATTEMPTS - 1).map(|attempt| pause(attempt, "ff")).sum();
        assert!(all > Duration::from_secs(60) && all < Duration::from_secs(180));
    }
}
