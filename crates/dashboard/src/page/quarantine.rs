//! The page of the quarantine.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use unflake_history::dates;

use super::frame::frame;
use super::parts;
use crate::app::App;
use crate::board::quarantine::{Quarantine, Resident};
use crate::http::answer::Page;
use crate::http::guard::{Asked, Who};
use crate::http::problem::Problem;
use crate::http::tokens::Role;
use crate::page::words;

/// So many of those that have left are shown.
const LEFT: usize = 50;

pub(crate) async fn show(State(app): State<Arc<App>>, Asked(who): Asked) -> Result<Page, Problem> {
    let found = app.ask(|board| board.quarantine(dates::now()));
    Ok(Page(page(&who, &found.await?)))
}

fn page(who: &Who, found: &Quarantine) -> Markup {
    let main = html! {
        div.title { h1 { "Quarantine" } }
        p {
            "These tests run and are recorded, and do not fail " code { "unflake run" } ". A test leaves when its "
            "rate of failures is below " (words::percent(found.limit)) " with 95 % confidence, after at least "
            (found.least_runs) " runs; or when its time is over."
        }
        @if found.residents.is_empty() {
            (parts::empty("No test is in quarantine", &html! { "A test is put here on its own page; " a href="/tests?only=flaky" { "these flake" } "." }))
        } @else { (table(who, &found.residents)) }
        section aria-labelledby="use" {
            h2 #use { "Have " code { "unflake run" } " honour it" }
            pre { code { "unflake run --quarantine " (who.address) } }
            p.faint {
                "Or keep " a href="/api/v1/quarantine.toml" { "the list as a file" } " in the repository, as "
                code { "unflake-quarantine.toml" } "."
            }
        }
        @if !found.left.is_empty() {
            section aria-labelledby="left" {
                h2 #left { "Have left" }
                ul.plain {
                    @for one in found.left.iter().take(LEFT) {
                        li {
                            (one.left.as_deref().unwrap_or("")) " " (parts::test_link(one.number, &one.test, one.copy))
                            div.faint { (words::visible(one.left_because.as_deref().unwrap_or(""))) }
                        }
                    }
                }
            }
        }
    };
    frame(who, "Quarantine", "/quarantine", &main)
}

fn table(who: &Who, residents: &[Resident]) -> Markup {
    html! {
        div.scroll {
            table.list {
                thead { tr {
                    th scope="col" { "Test" } th scope="col" { "Reason" } th scope="col" { "Owner" }
                    th scope="col" { "Since" } th scope="col" { "Until" } th.number scope="col" { "Failed since" }
                    th.number scope="col" { "Rate below" }
                    @if who.may(Role::Edit) { th scope="col" { span.hidden { "Action" } } }
                } }
                tbody { @for one in residents { (row_of(who, one)) } }
            }
        }
    }
}

fn row_of(who: &Who, one: &Resident) -> Markup {
    html! {
        tr {
            td.wide data-name="Test" { (parts::test_link(one.number, &one.test, one.copy)) }
            td data-name="Reason" { (words::visible(&one.reason)) }
            td data-name="Owner" { @if one.owner.is_empty() { span.faint { "–" } } @else { (words::visible(&one.owner)) } }
            td.date data-name="Since" { (one.since) div.faint { "by " (words::visible(&one.author)) } }
            td.date data-name="Until" { (one.until) @if one.is_over { " " (parts::tag("bad", "over")) } }
            td.number data-name="Failed since" { (words::count(one.failures)) "/" (words::count(one.runs)) }
            td.number data-name="Rate below" { (words::percent(one.high)) }
            @if who.may(Role::Edit) {
                td {
                    form method="post" action="/quarantine/leave" {
                        (parts::form_word(who))
                        input type="hidden" name="test" value=(one.number);
                        button.plain aria-label={ "Take out " (words::visible(&one.test)) } { "Take out" }
                    }
                }
            }
        }
    }
}
