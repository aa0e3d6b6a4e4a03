//! The page that says what to run again.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};

use super::frame::frame;
use super::parts;
use crate::app::App;
use crate::board::next::{Next, Row};
use crate::http::answer::Page;
use crate::http::guard::{Asked, Who};
use crate::http::problem::Problem;
use crate::page::words;

pub(crate) async fn show(State(app): State<Arc<App>>, Asked(who): Asked) -> Result<Page, Problem> {
    let found = app.ask(|board| Ok(board.next()));
    Ok(Page(page(&who, &found.await?)))
}

fn page(who: &Who, next: &Next) -> Markup {
    let main = html! {
        div.title { h1 { "What to run next" } }
        @if let Some(period) = &next.period {
            p.faint { (words::visible(period)) }
            @if next.tests.is_empty() {
                (parts::empty("Nothing to run", &html! { "No test ran in the last days." }))
            } @else {
                p {
                    "The test comes first whose next run tells most about whether it is broken now, per second. "
                    "To run them here and now: " code { "unflake next --budget 10m --run" }
                }
                (table(next))
                p.faint { (words::count(next.tests.len() as u64)) " of " (words::plural(next.all, "test", "tests")) }
            }
        } @else { (parts::no_runs(who)) }
    };
    frame(who, "Next", "/next", &main)
}

fn table(next: &Next) -> Markup {
    html! {
        div.scroll {
            table.list {
                thead { tr {
                    th.number scope="col" { "#" } th scope="col" { "Test" }
                    th.number scope="col" title="How likely it is that it is broken now" { "Broken?" }
                    th.number scope="col" { "Failed" } th.number scope="col" { "Was" }
                    th.number scope="col" { "Takes" } th scope="col" { "Why" }
                } }
                tbody { @for (place, row) in next.tests.iter().enumerate() { (row_of(place + 1, row)) } }
            }
        }
    }
}

fn row_of(place: usize, row: &Row) -> Markup {
    html! {
        tr {
            td.number data-name="Place" { (place) }
            td.wide data-name="Test" { (parts::test_link(row.number, &row.test, row.copy)) }
            td.number data-name="Broken?" { (words::percent(row.broken_probability)) }
            td.number data-name="Failed" { (words::count(row.failures)) "/" (words::count(row.runs)) }
            td.number data-name="Was" { (words::percent_or_dash(row.stable_rate)) }
            td.number data-name="Takes" { @if let Some(time) = row.seconds { (words::seconds(time)) } @else { "–" } }
            td data-name="Why" { (row.why) }
        }
    }
}
