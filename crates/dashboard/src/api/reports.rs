//! Reports from CI jobs: read, written to the disk, and only then acknowledged. One that was taken before
//! counts once.

use std::io::{Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tokio_stream::StreamExt;
use unflake_history::dates;
use unflake_history::import::{Columns, Format, Input, Skips, Whole, Wish};
use unflake_history::run::Provenance;
use unflake_history::store::source::Appended;

use crate::app::App;
use crate::http::answer::Json;
use crate::http::problem::Problem;
use crate::http::query::Fields;

/// Takes a report.
pub(crate) async fn take(
    State(app): State<Arc<App>>,
    fields: Fields,
    request: Request,
) -> Result<Response, Problem> {
    let turn = app.report_turns.acquire().await;
    let _turn = turn.map_err(|_| Problem::Broken)?;
    let result = accept(&app, &fields, request).await;
    if result.is_err() {
        app.metrics.reports_refused.fetch_add(1, Ordering::Relaxed);
    }
    result
}

async fn accept(app: &App, fields: &Fields, request: Request) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let wish = Wish {
        provenance: to_provenance(fields)?,
        columns: Columns::default(),
        format: to_format(&head.headers),
        now: dates::now(),
    };
    let name = fields.text("name")?.unwrap_or("report").to_owned();
    let written = to_written(fields)?;
    let bytes = read_body(app, &head.headers, body).await?;
    let work = move || {
        let input = Input {
            name,
            written,
            bytes: Box::new(Cursor::new(bytes)),
        };
        Whole::read(input, &wish)
    };
    let whole = tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Problem::Broken)?;
    let mut whole = whole.map_err(|error| Problem::Format(error.to_string()))?;
    let digest = blake3::Hash::from_bytes(whole.digest()).to_hex();
    let skips = std::mem::take(&mut whole.skips);
    let (status, result, runs) = match app.writer.add(whole).await? {
        Appended::Added { runs } => {
            app.metrics.reports_added.fetch_add(1, Ordering::Relaxed);
            app.metrics.runs_added.fetch_add(runs, Ordering::Relaxed);
            (StatusCode::CREATED, "added", runs)
        }
        Appended::Known | Appended::Refused => {
            app.metrics.reports_known.fetch_add(1, Ordering::Relaxed);
            (StatusCode::OK, "known", 0)
        }
    };
    let answer = json!({
        "schema": "unflake.report/1", "result": result, "runs": runs, "digest": digest.as_str(),
        "skipped": to_json(&skips),
    });
    Ok((status, Json(answer)).into_response())
}

fn to_json(skips: &Skips) -> Vec<Value> {
    let all = skips.iter();
    all.map(|(skip, count, first)| json!({"reason": skip.reason(), "count": count, "first": first}))
        .collect()
}

/// The format that the sender names; what is not named is guessed by the first bytes.
fn to_format(headers: &HeaderMap) -> Option<Format> {
    let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    match kind.split(';').next().unwrap_or_default().trim() {
        "application/xml" | "text/xml" => Some(Format::Junit),
        "text/csv" => Some(Format::Csv),
        "application/x-ndjson" | "application/jsonl" | "application/json" => {
            Some(Format::JsonLines)
        }
        _ => None,
    }
}

/// So many times the largest body is read before somebody who sends too much is cut off.
const HEARD_OUT: usize = 8;

/// The body as it was sent. One that is too large is heard out, within reason: whoever is cut off while they
/// send may never read why.
async fn take_bytes(body: Body, limit: usize) -> Result<Bytes, Problem> {
    let mut parts = body.into_data_stream();
    let (mut taken, mut size) = (Vec::new(), 0_usize);
    while let Some(part) = parts.next().await {
        let part = part.map_err(|error| Problem::Bad(format!("the body broke off: {error}")))?;
        size = size.saturating_add(part.len());
        if size <= limit {
            taken.extend_from_slice(&part);
        } else if size > limit.saturating_mul(HEARD_OUT) {
            break;
        }
    }
    if size > limit {
        return Err(Problem::TooLarge(limit));
    }
    Ok(taken.into())
}

/// The body, unpacked, and never more of it than is taken.
async fn read_body(app: &App, headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let limit = app.options.limits.body;
    let bytes = take_bytes(body, limit).await?;
    let encoding = headers
        .get(CONTENT_ENCODING)
        .map(|value| value.as_bytes().to_ascii_lowercase());
    match encoding.as_deref() {
        None | Some(b"" | b"identity") => Ok(bytes),
        Some(b"gzip") => {
            let unpack = move || {
                let mut unpacked = Vec::new();
                let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
                let mut reader = GzDecoder::new(Cursor::new(bytes)).take(most);
                match reader.read_to_end(&mut unpacked) {
                    Err(error) => Err(Problem::Format(format!("it is no gzip: {error}"))),
                    Ok(size) if size > limit => Err(Problem::TooLarge(limit)),
                    Ok(_) => Ok(Bytes::from(unpacked)),
                }
            };
            tokio::task::spawn_blocking(unpack)
                .await
                .map_err(|_| Problem::Broken)?
        }
        Some(_) => Err(Problem::Format(
            "a body is sent as it is, or with gzip".to_owned(),
        )),
    }
}

/// Says whether a report was taken.
pub(crate) async fn look(
    State(app): State<Arc<App>>,
    Path(digest): Path<String>,
) -> Result<Json<Value>, Problem> {
    let wanted = blake3::Hash::from_hex(&digest)
        .map_err(|_| Problem::Bad("a digest has 64 hexadecimal digits".to_owned()))?;
    let found = app.ask(move |board| Ok(board.store.has_import(wanted.as_bytes())?));
    if !found.await? {
        return Err(Problem::NotFound("there is no such report".to_owned()));
    }
    let digest = wanted.to_hex();
    Ok(Json(
        json!({"schema": "unflake.report/1", "result": "known", "digest": digest.as_str()}),
    ))
}

fn to_provenance(fields: &Fields) -> Result<Provenance, Problem> {
    let text = |name| Ok::<_, Problem>(fields.text(name)?.unwrap_or_default().to_owned());
    Ok(Provenance {
        revision: text("revision")?,
        branch: text("branch")?,
        release: text("release")?,
        environment: text("environment")?,
        job: text("job")?,
    })
}

/// When a file was written, in milliseconds since 1970.
fn to_written(fields: &Fields) -> Result<Option<i64>, Problem> {
    let written = fields.number("written")?;
    if written.is_some_and(|time| time.unsigned_abs() > 1 << 46) {
        return Err(Problem::Bad("`written` is no time of our days".to_owned()));
    }
    Ok(written)
}
