//! Listening, connections with limits, and an end in good order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use unflake_history::store::StoreError;

use crate::api::live;
use crate::app::{App, Options};
use crate::routes::router;

/// How long a client may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(10);

/// How long requests that are under way may take when the server is to end.
const DRAIN: Duration = Duration::from_secs(30);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Others could reach it, and nobody would be asked for a token.
    #[error("{listen} can be reached from other machines, and there are no tokens")]
    NeedsTokens {
        /// The address.
        listen: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {listen}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The system gives no threads or signals.
    #[error("cannot start the server")]
    Start(#[source] std::io::Error),
    /// The history cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Serves until SIGTERM or Ctrl-C, then finishes what is under way. `ready` hears the address, which has a
/// port even if 0 was asked for.
pub fn serve(
    listen: SocketAddr,
    options: Options,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let has_tokens = options
        .tokens
        .as_ref()
        .is_some_and(|file| !file.tokens().is_empty());
    if !listen.ip().is_loopback() && !has_tokens {
        return Err(ServeError::NeedsTokens { listen });
    }
    let app = Arc::new(App::open(options)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Start)?;
    let result = runtime.block_on(run(Arc::clone(&app), listen, ready));
    app.writer.close();
    // What still waits for a client has been waited for long enough.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn run(
    app: Arc<App>,
    listen: SocketAddr,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let trouble = |source| ServeError::Listen { listen, source };
    let listener = TcpListener::bind(listen).await.map_err(trouble)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Start)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Start)?;
    tokio::spawn(live::watch(Arc::clone(&app)));
    let service = TowerToHyperService::new(router(Arc::clone(&app)));
    let places = Arc::new(Semaphore::new(app.options.limits.connections));
    let graceful = GracefulShutdown::new();
    ready(listener.local_addr().map_err(trouble)?);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            next = next => next,
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        };
        let Ok((stream, _)) = accepted else {
            // Too many open files, or a client that is gone already: others may do better.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(TokioIo::new(stream), service.clone());
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A client that hangs up or talks nonsense has ended its own connection.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    app.drain();
    tokio::select! {
        () = graceful.shutdown() => {}
        () = tokio::time::sleep(DRAIN) => {}
    }
    Ok(())
}
