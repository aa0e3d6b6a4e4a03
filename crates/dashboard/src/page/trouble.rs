//! The page that says what went wrong.

use axum::http::HeaderValue;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::frame::frame;
use super::{login, words};
use crate::http::answer::Page;
use crate::http::guard::Who;
use crate::http::problem::Problem;

/// What people see of a problem: what it is and what to do, or where to sign in.
pub(crate) fn show(who: &Who, problem: &Problem) -> Response {
    let page = match problem {
        Problem::Unknown => login::page(who, None),
        Problem::Bad(_)
        | Problem::NotFound(_)
        | Problem::Forbidden(_)
        | Problem::TooLarge(_)
        | Problem::Format(_)
        | Problem::Busy(_)
        | Problem::Store(_)
        | Problem::Broken => page(who, problem),
    };
    let mut response = (problem.status(), Page(page)).into_response();
    if matches!(problem, Problem::Busy(_)) {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("2"));
    }
    response
}

fn page(who: &Who, problem: &Problem) -> Markup {
    let main = html! {
        div.empty {
            h1 { (words::visible(&words::sentence(&problem.to_string()))) }
            p { (problem.advice()) }
            p { a href="/" { "To the board" } }
        }
    };
    frame(who, "Trouble", "", &main)
}

pub(crate) async fn missing() -> Problem {
    Problem::NotFound("there is no such page".to_owned())
}
