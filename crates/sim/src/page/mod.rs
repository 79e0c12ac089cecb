//! The page of a world: one document without anything from outside, and the frames that it draws.

mod film;
mod routes;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::Arc;

use tokio::net::TcpListener;

pub(crate) use film::Film;
use routes::PageRoutes;

use wva::serve::connection::ConnectionConfig;
use wva::serve::server;

/// Serves the page of a film until dropped. Everybody who reaches the socket may look; nobody can
/// change anything.
pub(crate) async fn serve(listener: TcpListener, film: Film) -> Infallible {
    let config = ConnectionConfig {
        tls: None,
        authorizer: None,
        routes: Arc::new(PageRoutes::new(film)),
    };
    server::serve(listener, config).await
}
