//! The page of one test.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, PreEscaped, html};
use unflake_core::chart::svg;
use unflake_history::dates;

use super::frame::frame;
use super::parts;
use crate::app::App;
use crate::board::one_test::{OneTest, Shown};
use crate::http::answer::Page;
use crate::http::guard::{Asked, Who};
use crate::http::problem::Problem;
use crate::http::query::TestNumber;
use crate::http::tokens::Role;
use crate::page::plots;
use crate::page::words;

/// So many runs are in the table; the strip has more.
const IN_TABLE: usize = 25;

/// How long a quarantine lasts if nobody says otherwise, in days.
const QUARANTINE: i32 = 14;

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    TestNumber(number): TestNumber,
) -> Result<Page, Problem> {
    let found = app.ask(move |board| board.test(number));
    Ok(Page(page(&who, &found.await?)))
}

fn page(who: &Who, test: &OneTest) -> Markup {
    let row = &test.row;
    let main = html! {
        div.title {
            h1.name { (parts::breakable(&row.test)) }
            @if row.is_unstable { (parts::tag("bad", "unstable")) }
            @if row.is_quarantined { (parts::tag("quiet", "quarantined")) }
        }
        p.faint { (words::visible(&test.period)) }
        (facts(test))
        @if let Some(change) = &test.change {
            p.note {
                "Its share of failures went from " strong { (words::percent(change.before)) }
                " to " strong { (words::percent(change.after)) } ", most likely on " strong { (change.day) }
                ", and between " (change.earliest) " and " (change.latest) "."
            }
        }
        section aria-labelledby="runs" {
            h2 #runs { "Last runs" }
            (PreEscaped(plots::strip(&test.last_runs)))
            p.faint { "The newest is on the right. Tall bars failed; point at one to see its run." }
            @if let Some(chart) = plots::rate_chart(test) { (PreEscaped(svg::write_inline(&chart))) }
        }
        (signatures(test))
        (companions(test))
        (quarantine(who, test))
        @if let Some(command) = &test.command {
            section aria-labelledby="repeat" {
                h2 #repeat { "Run it again" }
                pre { code { (words::visible(command)) } }
            }
        }
        (runs(&test.last_runs))
    };
    frame(who, &words::visible(&row.test), "/tests", &main)
}

fn facts(test: &OneTest) -> Markup {
    let row = &test.row;
    html! {
        dl.facts {
            div { dt { "Flake rate" } dd { (parts::rate(row.rate, row.low, row.high)) } }
            div { dt { "Baseline" } dd { (words::percent_or_dash(row.stable_rate)) } }
            div { dt { "Runs" } dd { (words::count(row.runs)) " " span.faint { (words::count(row.flaky_failures)) " flaky" } } }
            div { dt { "Runs still needed" } dd {
                @match row.runs_needed { None => { "–" } Some(0) => { "none" } Some(more) => { (words::count(more)) } }
            } }
            div { dt { "Last flake" } dd { (row.last_flake.as_deref().unwrap_or("–")) } }
            @if !row.owner.is_empty() { div { dt { "Owner" } dd { (words::visible(&row.owner)) } } }
        }
    }
}

fn signatures(test: &OneTest) -> Markup {
    html! {
        section aria-labelledby="signatures" {
            h2 #signatures { "How it fails" }
            @if test.signatures.is_empty() { p.none { "No failure is in the history." } }
            @for (place, one) in test.signatures.iter().take(20).enumerate() {
                details.signature id={ "signature-" (place) } open[place == 0] {
                    summary {
                        span.count { (words::count(one.count as u64)) "×" } " "
                        @if one.text.is_empty() { em { "no message" } } @else { (words::visible(&one.text)) }
                        " " span.faint { "last " (words::moment(one.last)) }
                    }
                    @if !one.example.is_empty() { pre { (words::visible(&one.example)) } }
                }
            }
        }
    }
}

fn companions(test: &OneTest) -> Markup {
    html! {
        @if !test.fails_with.is_empty() {
            section aria-labelledby="companions" {
                h2 #companions { "What fails with it" }
                p.faint { "Tests that failed in the same reports of the last month." }
                ul.plain {
                    @for one in &test.fails_with {
                        li {
                            span.number { (one.together) " of " (one.of) } " "
                            (parts::test_link(one.number, &one.test, 0))
                        }
                    }
                }
            }
        }
    }
}

fn quarantine(who: &Who, test: &OneTest) -> Markup {
    let row = &test.row;
    let until = dates::to_text(dates::day_of(dates::now()) + QUARANTINE);
    html! {
        section aria-labelledby="quarantine" {
            h2 #quarantine { "Quarantine" }
            @if let Some(resident) = &test.quarantine {
                p {
                    "In quarantine since " (resident.since) " until " strong { (resident.until) } ": "
                    (words::visible(&resident.reason))
                    @if !resident.owner.is_empty() { " (" (words::visible(&resident.owner)) ")" }
                    ". " (words::count(resident.failures)) " of " (words::count(resident.runs)) " runs failed since."
                }
                @if who.may(Role::Edit) {
                    form method="post" action="/quarantine/leave" {
                        (parts::form_word(who))
                        input type="hidden" name="test" value=(resident.number);
                        button { "Take it out" }
                    }
                }
            } @else if who.may(Role::Edit) {
                p.faint { "It goes on to run and to be recorded, and does not fail " code { "unflake run" } "." }
                form.filter method="post" action="/quarantine" {
                    (parts::form_word(who))
                    input type="hidden" name="test" value=(row.number);
                    label { span { "Reason" } input type="text" name="reason" required maxlength="500" size="32"; }
                    label { span { "Owner" } input type="text" name="owner" maxlength="200" size="14" value=(row.owner); }
                    label { span { "Until" } input type="date" name="until" required value=(until); }
                    button { "Quarantine" }
                }
            } @else { p.none { "It is not in quarantine." } }
        }
    }
}

fn runs(runs: &[Shown]) -> Markup {
    html! {
        section aria-labelledby="table" {
            h2 #table { "Runs" }
            div.scroll {
                table.list {
                    thead { tr {
                        th scope="col" { "Time" } th scope="col" { "Outcome" } th scope="col" { "Where" }
                        th scope="col" { "Revision" } th.number scope="col" { "Took" } th scope="col" { "Verdict" }
                    } }
                    tbody {
                        @for run in runs.iter().take(IN_TABLE) {
                            tr {
                                td data-name="Time" { (words::moment(run.time)) }
                                td data-name="Outcome" {
                                    span class={ "outcome " (kind(&run.outcome)) } { (words::visible(&run.outcome)) }
                                    @if run.attempt > 1 { span.faint { " rerun " (run.attempt - 1) } }
                                    @if run.attempt == 0 { span.faint { " experiment" } }
                                }
                                td data-name="Where" { (place(run)) }
                                td data-name="Revision" { (words::visible(&words::short(&run.revision))) }
                                td.number data-name="Took" { @if let Some(time) = run.seconds { (words::seconds(time)) } @else { "–" } }
                                td data-name="Verdict" {
                                    (words::visible(run.verdict.as_deref().unwrap_or("")))
                                    @if let Some(fault) = &run.fault { " product fault " (parts::bug(&fault.bug)) }
                                    @if let Some(bug) = &run.bug { " " (parts::bug(bug)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn kind(outcome: &str) -> &'static str {
    match outcome {
        "passed" | "xpassed" => "pass",
        "failed" | "error" | "timeout" | "crashed" => "fail",
        _ => "skip",
    }
}

fn place(run: &Shown) -> String {
    let job = if run.job.is_empty() {
        String::new()
    } else {
        format!("job {}", run.job)
    };
    let parts = [
        run.environment.clone(),
        job,
        run.branch.clone(),
        run.release.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    words::visible(&parts.join(", "))
}
