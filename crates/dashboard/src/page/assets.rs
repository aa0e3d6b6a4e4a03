//! The style sheet and the script of all pages.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use unflake_core::chart::svg;

pub(crate) async fn style() -> Response {
    let sheet = [include_str!("../../assets/style.css"), svg::STYLE].concat();
    asset("text/css; charset=utf-8", sheet)
}

pub(crate) async fn script() -> Response {
    let script = include_str!("../../assets/board.js").to_owned();
    asset("text/javascript; charset=utf-8", script)
}

fn asset(kind: &'static str, text: String) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "max-age=300")], text).into_response()
}
