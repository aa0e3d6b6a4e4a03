//! Whether the server is well, and its numbers.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use crate::app::App;
use crate::http::answer::{Json, text};
use crate::http::metrics::Gauges;
use crate::http::problem::Problem;

/// Well if the store answers. Nothing else is told, so nobody needs a token for it.
pub(crate) async fn healthz(State(app): State<Arc<App>>) -> Result<Json<Value>, Problem> {
    app.ask(|board| Ok(board.store.extent()?)).await?;
    Ok(Json(json!({"status": "ok"})))
}

pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let found = app.ask(|board| {
        Ok(Gauges {
            tests: board.known().map_or(0, |known| known.entries.len()),
            runs: board.store.extent()?.run,
            bytes: board.store.bytes()?,
        })
    });
    let numbers = app.metrics.write(found.await?);
    Ok(text("text/plain; version=0.0.4; charset=utf-8", numbers))
}
