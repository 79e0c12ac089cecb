//! A world next to the real one: on a thread of its own, in virtual time that is held back to a multiple
//! of real time, and reached through channels.
//!
//! Paused time leaps as soon as nothing is left to do, and would leap past every socket. So the paused
//! runtime has none; a task blocks its thread while virtual time is ahead, and requests from outside
//! come through [`Gateway`] and wake it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::task::{Context, Poll};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Body, Bytes, Frame as Chunk};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;
use tower::ServiceExt;

use crate::hpa::SYNC;
use crate::lab::{PolicyChoice, Seats};
use crate::real_clock::real;
use crate::threads::paused;
use crate::world::{Frame, Scenario, World};
use wva_base::moment::WallTime;
use wva_supervise::Clock;

/// Virtual time that passes between two looks at the real clock, at most.
const STRIDE: Duration = Duration::from_millis(250);
/// Longest sleep of the thread: how soon it notices that it should stop.
const NAP: Duration = Duration::from_millis(50);
/// How far the world may fall behind before it no longer tries to catch up.
const PATIENCE: Duration = Duration::from_secs(2);
const BODY_BYTES: usize = 3 * 1024 * 1024;
/// Chunks of an answer that wait for a slow reader.
const CHUNKS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Speed {
    Times(f64),
    Unbounded,
}

#[derive(Debug, Clone)]
pub(crate) struct Play {
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    pub(crate) date: WallTime,
    pub(crate) speed: Speed,
    /// How long, in virtual time; without end if not given.
    pub(crate) duration: Option<Duration>,
    /// Virtual time at the start that passes as fast as it can.
    pub(crate) warm: Duration,
    /// What decides instead of the controller.
    pub(crate) policy: Option<PolicyChoice>,
}

impl Play {
    pub(crate) fn under(&self, policy: PolicyChoice) -> Self {
        Self { policy: Some(policy), ..self.clone() }
    }
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    ApiServer,
    Pages,
}

struct Call {
    to: Destination,
    request: Request<Bytes>,
    /// The real date.
    asked: WallTime,
    reply: oneshot::Sender<Answer>,
}

/// The API server of a world on another thread, as a service.
#[derive(Debug, Clone)]
pub(crate) struct Gateway {
    calls: Sender<Call>,
    to: Destination,
}

impl Gateway {
    /// The way to the pages of the world in place of its API server.
    pub(crate) fn to_pages(&self) -> Self {
        Self { to: Destination::Pages, ..self.clone() }
    }
}

#[derive(Debug)]
pub(crate) struct Show {
    pub(crate) frames: watch::Receiver<Arc<Frame>>,
    pub(crate) gateway: Gateway,
    stop: Arc<AtomicBool>,
    ended: watch::Receiver<bool>,
    thread: JoinHandle<()>,
}

type Begun = Result<watch::Receiver<Arc<Frame>>, String>;

/// What the thread of a world holds of those who watch it.
struct Stage {
    calls: Receiver<Call>,
    stop: Arc<AtomicBool>,
    over: watch::Sender<bool>,
}

fn unstarted(error: &std::io::Error) -> String {
    format!("the thread of the world cannot start: {error}; close other programs and try again")
}

impl Show {
    pub(crate) async fn begin(play: Play) -> Result<Self, String> {
        let (calls, inbox) = channel();
        let (begun, stands) = oneshot::channel();
        let (over, ended) = watch::channel(false);
        let stop = Arc::new(AtomicBool::new(false));
        let stage = Stage { calls: inbox, stop: Arc::clone(&stop), over };
        let thread = Builder::new()
            .name("world".to_owned())
            .spawn(move || stage.play(play, begun))
            .map_err(|error| unstarted(&error))?;
        let frames = stands.await.map_err(|_gone| {
            "the thread of the world ended early; run again with RUST_BACKTRACE=1".to_owned()
        })??;
        Ok(Self {
            frames,
            gateway: Gateway { calls, to: Destination::ApiServer },
            stop,
            ended,
            thread,
        })
    }

    pub(crate) async fn over(&self) {
        let mut ended = self.ended.clone();
        // An error means that the thread is gone.
        drop(ended.wait_for(|ended| *ended).await);
    }

    pub(crate) async fn end(self) -> Arc<Frame> {
        self.stop.store(true, Ordering::Relaxed);
        self.over().await;
        let frame = Arc::clone(&self.frames.borrow());
        if self.thread.join().is_err() {
            tracing::error!("the thread of the world has panicked");
        }
        frame
    }
}

impl Stage {
    fn play(self, play: Play, begun: oneshot::Sender<Begun>) {
        let over = self.over.clone();
        match paused() {
            Ok(runtime) => runtime.block_on(self.perform(play, begun)),
            // No caller waits any more if this cannot be sent.
            Err(error) => drop(begun.send(Err(unstarted(&error)))),
        }
        over.send_replace(true);
    }

    async fn perform(self, play: Play, begun: oneshot::Sender<Begun>) {
        let (scenario, seed, date) = (&play.scenario, play.seed, play.date);
        let world = match &play.policy {
            None => World::arranged(scenario, seed, date, None, SYNC, true).await,
            Some(policy) => Seats::world(policy, scenario, seed, date).await,
        };
        let world = match world {
            Ok(world) => world,
            Err(error) => return drop(begun.send(Err(error))),
        };
        if begun.send(Ok(world.frames.clone())).is_ok() {
            self.pace(&play, &world).await;
        }
        world.end().await;
    }

    /// Lets virtual time pass no faster than it should, until the end.
    async fn pace(&self, play: &Play, world: &World) {
        let mut begun = real();
        let mut offset = Duration::ZERO;
        while !self.stop.load(Ordering::Relaxed) {
            let now = world.clock.now();
            if play.duration.is_some_and(|end| now.monotonic >= end) {
                return;
            }
            let Speed::Times(speed) = play.speed else {
                self.take_calls(world);
                sleep(STRIDE).await;
                continue;
            };
            if now.monotonic < play.warm {
                self.take_calls(world);
                sleep(STRIDE).await;
                (begun, offset) = (real(), world.clock.now().monotonic);
                continue;
            }
            let due = offset + begun.elapsed().mul_f64(speed);
            if due > now.monotonic + PATIENCE.mul_f64(speed.max(1.0)) {
                // A machine that slept, or is too slow: the world goes on from where it is.
                (begun, offset) = (real(), now.monotonic);
            }
            if now.monotonic < due {
                self.take_calls(world);
                sleep(STRIDE.min(due.saturating_sub(now.monotonic))).await;
                continue;
            }
            let ahead = now.monotonic.saturating_sub(due).div_f64(speed);
            let nap = ahead.clamp(Duration::from_millis(1), NAP);
            match self.calls.recv_timeout(nap) {
                Ok(call) => {
                    answer(world, call);
                    self.take_calls(world);
                    // A millisecond passes when everything that the calls set off is done.
                    sleep(Duration::from_millis(1)).await;
                }
                Err(RecvTimeoutError::Timeout) => {}
                // No request can come any more; the spectators may still look.
                Err(RecvTimeoutError::Disconnected) => sleep(Duration::from_millis(1)).await,
            }
        }
    }

    fn take_calls(&self, world: &World) {
        while let Ok(call) = self.calls.try_recv() {
            answer(world, call);
        }
    }
}

/// Answers a call on this runtime, and hands the body over piece by piece.
fn answer(world: &World, call: Call) {
    let (head, body) = call.request.into_parts();
    if call.to == Destination::Pages {
        let page = world.page(&head, &body).map(BodyExt::boxed_unsync);
        // Fails where the client is gone.
        return drop(call.reply.send(page));
    }
    let server = world.server.read_at(call.asked);
    let request = Request::from_parts(head, Full::new(body));
    tokio::spawn(async move {
        let Ok(answer) = server.oneshot(request).await;
        let (head, mut body) = answer.into_parts();
        let (sender, mut receiver) = mpsc::channel::<Chunk<Bytes>>(CHUNKS);
        let chunks = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
        let chunks = futures::StreamExt::map(chunks, Ok::<_, Infallible>);
        let whole = StreamBody::new(chunks).boxed_unsync();
        if call.reply.send(Response::from_parts(head, whole)).is_err() {
            return;
        }
        while let Some(Ok(chunk)) = body.frame().await {
            if sender.send(chunk).await.is_err() {
                return;
            }
        }
    });
}

impl<B> tower::Service<Request<B>> for Gateway
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { calls, to } = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let Ok(body) = Limited::new(body, BODY_BYTES).collect().await else {
                return Ok(refuse(StatusCode::PAYLOAD_TOO_LARGE));
            };
            let request = Request::from_parts(head, body.to_bytes());
            let (reply, replied) = oneshot::channel();
            let call = Call { to, request, asked: Clock::real().now().wall, reply };
            if calls.send(call).is_err() {
                return Ok(refuse(StatusCode::SERVICE_UNAVAILABLE));
            }
            let answer = replied.await;
            Ok(answer.unwrap_or_else(|_gone| refuse(StatusCode::SERVICE_UNAVAILABLE)))
        })
    }
}

fn refuse(status: StatusCode) -> Answer {
    let mut refusal = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *refusal.status_mut() = status;
    refusal
}
