//! Whether the server is well, and its numbers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use crate::api::{Asked, answered};
use crate::app::App;
use crate::http::answer;
use crate::http::metrics::Gauges;
use crate::http::tokens::Role;

/// Well if the store answers. Nothing else is told, so nobody needs a token for it.
pub(crate) async fn healthz(State(app): State<Arc<App>>, Asked(who): Asked) -> Response {
    let looked = app.ask(|_, store, _| Ok(store.extent()?)).await;
    answered(
        &who,
        looked.map(|_| answer::json(StatusCode::OK, &json!({"status": "ok"}))),
    )
}

pub(crate) async fn metrics(State(app): State<Arc<App>>, Asked(who): Asked) -> Response {
    let result = async {
        who.need(Role::Read)?;
        let found = app.ask(|_, store, snapshot| {
            let tests = snapshot
                .known
                .as_ref()
                .as_ref()
                .map_or(0, |known| known.entries.len());
            Ok(Gauges {
                tests,
                runs: store.extent()?.run,
                bytes: store.bytes()?,
            })
        });
        let text = app.metrics.write(found.await?);
        Ok(answer::text(
            "text/plain; version=0.0.4; charset=utf-8",
            text,
        ))
    };
    answered(&who, result.await)
}
