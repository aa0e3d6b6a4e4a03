//! The API: what pages show, as JSON, and what people say.

pub(crate) mod badge;
pub(crate) mod export;
pub(crate) mod health;
pub(crate) mod live;
pub(crate) mod openapi;
pub(crate) mod reports;

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use unflake_history::dates;

use crate::app::App;
use crate::board::next::Next;
use crate::board::one_test::OneTest;
use crate::board::quarantine::Quarantine;
use crate::board::sayings::{Admission, Discharge, Saying};
use crate::board::tests_list::{self, TestsList};
use crate::board::triage::{self, Triage};
use crate::http::answer::{Json, text};
use crate::http::body::Sent;
use crate::http::guard::Asked;
use crate::http::problem::Problem;
use crate::http::query::{Fields, TestNumber};

type Answer<T> = Result<Json<T>, Problem>;

pub(crate) async fn triage(State(app): State<Arc<App>>, fields: Fields) -> Answer<Triage> {
    let wanted = triage::Wanted::parse(&fields)?;
    app.ask(move |board| board.triage(&wanted)).await.map(Json)
}

pub(crate) async fn tests(State(app): State<Arc<App>>, fields: Fields) -> Answer<TestsList> {
    let wanted = tests_list::Wanted::parse(&fields)?;
    let found = app.ask(move |board| Ok(board.tests(&wanted)));
    found.await.map(Json)
}

pub(crate) async fn test(
    State(app): State<Arc<App>>,
    TestNumber(number): TestNumber,
) -> Answer<OneTest> {
    app.ask(move |board| board.test(number)).await.map(Json)
}

pub(crate) async fn suite(
    State(app): State<Arc<App>>,
    fields: Fields,
) -> Result<Response, Problem> {
    let release = fields.text("release")?.map(ToOwned::to_owned);
    let found = app.ask(move |board| board.suite(release.as_deref()));
    Ok(Json(&*found.await?).into_response())
}

pub(crate) async fn next(State(app): State<Arc<App>>) -> Answer<Next> {
    app.ask(|board| Ok(board.next())).await.map(Json)
}

pub(crate) async fn quarantine(State(app): State<Arc<App>>) -> Answer<Quarantine> {
    let found = app.ask(|board| board.quarantine(dates::now()));
    found.await.map(Json)
}

/// The list for `unflake run`.
pub(crate) async fn quarantine_file(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let found = app
        .ask(|board| Ok(board.quarantine(dates::now())?.to_toml()))
        .await?;
    Ok(text("application/toml", found))
}

pub(crate) async fn label(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Sent(saying): Sent<Saying>,
) -> Answer<Value> {
    app.say(move |board| saying.to_labels(board, &who.name))
        .await?;
    let score = app.ask(|board| Ok(board.score())).await?;
    Ok(Json(json!({"schema": "unflake.label/1", "ranking": score})))
}

pub(crate) async fn admit(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Sent(admission): Sent<Admission>,
) -> Answer<Quarantine> {
    app.say(move |board| admission.to_labels(board, &who.name))
        .await?;
    quarantine(State(app)).await
}

pub(crate) async fn leave(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    TestNumber(number): TestNumber,
) -> Answer<Quarantine> {
    app.say(move |board| Discharge(number).to_labels(board, &who.name))
        .await?;
    quarantine(State(app)).await
}
