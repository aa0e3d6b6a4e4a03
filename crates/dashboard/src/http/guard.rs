//! What stands before every route: who asks, whether the request comes from our own pages, and how much is
//! worked on at once.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, ORIGIN, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::http::problem::Problem;
use crate::http::session::{self, Session};
use crate::http::tokens::{Role, Token};

/// Who asks, and what their forms must carry.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    /// What they are called in labels.
    pub(crate) name: String,
    /// Where they reach this server, for commands that they can copy.
    pub(crate) address: String,
    /// The word for forms; none for programs with a token.
    pub(crate) form_word: Option<String>,
    token: Option<Token>,
    is_open: bool,
}

impl Who {
    /// Whether they may do this.
    pub(crate) fn may(&self, role: Role) -> bool {
        self.is_open || self.token.as_ref().is_some_and(|token| token.allows(role))
    }

    /// An error unless they may do this.
    fn need(&self, role: Role) -> Result<(), Problem> {
        if self.may(role) {
            return Ok(());
        }
        match &self.token {
            None => Err(Problem::Unknown),
            Some(token) => Err(Problem::Forbidden(format!(
                "the token `{}` has not the role `{}`",
                token.name,
                role.word()
            ))),
        }
    }

    /// An error unless they may do what one of these roles may; there is none if nobody is asked.
    fn need_one(&self, roles: &[Role]) -> Result<(), Problem> {
        match roles {
            [first, others @ ..] if !others.iter().any(|role| self.may(*role)) => self.need(*first),
            _ => Ok(()),
        }
    }

    /// An error unless a form carries the word of its session.
    pub(crate) fn check_form(&self, word: &str) -> Result<(), Problem> {
        let wanted = self.form_word.as_deref().unwrap_or_default();
        let same = blake3::hash(wanted.as_bytes()) == blake3::hash(word.as_bytes());
        if same && !wanted.is_empty() {
            return Ok(());
        }
        Err(Problem::Forbidden(
            "this form is too old, or not one of ours: load the page again".to_owned(),
        ))
    }

    /// Whether they could sign out.
    pub(crate) fn is_signed_in(&self) -> bool {
        self.token.is_some()
    }
}

/// What every answer carries: nothing of others runs in our pages, and no other page frames them.
const HEADERS: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
];

/// Says to people what went wrong.
pub(crate) type Show = fn(&Who, &Problem) -> Response;

/// A route as the guard knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guarded {
    /// What metrics call the route.
    pub(crate) label: &'static str,
    /// One of these roles is needed; none if nobody is asked.
    pub(crate) needs: &'static [Role],
    /// For people; programs read problems as objects.
    pub(crate) show: Option<Show>,
    /// Whether its answers have no end, and so no turn and no bound of time.
    pub(crate) is_endless: bool,
}

/// The guard before a route.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) app: Arc<App>,
    pub(crate) route: Guarded,
}

/// Whoever asks, as the guard found them.
pub(crate) struct Asked(pub(crate) Who);

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let who = parts.extensions.get::<Who>().cloned();
        who.map(Self).ok_or(Problem::Broken)
    }
}

pub(crate) async fn guard(
    State(Guard { app, route }): State<Guard>,
    mut request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let is_secure = request
        .headers()
        .get("x-forwarded-proto")
        .is_some_and(|value| value == "https");
    let (who, fresh) = identify(&app, request.headers());
    let checked = check(&app, request.method(), request.headers());
    let result = match checked.and_then(|()| who.need_one(route.needs)) {
        Ok(()) => {
            request.extensions_mut().insert(who.clone());
            run(&app, request, next, route.is_endless).await
        }
        Err(problem) => Err(problem),
    };
    let mut response = result.into_response();
    let problem = response.extensions().get::<Arc<Problem>>().cloned();
    if let (Some(show), Some(problem)) = (route.show, problem) {
        response = show(&who, &problem);
    }
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    if let Some(session) = fresh
        && route.show.is_some()
        && !headers.contains_key(SET_COOKIE)
        && let Ok(value) = HeaderValue::from_str(&session::to_header(&session, is_secure))
    {
        headers.insert(SET_COOKIE, value);
    }
    let status = response.status().as_u16();
    app.metrics.count(route.label, status, begun.elapsed());
    response
}

/// Waits for a turn, and bounds the time. Streams of events have no end, and bounds of their own.
async fn run(
    app: &App,
    request: Request,
    next: Next,
    is_endless: bool,
) -> Result<Response, Problem> {
    if is_endless {
        return Ok(next.run(request).await);
    }
    let limit = app.options.limits.time;
    let work = async {
        let _turn = app.turns.acquire().await.map_err(|_| Problem::Broken)?;
        Ok(next.run(request).await)
    };
    tokio::time::timeout(limit, work)
        .await
        .unwrap_or_else(|_| Err(Problem::Busy("it took too long".to_owned())))
}

/// Who asks; and a session that they do not have yet.
fn identify(app: &App, headers: &HeaderMap) -> (Who, Option<Session>) {
    let cookie = cookies(headers).find_map(|value| app.sessions.check(value));
    let Some(file) = &app.options.tokens else {
        let known = cookie.is_some();
        let session = cookie.unwrap_or_else(|| app.sessions.open(None));
        let who = Who {
            name: "local".to_owned(),
            address: address(headers),
            form_word: Some(app.sessions.form_word(&session)),
            token: None,
            is_open: true,
        };
        return (who, (!known).then_some(session));
    };
    let bearer = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
    if let Some(token) = bearer.and_then(|secret| file.find(secret.trim())) {
        let who = Who {
            name: token.name.clone(),
            address: address(headers),
            form_word: None,
            token: Some(token),
            is_open: false,
        };
        return (who, None);
    }
    let opened = cookie.as_ref().and_then(|session| session.token.as_deref());
    let token = opened.and_then(|hash| file.by_hash(hash));
    let known = cookie.is_some();
    let session = cookie.unwrap_or_else(|| app.sessions.open(None));
    let who = Who {
        name: token
            .as_ref()
            .map(|token| token.name.clone())
            .unwrap_or_default(),
        address: address(headers),
        form_word: Some(app.sessions.form_word(&session)),
        token,
        is_open: false,
    };
    (who, (!known).then_some(session))
}

/// The address under which a client asked, if its name is a plain one.
fn address(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|value| value.to_str().ok());
    let is_plain = |one: char| one.is_ascii_alphanumeric() || ".:-[]".contains(one);
    let host = host
        .filter(|host| host.chars().all(is_plain))
        .unwrap_or("127.0.0.1:7777");
    let is_secure = headers
        .get("x-forwarded-proto")
        .is_some_and(|value| value == "https");
    format!("http{}://{host}", if is_secure { "s" } else { "" })
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';'));
    pairs.filter_map(|pair| pair.trim().strip_prefix(session::COOKIE)?.strip_prefix('='))
}

/// Refuses what another site's page had a browser send, and names that only look like this machine.
fn check(app: &App, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(&HOST).unwrap_or_default();
    if app.options.tokens.is_none() && !is_this_machine(host) {
        // A name that somebody points at 127.0.0.1 would let their pages read ours.
        return Err(Problem::Forbidden(
            "without tokens this server is asked as localhost or 127.0.0.1 only".to_owned(),
        ));
    }
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    let site = headers
        .get("sec-fetch-site")
        .and_then(|value| value.to_str().ok());
    let is_other_site = site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let is_other_origin = text(&ORIGIN).is_some_and(|origin| {
        let name = origin.split_once("://").map_or(origin, |(_, name)| name);
        name != host
    });
    if is_other_site || is_other_origin {
        return Err(Problem::Forbidden("this came from another site".to_owned()));
    }
    Ok(())
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_this_machine() {
        for host in [
            "localhost",
            "LOCALHOST:7777",
            "127.0.0.1:1",
            "[::1]:80",
            "127.0.0.9",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1:7777",
            "[::2]:1",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
