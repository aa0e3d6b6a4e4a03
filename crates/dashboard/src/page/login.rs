//! Signing in with a token, and out again.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Form, State};
use axum::http::header::{HeaderMap, SET_COOKIE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use maud::{Markup, html};

use super::frame::frame;
use super::parts;
use crate::api::Asked;
use crate::app::App;
use crate::http::answer;
use crate::http::guard::Who;
use crate::http::session;

type Fields = Form<BTreeMap<String, String>>;

pub(crate) async fn show(Asked(who): Asked) -> Response {
    answer::html(StatusCode::OK, page(&who, None))
}

pub(crate) fn page(who: &Who, trouble: Option<&str>) -> Markup {
    let main = html! {
        div.login {
            h1 { "Sign in" }
            p { "This board asks for a token. Whoever runs the server makes one with " code { "unflake token add" } "." }
            @if let Some(trouble) = trouble { p.trouble role="alert" { (trouble) } }
            form method="post" action="/login" {
                (parts::form_word(who))
                label { span { "Token" } input type="password" name="token" required autocomplete="current-password" autofocus; }
                button { "Sign in" }
            }
        }
    };
    frame(who, "Sign in", "/login", &main)
}

pub(crate) async fn enter(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    headers: HeaderMap,
    Form(fields): Fields,
) -> Response {
    let field = |name: &str| fields.get(name).map(|text| text.trim()).unwrap_or_default();
    if let Err(problem) = who.check_form(field("word")) {
        return answer::refuse(&problem, false, &who);
    }
    let file = app.options.tokens.as_ref();
    let Some(token) = file.and_then(|file| file.find(field("token"))) else {
        let page = page(
            &who,
            Some("This token is not known here, or it was revoked."),
        );
        return answer::html(StatusCode::FORBIDDEN, page);
    };
    let session = app.sessions.open(Some(&token.hash));
    let is_secure = headers
        .get("x-forwarded-proto")
        .is_some_and(|value| value == "https");
    let mut response = answer::go_to("/");
    if let Ok(value) = HeaderValue::from_str(&session::to_header(&session, is_secure)) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    response
}

pub(crate) async fn end(Asked(who): Asked, Form(fields): Fields) -> Response {
    let word = fields.get("word").map(String::as_str).unwrap_or_default();
    if let Err(problem) = who.check_form(word) {
        return answer::refuse(&problem, false, &who);
    }
    let mut response = answer::go_to("/login");
    if let Ok(value) = HeaderValue::from_str(&session::to_end()) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    response
}
