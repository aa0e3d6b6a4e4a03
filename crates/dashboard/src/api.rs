//! The API: what pages show, as JSON, and what people say.

pub(crate) mod badge;
pub(crate) mod export;
pub(crate) mod health;
pub(crate) mod live;
pub(crate) mod openapi;
pub(crate) mod reports;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use unflake_history::dates;
use unflake_history::run::Label;
use unflake_history::store::Store;

use crate::app::App;
use crate::board::labels::{BUG, CLEARED, QUARANTINED, RESOLVED, STOOD, Terms};
use crate::board::next::Next;
use crate::board::one_test::OneTest;
use crate::board::quarantine::Quarantine;
use crate::board::score::Score;
use crate::board::snapshot::Snapshot;
use crate::board::suspicion::span_of;
use crate::board::tests_list::TestsList;
use crate::board::triage::{Triage, Wanted, Which};
use crate::http::answer;
use crate::http::guard::Who;
use crate::http::problem::Problem;
use crate::http::query::Fields;
use crate::http::tokens::Role;

type Asking = Query<BTreeMap<String, String>>;

/// Whoever asks, as the guard found them.
pub(crate) struct Asked(pub(crate) Who);

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let who = parts.extensions.get::<Who>().cloned();
        who.map(Self).ok_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// An answer, or what went wrong as JSON.
pub(crate) fn answered(who: &Who, result: Result<Response, Problem>) -> Response {
    result.unwrap_or_else(|problem| answer::refuse(&problem, true, who))
}

fn good(value: &impl serde::Serialize) -> Response {
    answer::json(StatusCode::OK, value)
}

pub(crate) async fn triage(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Query(fields): Asking,
) -> Response {
    let result = async {
        who.need(Role::Read)?;
        let wanted = Fields(fields).to_triage()?;
        let found = app.ask(move |app, store, snapshot| {
            Ok(Triage::read(store, snapshot, &app.options.owners, &wanted)?)
        });
        Ok(good(&found.await?))
    };
    answered(&who, result.await)
}

pub(crate) async fn tests(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Query(fields): Asking,
) -> Response {
    let result = async {
        who.need(Role::Read)?;
        let wanted = Fields(fields).to_tests()?;
        let found = app.ask(move |app, _, snapshot| {
            Ok(TestsList::read(snapshot, &app.options.owners, &wanted))
        });
        Ok(good(&found.await?))
    };
    answered(&who, result.await)
}

/// The number in a path; one that is none belongs to no test.
pub(crate) fn to_number(text: &str) -> Result<u32, Problem> {
    text.parse()
        .map_err(|_| Problem::NotFound("there is no such test".to_owned()))
}

pub(crate) async fn test(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Path(number): Path<String>,
) -> Response {
    let result = async {
        who.need(Role::Read)?;
        let number = to_number(&number)?;
        let found = app.ask(move |app, store, snapshot| {
            let found = OneTest::read(store, snapshot, &app.options.owners, number)?;
            found.ok_or_else(|| {
                Problem::NotFound("there is no such test, or it has not run lately".to_owned())
            })
        });
        Ok(good(&found.await?))
    };
    answered(&who, result.await)
}

pub(crate) async fn suite(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Query(fields): Asking,
) -> Response {
    let result = async {
        who.need(Role::Read)?;
        let release = Fields(fields).text("release")?.map(ToOwned::to_owned);
        let found = app.ask(move |app, store, snapshot| {
            let found =
                app.suites
                    .read(store, snapshot, &app.options.periods, release.as_deref())?;
            found.ok_or_else(|| Problem::NotFound("there is no such release".to_owned()))
        });
        Ok(good(&*found.await?))
    };
    answered(&who, result.await)
}

pub(crate) async fn next(State(app): State<Arc<App>>, Asked(who): Asked) -> Response {
    let result = async {
        who.need(Role::Read)?;
        let found = app.ask(|_, _, snapshot| Ok(Next::read(snapshot)));
        Ok(good(&found.await?))
    };
    answered(&who, result.await)
}

pub(crate) async fn quarantine(State(app): State<Arc<App>>, Asked(who): Asked) -> Response {
    let result = async {
        who.need(Role::Read)
            .or_else(|problem| who.need(Role::Report).map_err(|_| problem))?;
        Ok(good(&read_quarantine(&app).await?))
    };
    answered(&who, result.await)
}

/// The list for `unflake run`, which a CI job may read with the token that it sends reports with.
pub(crate) async fn quarantine_file(State(app): State<Arc<App>>, Asked(who): Asked) -> Response {
    let result = async {
        who.need(Role::Read)
            .or_else(|problem| who.need(Role::Report).map_err(|_| problem))?;
        let found = read_quarantine(&app).await?;
        Ok(answer::text("application/toml", found.to_toml()))
    };
    answered(&who, result.await)
}

pub(crate) async fn read_quarantine(app: &Arc<App>) -> Result<Quarantine, Problem> {
    let found = app.ask(|app, store, snapshot| {
        let now = dates::now();
        Ok(Quarantine::read(store, snapshot, app.options.release, now)?)
    });
    found.await
}

/// What is said about a test's failures of a day.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saying {
    /// The test's number.
    pub(crate) test: u32,
    /// As 2026-11-18.
    pub(crate) day: String,
    /// Whether it is a fault of the product; false takes back what was said.
    pub(crate) is_fault: bool,
    /// The bug's id or address.
    #[serde(default)]
    pub(crate) bug: String,
}

pub(crate) async fn label(State(app): State<Arc<App>>, Asked(who): Asked, body: Bytes) -> Response {
    let result = async {
        who.need(Role::Edit)?;
        let saying = parse(&body)?;
        say(&app, &who, saying).await?;
        let score = app
            .ask(|_, _, snapshot| Ok(Score::of(&snapshot.said)))
            .await?;
        Ok(good(
            &json!({"schema": "unflake.label/1", "ranking": score}),
        ))
    };
    answered(&who, result.await)
}

pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::Bad(format!("the body is not as it should be: {error}")))
}

/// Text that people wrote into a field.
fn check_text(name: &str, text: &str, most: usize) -> Result<String, Problem> {
    let text = text.trim();
    if text.chars().count() > most || text.contains(char::is_control) {
        return Err(Problem::Bad(format!(
            "`{name}` is longer than {most} characters, or has control characters"
        )));
    }
    Ok(text.to_owned())
}

/// Writes down what is said about a test's failures of a day, and where it stood on the board.
pub(crate) async fn say(app: &Arc<App>, who: &Who, saying: Saying) -> Result<(), Problem> {
    let fields = Fields(BTreeMap::from([("day".to_owned(), saying.day.clone())]));
    let day = fields.day("day")?;
    let bug = check_text("bug", &saying.bug, 500)?;
    let author = who.name.clone();
    let labels = app.ask(move |app, store, snapshot| {
        let wanted = Wanted {
            which: day.map_or(Which::LastDay, Which::Day),
            environment: None,
            most: usize::MAX,
        };
        let board = Triage::read(store, snapshot, &app.options.owners, &wanted)?;
        let missing = || Problem::NotFound("this test did not fail on that day".to_owned());
        let (list, line) = board.standing(saying.test).ok_or_else(missing)?;
        let mut labels = Vec::new();
        let runs = runs_of(store, snapshot, saying.test, day.ok_or_else(missing)?)?;
        let test = store.test_by_number(saying.test)?.ok_or_else(missing)?;
        let mut add = |run: i64, kind: &str, value: &str| {
            labels.push(Label {
                time: dates::now(),
                test: test.clone(),
                run: Some(run),
                kind: kind.to_owned(),
                value: value.to_owned(),
                author: author.clone(),
            });
        };
        for run in runs {
            add(run, if saying.is_fault { BUG } else { CLEARED }, &bug);
        }
        if saying.is_fault {
            add(line.run, STOOD, list);
        }
        Ok(labels)
    });
    app.writer.label(labels.await?).await?;
    Ok(())
}

/// The failures of a test on a day, by number.
fn runs_of(
    store: &dyn Store,
    snapshot: &Snapshot,
    test: u32,
    day: i32,
) -> Result<Vec<i64>, Problem> {
    let known = snapshot.known.as_ref().as_ref().ok_or(Problem::Broken)?;
    let place = known.place(test);
    let span = span_of(day);
    let failures = store.failures_between(span.0, span.1)?;
    let of_test = failures
        .into_iter()
        .filter(|one| known.place(one.test) == place && known.has_stream(one.stream));
    Ok(of_test.map(|one| one.run.number).collect())
}

/// A test that is to go into quarantine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Admission {
    /// The test's number.
    pub(crate) test: u32,
    pub(crate) reason: String,
    #[serde(default)]
    pub(crate) owner: String,
    /// As 2026-11-18.
    pub(crate) until: String,
}

pub(crate) async fn admit(State(app): State<Arc<App>>, Asked(who): Asked, body: Bytes) -> Response {
    let result = async {
        who.need(Role::Edit)?;
        put_in(&app, &who, parse(&body)?).await?;
        Ok(good(&read_quarantine(&app).await?))
    };
    answered(&who, result.await)
}

/// Puts a test into quarantine.
pub(crate) async fn put_in(app: &Arc<App>, who: &Who, admission: Admission) -> Result<(), Problem> {
    let reason = check_text("reason", &admission.reason, 500)?;
    if reason.is_empty() {
        return Err(Problem::Bad(
            "say why the test goes into quarantine".to_owned(),
        ));
    }
    let owner = check_text("owner", &admission.owner, 200)?;
    let fields = Fields(BTreeMap::from([(
        "until".to_owned(),
        admission.until.clone(),
    )]));
    let until = fields
        .day("until")?
        .ok_or_else(|| Problem::Bad("say until when".to_owned()))?;
    let today = dates::day_of(dates::now());
    if until < today || until > today + 366 {
        return Err(Problem::Bad(
            "a quarantine ends today or later, and within a year".to_owned(),
        ));
    }
    let terms = Terms {
        reason,
        owner,
        until: dates::to_text(until),
    };
    let value = serde_json::to_string(&terms).map_err(|_| Problem::Broken)?;
    write_about(app, who, admission.test, (QUARANTINED, value)).await
}

pub(crate) async fn leave(
    State(app): State<Arc<App>>,
    Asked(who): Asked,
    Path(number): Path<String>,
) -> Response {
    let result = async {
        who.need(Role::Edit)?;
        let number = to_number(&number)?;
        let is_there = app.ask(move |_, _, snapshot| {
            let number = snapshot.aliases.first(number);
            Ok(snapshot.said.quarantined.contains_key(&number))
        });
        if !is_there.await? {
            return Err(Problem::NotFound(
                "this test is not in quarantine".to_owned(),
            ));
        }
        let why = format!("taken out by {}", who.name);
        write_about(&app, &who, number, (RESOLVED, why)).await?;
        Ok(good(&read_quarantine(&app).await?))
    };
    answered(&who, result.await)
}

/// Adds a label about a test.
pub(crate) async fn write_about(
    app: &Arc<App>,
    who: &Who,
    number: u32,
    (kind, value): (&'static str, String),
) -> Result<(), Problem> {
    let test = app.ask(move |_, store, _| {
        let missing = || Problem::NotFound("there is no such test".to_owned());
        store.test_by_number(number)?.ok_or_else(missing)
    });
    let label = Label {
        time: dates::now(),
        test: test.await?,
        run: None,
        kind: kind.to_owned(),
        value,
        author: who.name.clone(),
    };
    app.writer.label(vec![label]).await?;
    Ok(())
}
