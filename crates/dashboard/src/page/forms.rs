//! What people say by the forms of pages. The API takes the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Form, State};
use axum::response::Response;

use super::triage::encode;
use crate::answer;
use crate::api::{self, Admission, Asked, Saying};
use crate::app::App;
use crate::labels::RESOLVED;
use crate::problem::Problem;
use crate::tokens::Role;

type Fields = Form<BTreeMap<String, String>>;

fn field<'a>(fields: &'a BTreeMap<String, String>, name: &str) -> &'a str {
    fields.get(name).map(|text| text.trim()).unwrap_or_default()
}

pub(crate) async fn label(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Form(fields): Fields,
) -> Response {
    let result = async {
        who.need(Role::Edit)?;
        who.check_form(field(&fields, "word"))?;
        let saying = Saying {
            test: api::to_number(field(&fields, "test"))?,
            day: field(&fields, "day").to_owned(),
            is_fault: field(&fields, "is") == "fault",
            bug: field(&fields, "bug").to_owned(),
        };
        let place = format!(
            "/?day={}&environment={}#t{}",
            encode(&saying.day),
            encode(field(&fields, "environment")),
            saying.test
        );
        api::say(&app, &who, saying).await?;
        Ok::<String, Problem>(place)
    };
    match result.await {
        Ok(place) => answer::go_to(&place),
        Err(problem) => answer::refuse(&problem, false, &who),
    }
}

pub(crate) async fn admit(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Form(fields): Fields,
) -> Response {
    let result = async {
        who.need(Role::Edit)?;
        who.check_form(field(&fields, "word"))?;
        let admission = Admission {
            test: api::to_number(field(&fields, "test"))?,
            reason: field(&fields, "reason").to_owned(),
            owner: field(&fields, "owner").to_owned(),
            until: field(&fields, "until").to_owned(),
        };
        api::put_in(&app, &who, admission).await
    };
    match result.await {
        Ok(()) => answer::go_to("/quarantine"),
        Err(problem) => answer::refuse(&problem, false, &who),
    }
}

pub(crate) async fn leave(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Form(fields): Fields,
) -> Response {
    let result = async {
        who.need(Role::Edit)?;
        who.check_form(field(&fields, "word"))?;
        let number = api::to_number(field(&fields, "test"))?;
        let why = format!("taken out by {}", who.name);
        api::write_about(&app, &who, number, (RESOLVED, why)).await
    };
    match result.await {
        Ok(()) => answer::go_to("/quarantine"),
        Err(problem) => answer::refuse(&problem, false, &who),
    }
}
