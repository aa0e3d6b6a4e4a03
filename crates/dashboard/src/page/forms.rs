//! What people say by the forms of pages. The API takes the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Form, State};
use axum::response::Response;

use super::triage::link;
use crate::api::{self, Admission, Asked, Saying};
use crate::app::App;
use crate::board::labels::RESOLVED;
use crate::http::answer;
use crate::http::guard::Who;
use crate::http::problem::Problem;
use crate::http::tokens::Role;

type Fields = Form<BTreeMap<String, String>>;

/// Where the quarantine is shown.
const QUARANTINE: &str = "/quarantine";

fn field<'a>(fields: &'a BTreeMap<String, String>, name: &str) -> &'a str {
    fields.get(name).map(|text| text.trim()).unwrap_or_default()
}

/// An error unless whoever sends the form may, and has it from a page of ours. The test that it is about.
fn check(who: &Who, fields: &BTreeMap<String, String>) -> Result<u32, Problem> {
    who.need(Role::Edit)?;
    who.check_form(field(fields, "word"))?;
    api::to_number(field(fields, "test"))
}

/// The page that shows what has changed, or what went wrong.
fn go_on(who: &Who, result: Result<String, Problem>) -> Response {
    match result {
        Ok(place) => answer::go_to(&place),
        Err(problem) => answer::refuse(&problem, false, who),
    }
}

pub(crate) async fn label(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Form(fields): Fields,
) -> Response {
    let result = async {
        let saying = Saying {
            test: check(&who, &fields)?,
            day: field(&fields, "day").to_owned(),
            is_fault: field(&fields, "is") == "fault",
            bug: field(&fields, "bug").to_owned(),
        };
        let shown = if field(&fields, "since") == "stable" {
            link(&[("since", "stable"), environment(&fields)])
        } else {
            link(&[("day", &saying.day), environment(&fields)])
        };
        let place = format!("{shown}#t{}", saying.test);
        api::say(&app, &who, saying).await?;
        Ok(place)
    };
    go_on(&who, result.await)
}

fn environment(fields: &BTreeMap<String, String>) -> (&'static str, &str) {
    ("environment", field(fields, "environment"))
}

pub(crate) async fn admit(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Form(fields): Fields,
) -> Response {
    let result = async {
        let admission = Admission {
            test: check(&who, &fields)?,
            reason: field(&fields, "reason").to_owned(),
            owner: field(&fields, "owner").to_owned(),
            until: field(&fields, "until").to_owned(),
        };
        api::put_in(&app, &who, admission).await?;
        Ok(QUARANTINE.to_owned())
    };
    go_on(&who, result.await)
}

pub(crate) async fn leave(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Form(fields): Fields,
) -> Response {
    let result = async {
        let number = check(&who, &fields)?;
        let why = format!("taken out by {}", who.name);
        api::write_about(&app, &who, number, (RESOLVED, why)).await?;
        Ok(QUARANTINE.to_owned())
    };
    go_on(&who, result.await)
}
