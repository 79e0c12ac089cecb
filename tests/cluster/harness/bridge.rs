//! A way to a server that can be cut: what a partition of the network does to one client.

use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

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

/// Passes bytes on to a server, until it is dropped.
pub(crate) struct Bridge {
    pub(crate) port: u16,
    way: Arc<watch::Sender<Way>>,
    task: JoinHandle<()>,
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Bridge {
    /// A way to a port of this machine.
    pub(crate) async fn to(port: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let own = listener.local_addr()?.port();
        let way = Arc::new(watch::Sender::new(Way::Open));
        let seen = Arc::clone(&way);
        let task = tokio::spawn(async move {
            // Dropped, and with it every connection, when the task is.
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(pass(socket, port, seen.subscribe()));
            }
        });
        Ok(Self {
            port: own,
            way,
            task,
        })
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

async fn pass(mut near: TcpStream, port: u16, mut way: watch::Receiver<Way>) {
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
                let Ok(mut far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else {
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
