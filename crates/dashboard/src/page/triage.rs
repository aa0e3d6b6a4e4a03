//! The board: last night's failures, the most suspicious first.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use unflake_history::dates;

use super::frame::frame;
use super::parts;
use crate::app::App;
use crate::board::score::Score;
use crate::board::triage::{Cluster, Line, List, Triage, Wanted};
use crate::http::answer::Page;
use crate::http::guard::{Asked, Who};
use crate::http::problem::Problem;
use crate::http::query::Fields;
use crate::http::tokens::Role;
use crate::page::words;

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    fields: Fields,
) -> Result<Page, Problem> {
    let wanted = Wanted::parse(&fields)?;
    let found = app.ask(move |board| board.triage(&wanted));
    Ok(Page(page(&who, &found.await?)))
}

fn page(who: &Who, found: &Triage) -> Markup {
    let main = html! {
        @if let Some(last_day) = &found.last_day {
            (head(found, last_day))
            (ranking(found.ranking))
            (list(who, found, &found.potential_product_faults, &FAULTS))
            (list(who, found, &found.potential_flaky_failures, &FLAKY))
        } @else {
            h1 { "Triage" }
            (parts::no_runs(who))
        }
    };
    frame(who, "Triage", "/", &main)
}

fn head(found: &Triage, last_day: &str) -> Markup {
    html! {
        div.title {
            @if let Some(day) = &found.day { h1 { "Failures of " time datetime=(day) { (day) } } }
            @else { h1 { "Failures since the last stable run" } }
            @if let Some(branch) = &found.branch { (parts::tag("quiet", &format!("branch {}", words::visible(branch)))) }
        }
        (filter(found, last_day))
        @if let Some(since) = &found.since { (stable_run(found, since)) }
    }
}

fn filter(found: &Triage, last_day: &str) -> Markup {
    let environment = found.environment.as_deref();
    let here = ("environment", environment.unwrap_or_default());
    html! {
        form.filter method="get" action="/" {
            @if let Some(day) = &found.day { (days(day, last_day, here)) }
            @else { input type="hidden" name="since" value="stable"; }
            label {
                span { "Environment" }
                select name="environment" {
                    option value="" { "all" }
                    @for name in &found.environments {
                        option value=(name) selected[environment == Some(name)] { (words::visible(name)) }
                    }
                    @if let Some(chosen) = environment && !found.environments.iter().any(|one| one == chosen) {
                        option value=(chosen) selected { (words::visible(chosen)) }
                    }
                }
            }
            button { "Show" }
            @if found.day.as_deref() != Some(last_day) { a href=(link(&[here])) { "Last day" } }
            @if found.day.is_some() { a href=(link(&[("since", "stable"), here])) { "Since the last stable run" } }
        }
    }
}

/// The day that is shown, and the way to its neighbours.
fn days(day: &str, last_day: &str, environment: (&str, &str)) -> Markup {
    let number = dates::parse(day).unwrap_or_default();
    let other = |number: i32| link(&[("day", &dates::to_text(number)), environment]);
    html! {
        div.days {
            a.button href=(other(number - 1)) aria-label="The day before" { "‹" }
            label { span.hidden { "Day" } input type="date" name="day" value=(day); }
            @if day == last_day { span.button.off aria-hidden="true" { "›" } }
            @else { a.button href=(other(number + 1)) aria-label="The day after" { "›" } }
        }
    }
}

fn stable_run(found: &Triage, since: &str) -> Markup {
    html! {
        p {
            @if let Some(run) = &found.stable_run {
                "The last stable run is "
                @if !run.revision.is_empty() { "revision " strong { (words::visible(&words::short(&run.revision))) } ", " }
                @if !run.jobs.is_empty() { (words::visible(&jobs(&run.jobs))) ", " }
                "of " time { (words::moment(run.time)) }
                ": nothing failed in it but tests that fail as often as they are used to."
            } @else {
                "No run since " (since) " was stable, so these are all failures since then. A run is stable if it names "
                "a revision or a job, and nothing failed in it but tests that fail as often as they are used to."
            }
        }
    }
}

/// The board with these fields, without those that are empty.
pub(crate) fn link(fields: &[(&str, &str)]) -> String {
    let fields = fields.iter().filter(|(_, value)| !value.is_empty());
    let fields: Vec<String> = fields
        .map(|(name, value)| format!("{name}={}", encode(value)))
        .collect();
    match fields.as_slice() {
        [] => "/".to_owned(),
        fields => format!("/?{}", fields.join("&")),
    }
}

/// A value in an address.
pub(crate) fn encode(text: &str) -> String {
    let mut safe = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            safe.push(char::from(byte));
        } else {
            // Writing into a string cannot fail.
            let _ = write!(safe, "%{byte:02X}");
        }
    }
    safe
}

fn ranking(score: Score) -> Markup {
    html! {
        p #ranking.ranking {
            @if let Some(share) = score.share {
                strong { (words::percent(share)) }
                " of the " (words::plural(score.labelled, "failure", "failures"))
                " that you called product faults stood in the first list."
            } @else {
                "Say which failures were product faults, and the board measures its own ranking."
            }
        }
    }
}

/// How a list presents itself.
struct Titles {
    id: &'static str,
    title: &'static str,
    about: &'static str,
    none: &'static str,
}

const FAULTS: Titles = Titles {
    id: "faults",
    title: "Potential product faults",
    about: "They failed in a larger share of the day's runs than on nearly all of the 30 days before, or fail more \
            often than in their baseline.",
    none: "No failure stands out against the month before.",
};

const FLAKY: Titles = Titles {
    id: "flaky",
    title: "Potential flaky failures",
    about: "They fail as often as they are used to.",
    none: "No other test failed.",
};

fn list(who: &Who, found: &Triage, list: &List, titles: &Titles) -> Markup {
    html! {
        section aria-labelledby=(titles.id) {
            h2 id=(titles.id) { (titles.title) " " span.count { (words::count(list.tests as u64)) } }
            @if list.clusters.is_empty() {
                p.none { (titles.none) }
            } @else {
                p.faint { (titles.about) }
                div.scroll {
                    table.board {
                        thead { (columns()) }
                        @for (place, cluster) in list.clusters.iter().enumerate() {
                            (rows(who, found, cluster, &format!("{}-{place}", titles.id)))
                        }
                    }
                }
                @if list.more > 0 {
                    p.faint { (words::count(list.more as u64)) " more lines; filter by environment, or ask the API" }
                }
            }
        }
    }
}

fn columns() -> Markup {
    html! {
        tr {
            th.number scope="col" title="How far the day's share of failures is above the limit" { "Priority" }
            th scope="col" { "Test" }
            th.number scope="col" { "Failed" }
            th scope="col" { "Flake rate" }
            th.number scope="col" title="Reruns that passed in the last month" { "Reruns passed" }
            th scope="col" { "Where" }
            th scope="col" { "Product fault?" }
        }
    }
}

fn rows(who: &Who, found: &Triage, cluster: &Cluster, id: &str) -> Markup {
    let (first, others) = cluster.lines.split_first().expect("a cluster has a line");
    let bond = match cluster.bond {
        "signature" => "with the same message",
        _ => "that always fail with it",
    };
    html! {
        tbody {
            (row(who, found, first))
            @if !others.is_empty() {
                tr.more {
                    td {}
                    td colspan="6" {
                        details id=(id) {
                            summary { "and " (words::plural(others.len(), "test", "tests")) " " (bond) }
                            table.board.inner {
                                thead.hidden { (columns()) }
                                tbody { @for line in others { (row(who, found, line)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn row(who: &Who, found: &Triage, line: &Line) -> Markup {
    html! {
        tr id={ "t" (line.number) } {
            td.number data-name="Priority" { (words::percent(line.priority)) }
            td.wide data-name="Test" {
                (parts::test_link(line.number, &line.test, line.copy))
                @if line.is_unstable { " " (parts::tag("bad", "unstable")) }
                @if line.is_quarantined { " " (parts::tag("quiet", "quarantined")) }
                @if let Some(verdict) = &line.verdict { " " (verdict_tag(verdict, line.rung.as_deref())) }
                @if let Some(signature) = &line.signature {
                    div.signature title=[line.message.as_deref().map(words::visible)] { (words::visible(signature)) }
                }
                @if !line.owner.is_empty() { div.faint { (words::visible(&line.owner)) } }
            }
            td.number data-name="Failed" {
                (line.failures) "/" (line.runs)
                div.faint title="95th percentile of the 30 days before" { "limit " (words::percent(line.limit)) }
                @if found.since.is_some() && line.days > 1 { div.faint { "and on " (words::plural(line.days - 1, "other day", "other days")) } }
            }
            td data-name="Flake rate" {
                (parts::rate(line.rate, line.low, line.high))
                div.faint { "was " (words::percent_or_dash(line.stable_rate)) }
            }
            td.number data-name="Reruns passed" { (line.passed_reruns) }
            td data-name="Where" { (place(found, line)) }
            td data-name="Product fault?" { (fault(who, found, line)) }
        }
    }
}

fn verdict_tag(verdict: &str, rung: Option<&str>) -> Markup {
    let class = if verdict == "flaky" { "flaky" } else { "quiet" };
    let text = match rung {
        Some(rung) if rung != "suite" => format!("{verdict}, {rung}"),
        Some(_) | None => verdict.to_owned(),
    };
    parts::tag(class, &words::visible(&text))
}

fn place(found: &Triage, line: &Line) -> Markup {
    let parts = [line.environments.join(", "), jobs(&line.jobs)];
    let time = match &found.day {
        Some(_) => words::clock(line.time),
        None => words::moment(line.time),
    };
    let package = if line.revision.is_empty() {
        &line.release
    } else {
        &line.revision
    };
    html! {
        div { time { (time) } " " (words::visible(&words::short(package))) }
        @for part in parts.iter().filter(|part| !part.is_empty()) {
            div.faint { (words::visible(part)) }
        }
    }
}

fn jobs(jobs: &[String]) -> String {
    match jobs {
        [] => String::new(),
        [one] => format!("job {one}"),
        [first, others @ ..] => format!("job {first} and {} more", others.len()),
    }
}

fn fault(who: &Who, found: &Triage, line: &Line) -> Markup {
    let environment = found.environment.as_deref().unwrap_or_default();
    html! {
        @if let Some(fault) = &line.fault {
            div.fault {
                strong { "yes" }
                @if !fault.bug.is_empty() { ", " (parts::bug(&fault.bug)) }
                div.faint { "said " (words::visible(&fault.author)) ", " (words::moment(fault.time)) }
            }
        } @else if let Some(bug) = &line.reported_bug {
            div.fault { strong { "yes" } ", " (parts::bug(bug)) }
        }
        @if who.may(Role::Edit) {
            form.label method="post" action="/label" {
                (parts::form_word(who))
                input type="hidden" name="test" value=(line.number);
                input type="hidden" name="day" value=(line.day);
                @if found.since.is_some() { input type="hidden" name="since" value="stable"; }
                input type="hidden" name="environment" value=(environment);
                @if line.fault.is_some() {
                    button.plain name="is" value="cleared" { "Take back" }
                } @else {
                    input type="text" name="bug" placeholder="bug, if any" size="9" maxlength="500"
                        aria-label={ "Bug for " (words::visible(&line.test)) };
                    button name="is" value="fault" { "Fault" }
                }
            }
        }
    }
}
