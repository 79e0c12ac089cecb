//! The pages of a world: one document without anything from outside with the frames that it draws, and what its
//! controller and its Prometheus show.

mod film;
mod routes;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Bytes, Incoming};
use tokio::net::TcpListener;
use tower::Service;

pub(crate) use film::Film;
use routes::PageRoutes;

use crate::socket;
use crate::world::pace::Gateway;

pub(crate) async fn serve(listener: TcpListener, film: Film, world: Gateway) -> Infallible {
    let routes = Arc::new(PageRoutes::new(film));
    socket::serve(listener, Pages { routes, world }).await
}

#[derive(Debug, Clone)]
struct Pages {
    routes: Arc<PageRoutes>,
    world: Gateway,
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

impl Service<Request<Incoming>> for Pages {
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        if !matches!(request.uri().path(), "/" | "/frames") {
            return self.world.call(request);
        }
        let (head, _unread) = request.into_parts();
        let answer = self.routes.answer(&head).map(BodyExt::boxed_unsync);
        Box::pin(std::future::ready(Ok(answer)))
    }
}
