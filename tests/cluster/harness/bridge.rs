//! A way to servers that can be cut: what a Service, and a partition of the network, do to clients.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::background::Background;
use super::fault::Result;

/// Whether anything comes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Open,
    /// Connections that exist are broken off, and new ones are closed at once.
    Cut,
    /// Connections are kept, and nothing comes through.
    Silent,
}

/// The servers behind a bridge, by port; each connection goes to the next one that takes it.
#[derive(Default)]
struct Backends {
    ports: Mutex<Vec<u16>>,
    turn: AtomicUsize,
}

impl Backends {
    async fn connect(&self) -> Option<TcpStream> {
        let mut ports = self.ports.lock().unwrap().clone();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let first = turn % ports.len().max(1);
        ports.rotate_left(first);
        for port in ports {
            if let Ok(stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
                return Some(stream);
            }
        }
        None
    }
}

/// Passes bytes on to servers, until it is dropped.
pub(crate) struct Bridge {
    _task: Background,
    pub(crate) port: u16,
    way: Arc<watch::Sender<Way>>,
    backends: Arc<Backends>,
}

impl Bridge {
    /// A way to a port of this machine.
    pub(crate) async fn to(port: u16) -> Result<Self> {
        let bridge = Self::nowhere().await?;
        bridge.leads_to(&[port]);
        Ok(bridge)
    }

    /// A way that leads nowhere yet.
    pub(crate) async fn nowhere() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let own = listener.local_addr()?.port();
        let way = Arc::new(watch::Sender::new(Way::Open));
        let seen = Arc::clone(&way);
        let backends = Arc::<Backends>::default();
        let behind = Arc::clone(&backends);
        let task = Background::start(async move {
            // Dropped, and with it every connection, when the task is.
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(pass(socket, Arc::clone(&behind), seen.subscribe()));
            }
        });
        Ok(Self { _task: task, port: own, way, backends })
    }

    /// New connections go to these ports.
    pub(crate) fn leads_to(&self, ports: &[u16]) {
        *self.backends.ports.lock().unwrap() = ports.to_vec();
    }

    pub(crate) fn cut(&self) {
        self.way.send_replace(Way::Cut);
    }

    pub(crate) fn heal(&self) {
        self.way.send_replace(Way::Open);
    }

    pub(crate) fn silence(&self) {
        self.way.send_replace(Way::Silent);
    }
}

async fn pass(mut near: TcpStream, backends: Arc<Backends>, mut way: watch::Receiver<Way>) {
    loop {
        let now = *way.borrow_and_update();
        match now {
            Way::Cut => return,
            Way::Silent => {
                if way.changed().await.is_err() {
                    return;
                }
                // What was in flight is lost; a client that waits begins anew.
                return;
            }
            Way::Open => {
                let Some(mut far) = backends.connect().await else {
                    return;
                };
                let both = std::pin::pin!(copy_bidirectional(&mut near, &mut far));
                let changed = std::pin::pin!(way.changed());
                if let futures::future::Either::Left(_) =
                    futures::future::select(both, changed).await
                {
                    return;
                }
            }
        }
    }
}
