//! A stream that says when there is something new, for pages that are left open.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::BroadcastStream;

use crate::app::App;
use crate::http::problem::Problem;

/// So many may listen at once.
const LISTENERS: u64 = 500;

/// How often the store is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// One who listens, counted as long as they do.
struct Listener(Arc<App>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.metrics.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) async fn listen(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let before = app.metrics.listeners.fetch_add(1, Ordering::Relaxed);
    let listener = Listener(Arc::clone(&app));
    if before >= LISTENERS {
        return Err(Problem::Busy("too many listen already".to_owned()));
    }
    let events = BroadcastStream::new(app.grown.subscribe());
    let events = events
        .take_while(move |_| !listener.0.is_draining.load(Ordering::SeqCst))
        .map(|_| Ok::<Event, Infallible>(Event::default().event("grown").data("1")));
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
        .into_response())
}

/// Looks at the store now and then, and tells those who listen.
pub(crate) async fn watch(app: Arc<App>) {
    let mut rested = Instant::now();
    while !app.is_draining.load(Ordering::SeqCst) {
        tokio::time::sleep(LOOK).await;
        let looking = Arc::clone(&app);
        let has_grown = tokio::task::spawn_blocking(move || looking.keep_up(rested)).await;
        // Trouble with the store is told to whoever asks for a page.
        if matches!(has_grown, Ok(Ok(true))) {
            rested = Instant::now();
            // Without listeners there is nobody to tell.
            let _ = app.grown.send(());
        }
    }
}
