use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use hyper::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::answer::{HttpResponse, plain};
use super::connection::{ConnectionConfig, Routes};
use super::server::{Connections, listen, serve};
use super::tls::Tls;

/// Everything is answered with a number.
struct Fixed;

impl Routes for Fixed {
    fn answer(&self, _head: &Parts) -> HttpResponse {
        plain(StatusCode::OK, "42")
    }
}

/// A server that lets everybody in, until it is dropped.
pub(super) struct Running {
    pub(super) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Running {
    async fn start() -> Self {
        Self::serving(Fixed, None).await
    }

    pub(super) async fn serving<R: Routes>(routes: R, tls: Option<Arc<Tls>>) -> Self {
        Self::with(ConnectionConfig { tls, authorizer: None, routes: Arc::new(routes) }).await
    }

    pub(super) async fn with<C: Connections>(connections: C) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = listen("METRICS_BIND_ADDRESS", &[any]).await.unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let never = serve(listener, connections).await;
            match never {}
        });
        Self { address, task }
    }

    /// Sends a text, and reads until the server ends the connection.
    pub(super) async fn send(&self, text: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // A server that ends a connection with unread bytes in it resets it.
        let _end = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test]
async fn one_request_is_answered_and_the_connection_ends() {
    let server = Running::start().await;
    let request = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    for text in [request.to_owned(), request.repeat(2)] {
        let answer = server.send(&text).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
        // The date of the answer may have these digits, too.
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        assert!(answer.ends_with("\r\n\r\n42\n"), "{answer}");
    }
}

#[tokio::test]
async fn a_body_without_end_is_not_read() {
    let server = Running::start().await;
    let head = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n";
    let answer = server.send(head).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

#[tokio::test]
async fn a_large_head_is_refused() {
    let server = Running::start().await;
    for (size, wanted) in [(7_000, "HTTP/1.1 200 OK"), (9_000, "HTTP/1.1 431 ")] {
        let filling = "a".repeat(size);
        let head = format!("GET / HTTP/1.1\r\nhost: x\r\nfilling: {filling}\r\n\r\n");
        let answer = server.send(&head).await;
        assert!(answer.starts_with(wanted), "{size}: {answer}");
    }
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let server = Running::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let mut answer = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut answer));
    drop(ended.await.unwrap());
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
}
