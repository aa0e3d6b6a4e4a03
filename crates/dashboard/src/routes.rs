//! Which path is answered by what.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};

use crate::api;
use crate::api::badge;
use crate::api::export;
use crate::api::health;
use crate::api::live;
use crate::api::openapi;
use crate::api::reports;
use crate::app::App;
use crate::http::guard;
use crate::page;

/// The largest form or JSON body; reports have a limit of their own.
const SMALL: usize = 64 * 1024;

/// The paths of the API, as the `OpenAPI` document writes them.
pub(crate) const API: [(&str, &str); 15] = [
    ("get", "/api/v1/triage"),
    ("get", "/api/v1/tests"),
    ("get", "/api/v1/tests.csv"),
    ("get", "/api/v1/tests/{number}"),
    ("get", "/api/v1/suite"),
    ("get", "/api/v1/next"),
    ("get", "/api/v1/quarantine"),
    ("post", "/api/v1/quarantine"),
    ("get", "/api/v1/quarantine.toml"),
    ("delete", "/api/v1/quarantine/{number}"),
    ("post", "/api/v1/labels"),
    ("post", "/api/v1/reports"),
    ("get", "/api/v1/reports/{digest}"),
    ("get", "/healthz"),
    ("get", "/badge.svg"),
];

pub(crate) fn router(app: Arc<App>) -> Router {
    let api = Router::new()
        .route("/api/v1/triage", get(api::triage))
        .route("/api/v1/tests", get(api::tests))
        .route("/api/v1/tests.csv", get(export::tests))
        .route("/api/v1/tests/{number}", get(api::test))
        .route("/api/v1/suite", get(api::suite))
        .route("/api/v1/next", get(api::next))
        .route("/api/v1/quarantine", get(api::quarantine).post(api::admit))
        .route("/api/v1/quarantine.toml", get(api::quarantine_file))
        .route("/api/v1/quarantine/{number}", delete(api::leave))
        .route("/api/v1/labels", post(api::label))
        .route("/api/v1/reports", post(reports::take))
        .route("/api/v1/reports/{digest}", get(reports::look))
        .route("/api/v1/openapi.json", get(openapi::document))
        .route("/events", get(live::listen))
        .route("/healthz", get(health::healthz))
        .route("/metrics", get(health::metrics))
        .route("/badge.svg", get(badge::badge));
    let pages = Router::new()
        .route("/", get(page::triage::show))
        .route("/label", post(page::forms::label))
        .route("/tests", get(page::tests::show))
        .route("/tests/{number}", get(page::test::show))
        .route("/suite", get(page::suite::show))
        .route("/next", get(page::next::show))
        .route(
            "/quarantine",
            get(page::quarantine::show).post(page::forms::admit),
        )
        .route("/quarantine/leave", post(page::forms::leave))
        .route("/login", get(page::login::show).post(page::login::enter))
        .route("/logout", post(page::login::end))
        .route("/assets/style.css", get(style))
        .route("/assets/board.js", get(script))
        .fallback(page::trouble::missing);
    api.merge(pages)
        .layer(DefaultBodyLimit::max(SMALL))
        .layer(from_fn_with_state(Arc::clone(&app), guard::guard))
        .with_state(app)
}

/// A path without what is in it, for metrics: names and numbers of others never become labels.
pub(crate) fn route_name(path: &str) -> &'static str {
    let fixed = [
        "/",
        "/label",
        "/tests",
        "/suite",
        "/next",
        "/quarantine",
        "/quarantine/leave",
        "/login",
        "/logout",
        "/events",
        "/metrics",
        "/api/v1/openapi.json",
    ];
    let known = fixed
        .iter()
        .copied()
        .chain(API.iter().map(|(_, path)| *path));
    let found = known
        .filter(|one| !one.contains('{'))
        .find(|one| *one == path);
    let prefixes = [
        ("/tests/", "/tests/{number}"),
        ("/api/v1/tests/", "/api/v1/tests/{number}"),
        ("/api/v1/quarantine/", "/api/v1/quarantine/{number}"),
        ("/api/v1/reports/", "/api/v1/reports/{digest}"),
        ("/assets/", "/assets"),
    ];
    found.unwrap_or_else(|| {
        let found = prefixes.iter().find(|(prefix, _)| path.starts_with(prefix));
        found.map_or("other", |(_, name)| name)
    })
}

async fn style() -> Response {
    let sheet = [
        include_str!("../assets/style.css"),
        unflake_core::chart::svg::STYLE,
    ]
    .concat();
    asset("text/css; charset=utf-8", sheet)
}

async fn script() -> Response {
    asset(
        "text/javascript; charset=utf-8",
        include_str!("../assets/board.js").to_owned(),
    )
}

fn asset(kind: &'static str, text: String) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "max-age=300")], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_describes_these_routes_and_no_others() {
        let document: serde_json::Value = serde_json::from_str(openapi::DOCUMENT).unwrap();
        let mut described = Vec::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                described.push((method.clone(), path.clone()));
            }
        }
        let mut routed: Vec<(String, String)> = API
            .iter()
            .map(|(method, path)| ((*method).to_owned(), (*path).to_owned()))
            .collect();
        described.sort();
        routed.sort();
        assert_eq!(described, routed);
    }

    #[test]
    fn what_others_put_into_a_path_is_no_label() {
        assert_eq!(route_name("/tests/17"), "/tests/{number}");
        assert_eq!(
            route_name("/api/v1/reports/\"}"),
            "/api/v1/reports/{digest}"
        );
        assert_eq!(route_name("/x\"} 1\nevil"), "other");
    }
}
