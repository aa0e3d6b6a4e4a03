//! The description of the API. A test holds it against the routes, and another sends what it allows.

use axum::response::Response;

use crate::http::answer;

/// The document, as it is served.
pub(crate) const DOCUMENT: &str = include_str!("../../assets/openapi.json");

pub(crate) async fn document() -> Response {
    answer::text("application/json", DOCUMENT.to_owned())
}
