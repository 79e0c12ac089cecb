//! Bodies of requests, for the routes that read them: bounded in bytes, in time, and in what all
//! connections hold together.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body, Bytes};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Longest wait for a body, from the head of its request on.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of all bodies that one server holds at once: clients cannot use up the memory of the process.
const HELD_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the body is not complete after {} s", BODY_TIMEOUT.as_secs())]
    TooSlow,
    #[error("too many bodies are being read; send it again")]
    Busy,
    #[error("the body breaks off")]
    Broken,
}

impl BodyError {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

/// A whole body. Its share of the memory for bodies is free again when it is dropped.
#[derive(Debug, Default)]
pub(super) struct RequestBody {
    bytes: Vec<u8>,
    share: Option<OwnedSemaphorePermit>,
}

impl RequestBody {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn add(&mut self, piece: &[u8], held: &Arc<Semaphore>) -> Result<(), BodyError> {
        let count = u32::try_from(piece.len()).unwrap_or(u32::MAX);
        let Ok(more) = Arc::clone(held).try_acquire_many_owned(count) else {
            return Err(BodyError::Busy);
        };
        match &mut self.share {
            Some(share) => share.merge(more),
            None => self.share = Some(more),
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }
}

/// Reads the bodies of one server.
#[derive(Debug)]
pub struct BodyReader {
    largest: usize,
    free: Arc<Semaphore>,
}

impl BodyReader {
    pub fn new(largest: usize) -> Self {
        Self::holding(largest, HELD_BYTES)
    }

    fn holding(largest: usize, bytes: usize) -> Self {
        Self { largest, free: Arc::new(Semaphore::new(bytes)) }
    }

    pub(super) async fn read<B>(&self, body: B) -> Result<RequestBody, BodyError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        timeout(BODY_TIMEOUT, self.collect(body)).await.unwrap_or(Err(BodyError::TooSlow))
    }

    async fn collect<B>(&self, mut body: B) -> Result<RequestBody, BodyError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let too_large = BodyError::TooLarge(self.largest);
        // What announces too much is refused before it is sent.
        let announced = usize::try_from(body.size_hint().lower());
        if announced.is_ok_and(|announced| announced > self.largest) {
            return Err(too_large);
        }
        let mut whole = RequestBody::default();
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                return Err(BodyError::Broken);
            };
            let Ok(piece) = frame.into_data() else {
                continue;
            };
            if whole.bytes.len() + piece.len() > self.largest {
                return Err(too_large);
            }
            whole.add(&piece, &self.free)?;
        }
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use http_body_util::Full;
    use hyper::body::{Body, Bytes, Frame};
    use tokio::time::Instant;

    use super::{BodyError, BodyReader};

    /// A body in pieces; one without an end stays open after the last.
    struct Pieces {
        left: usize,
        piece: Bytes,
        ends: bool,
    }

    impl Pieces {
        fn new(count: usize, size: usize, ends: bool) -> Self {
            Self { left: count, piece: Bytes::from(vec![b'a'; size]), ends }
        }
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.left.checked_sub(1) {
                Some(left) => {
                    self.left = left;
                    Poll::Ready(Some(Ok(Frame::data(self.piece.clone()))))
                }
                None if self.ends => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    #[tokio::test]
    async fn a_body_of_exactly_the_limit_is_read_and_one_more_byte_is_not() {
        let reader = BodyReader::new(10);
        for (count, size, wanted) in [
            (0, 0, Ok(0)),
            (5, 2, Ok(10)),
            (11, 1, Err(BodyError::TooLarge(10))),
            (1, 11, Err(BodyError::TooLarge(10))),
        ] {
            let body = reader.read(Pieces::new(count, size, true)).await;
            assert_eq!(body.map(|body| body.bytes().len()), wanted);
        }
        let announced = Full::new(Bytes::from_static(b"0123456789a"));
        let refused = reader.read(announced).await.map(drop);
        assert_eq!(refused, Err(BodyError::TooLarge(10)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_is_given_up() {
        let began = Instant::now();
        let reader = BodyReader::new(10);
        let given_up = reader.read(Pieces::new(3, 1, false)).await.map(drop);
        assert_eq!(given_up, Err(BodyError::TooSlow));
        assert_eq!(began.elapsed(), Duration::from_secs(5));
    }

    #[tokio::test]
    async fn bodies_share_memory_and_give_it_back() {
        let reader = BodyReader::holding(100, 10);
        let body = async |count| reader.read(Pieces::new(count, 1, true)).await;
        let first = body(6).await.unwrap();
        assert_eq!(reader.free.available_permits(), 4);
        assert_eq!(body(5).await.map(drop), Err(BodyError::Busy));
        assert_eq!(reader.free.available_permits(), 4);
        let second = body(4).await.unwrap();
        assert_eq!(reader.free.available_permits(), 0);
        drop((first, second));
        assert_eq!(body(10).await.map(|body| body.bytes().len()), Ok(10));
    }
}
