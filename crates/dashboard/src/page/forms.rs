//! What people say by the forms of pages. The API takes the same.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::triage::link;
use crate::app::App;
use crate::board::sayings::{Admission, Discharge, Saying};
use crate::http::answer::go_to;
use crate::http::body::Filled;
use crate::http::guard::{Asked, Who};
use crate::http::problem::Problem;
use crate::http::query::{Fields, TestNumber};

/// Where the quarantine is shown.
const QUARANTINE: &str = "/quarantine";

/// The test that a form is about. An error unless whoever sends it has it from a page of ours.
fn check(who: &Who, fields: &Fields) -> Result<u32, Problem> {
    who.check_form(fields.raw("word"))?;
    let TestNumber(number) = TestNumber::parse(fields.raw("test"))?;
    Ok(number)
}

pub(crate) async fn label(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Filled(fields): Filled,
) -> Result<Response, Problem> {
    let saying = Saying {
        test: check(&who, &fields)?,
        day: fields.raw("day").to_owned(),
        is_fault: fields.raw("is") == "fault",
        bug: fields.raw("bug").to_owned(),
    };
    let environment = ("environment", fields.raw("environment"));
    let shown = if fields.raw("since") == "stable" {
        link(&[("since", "stable"), environment])
    } else {
        link(&[("day", &saying.day), environment])
    };
    let place = format!("{shown}#t{}", saying.test);
    app.say(move |board| saying.to_labels(board, &who.name))
        .await?;
    Ok(go_to(&place))
}

pub(crate) async fn admit(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Filled(fields): Filled,
) -> Result<Response, Problem> {
    let admission = Admission {
        test: check(&who, &fields)?,
        reason: fields.raw("reason").to_owned(),
        owner: fields.raw("owner").to_owned(),
        until: fields.raw("until").to_owned(),
    };
    app.say(move |board| admission.to_labels(board, &who.name))
        .await?;
    Ok(go_to(QUARANTINE))
}

pub(crate) async fn leave(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Filled(fields): Filled,
) -> Result<Response, Problem> {
    let discharge = Discharge(check(&who, &fields)?);
    app.say(move |board| discharge.to_labels(board, &who.name))
        .await?;
    Ok(go_to(QUARANTINE))
}
