//! Answers: pages for people, JSON for programs, and both for what went wrong.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::Markup;
use serde::Serialize;
use serde_json::json;

use crate::http::guard::Who;
use crate::http::problem::Problem;
use crate::page;

/// A page.
pub(crate) fn html(status: StatusCode, markup: Markup) -> Response {
    let text = markup.into_string();
    let kind = (
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    (status, [kind, NO_STORE], text).into_response()
}

const NO_STORE: (axum::http::HeaderName, HeaderValue) =
    (CACHE_CONTROL, HeaderValue::from_static("no-store"));

/// An object for programs.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => {
            let kind = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
            (status, [kind, NO_STORE], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Text of some kind.
pub(crate) fn text(kind: &'static str, text: String) -> Response {
    let kind = (CONTENT_TYPE, HeaderValue::from_static(kind));
    ([kind, NO_STORE], text).into_response()
}

/// Sends a browser on to one of our own pages.
pub(crate) fn go_to(path: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let path = if path.starts_with('/') && !path.starts_with("//") {
        path
    } else {
        "/"
    };
    let place = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(LOCATION, place);
    response
}

/// Whether a path belongs to the API.
pub(crate) fn is_for_programs(path: &str) -> bool {
    path.starts_with("/api/") || matches!(path, "/healthz" | "/metrics" | "/badge.svg" | "/events")
}

/// What went wrong, as a page or as JSON.
pub(crate) fn refuse(problem: &Problem, for_programs: bool, who: &Who) -> Response {
    let status = problem.status();
    let mut response = if for_programs {
        json(status, &json!({ "error": problem.to_string() }))
    } else if matches!(problem, Problem::Unknown) {
        html(status, page::login::page(who, None))
    } else {
        html(status, page::trouble::page(who, problem))
    };
    if matches!(problem, Problem::Busy(_)) {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("2"));
    }
    if matches!(problem, Problem::Unknown) && for_programs {
        response
            .headers_mut()
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
