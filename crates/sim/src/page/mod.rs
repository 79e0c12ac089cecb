//! The pages of a world: one document without anything from outside with the frames that it draws, and what its
//! controller and its Prometheus show.

mod film;
mod routes;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::Arc;

use http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tower::{Service as _, service_fn};

pub(crate) use film::Film;
use routes::PageRoutes;

use crate::socket;
use crate::world::pace::Gateway;

pub(crate) async fn serve(listener: TcpListener, film: Film, world: Gateway) -> Infallible {
    let routes = Arc::new(PageRoutes::new(film));
    let pages = service_fn(move |request: Request<Incoming>| {
        let (routes, mut world) = (Arc::clone(&routes), world.clone());
        async move {
            if !matches!(request.uri().path(), "/" | "/frames") {
                return world.call(request).await;
            }
            let (head, _unread) = request.into_parts();
            Ok(routes.answer(&head).map(BodyExt::boxed_unsync))
        }
    });
    socket::serve(listener, pages).await
}
