//! Answers: pages for people, objects and texts for programs.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::Markup;
use serde::Serialize;

const NO_STORE: (HeaderName, HeaderValue) = (CACHE_CONTROL, HeaderValue::from_static("no-store"));

/// A page.
pub(crate) struct Page(pub(crate) Markup);

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        text("text/html; charset=utf-8", self.0.into_string())
    }
}

/// An object for programs.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_string(&self.0) {
            Ok(object) => text("application/json", object),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
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
