//! The events of a watch on a way that is disturbed.

use std::collections::VecDeque;
use std::pin::pin;

use allocations::Owner;
use futures::StreamExt;
use futures::future::{Either, select};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use serde_json::Value;

use super::fault::Api;
use super::line::{Line, Never};
use super::watches::Open;
use crate::sim::apiserver::Wire;

/// A watch that nobody hears of again once it has fallen silent.
struct Ailing {
    body: Wire,
    line: Line,
    /// What it watches.
    kind: String,
    ready: VecDeque<Bytes>,
    /// Whether the server has ended it.
    over: bool,
    /// The fault by which it tells nothing from the start: a server that stands still.
    mute: Option<usize>,
    /// Nothing where it tells nothing any more.
    open: Option<Open>,
}

/// The body of a watch as it arrives.
pub(super) fn ailing(body: Wire, line: Line, open: Open) -> Wire {
    let faults = line.ills.api();
    // A server that stands still tells nothing.
    let mut older = faults.iter().filter_map(|(id, fault, _)| match fault {
        Api::Older(_) => Some(*id),
        _ => None,
    });
    let mute = older.next();
    let ailing = Ailing {
        body,
        line,
        kind: open.plural().to_owned(),
        ready: VecDeque::new(),
        over: false,
        open: mute.is_none().then_some(open),
        mute,
    };
    let frames = futures::stream::unfold(ailing, |mut ailing| async move {
        let bytes = Owner::NOBODY.does(ailing.next()).await?;
        Some((Ok::<_, Never>(Frame::data(bytes)), ailing))
    });
    StreamBody::new(frames.boxed()).boxed_unsync()
}

impl Ailing {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(self.delivered(ready));
            }
            let mut bytes = self.told().await?;
            self.line.life.gate().await;
            if self.open.is_none() {
                self.mute.iter().for_each(|id| self.line.ills.hit(*id));
                std::future::pending::<()>().await;
            }
            let mut doubled = Vec::new();
            for (id, fault, _) in self.line.ills.api() {
                let hit = match fault {
                    // Nobody tells an open connection that its other end is out of reach.
                    Api::Silent | Api::Partition => {
                        self.line.ills.hit(id);
                        self.open = None;
                        return std::future::pending().await;
                    }
                    Api::Lapse if self.line.ills.holds(id) => {
                        self.open = None;
                        return std::future::pending().await;
                    }
                    Api::NoBookmarks => {
                        let kept = without_bookmarks(&bytes);
                        let hit = kept.len() != bytes.len();
                        bytes = kept;
                        hit
                    }
                    Api::Doubled => {
                        doubled.push(id);
                        false
                    }
                    Api::Delayed(_) | Api::Uneven(..) => match fault.delay(&self.kind) {
                        Some(time) => {
                            self.line.ills.within(id, time).await;
                            true
                        }
                        None => false,
                    },
                    Api::Coalesced(time) => {
                        let ills = self.line.ills.clone();
                        let all = self.gather(bytes, ills.within(id, time)).await;
                        bytes = coalesced(&String::from_utf8_lossy(&all));
                        bytes.len() < all.len()
                    }
                    _ => false,
                };
                if hit {
                    self.line.ills.hit(id);
                }
            }
            self.line.life.gate().await;
            if !bytes.is_empty() {
                // Twice is what is told after all.
                for id in doubled {
                    self.line.ills.hit(id);
                    self.ready.push_back(bytes.clone());
                }
                return Some(self.delivered(bytes));
            }
        }
    }

    fn delivered(&self, bytes: Bytes) -> Bytes {
        if let Some(open) = &self.open {
            open.heard(&String::from_utf8_lossy(&bytes));
        }
        bytes
    }

    /// What the server says next; nothing, once it has ended.
    async fn told(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let told = self.line.next(&mut self.body).await;
        self.over = told.is_none();
        let is_error = |bytes: &Bytes| bytes.starts_with(br#"{"type":"ERROR""#);
        if told.as_ref().is_some_and(is_error) {
            self.line.ills.expired();
        }
        told
    }

    /// Everything until then.
    async fn gather(&mut self, first: Bytes, until: impl Future<Output = ()>) -> Vec<u8> {
        let mut all = first.to_vec();
        let mut until = pin!(until);
        while let Either::Left((Some(more), _)) = select(pin!(self.told()), &mut until).await {
            all.extend_from_slice(&more);
        }
        all
    }
}

fn without_bookmarks(bytes: &Bytes) -> Bytes {
    let text = String::from_utf8_lossy(bytes);
    let mut kept = String::new();
    for line in text.lines() {
        if !line.contains("\"type\":\"BOOKMARK\"") {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    Bytes::from(kept)
}

/// The events without changes that a later change of the same object makes void.
fn coalesced(text: &str) -> Bytes {
    let identity = |line: &str| -> Option<(String, String)> {
        let event: Value = serde_json::from_str(line).ok()?;
        let word = |pointer: &str| Some(event.pointer(pointer)?.as_str()?.to_owned());
        Some((word("/type")?, word("/object/metadata/uid")?))
    };
    let lines: Vec<(&str, Option<(String, String)>)> =
        text.lines().map(|line| (line, identity(line))).collect();
    let mut kept = String::new();
    for (place, (line, identity)) in lines.iter().enumerate() {
        let next = identity.as_ref().and_then(|(_, uid)| {
            let later = lines.iter().skip(place + 1);
            later
                .filter_map(|(_, other)| other.as_ref())
                .find(|(_, other)| other == uid)
        });
        let is_change = |one: &Option<(String, String)>| {
            one.as_ref().is_some_and(|(kind, _)| kind == "MODIFIED")
        };
        let void = is_change(identity) && next.is_some_and(|(kind, _)| kind == "MODIFIED");
        if !void {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    Bytes::from(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, uid: &str, version: u64) -> String {
        let object = serde_json::json!({"metadata": {"uid": uid, "resourceVersion": version}});
        serde_json::json!({"type": kind, "object": object}).to_string() + "\n"
    }

    #[test]
    fn of_several_changes_the_last_is_told() {
        let told = [
            event("ADDED", "a", 1),
            event("MODIFIED", "a", 2),
            event("MODIFIED", "b", 3),
            event("MODIFIED", "a", 4),
            event("DELETED", "b", 5),
        ];
        let kept = coalesced(&told.concat());
        let expected = [&told[0], &told[2], &told[3], &told[4]];
        let expected: String = expected.into_iter().cloned().collect();
        assert_eq!(String::from_utf8_lossy(&kept), expected);
    }

    #[test]
    fn bookmarks_alone_are_left_out() {
        let told = Bytes::from(event("BOOKMARK", "", 1) + &event("ADDED", "a", 2));
        assert_eq!(
            without_bookmarks(&told),
            Bytes::from(event("ADDED", "a", 2))
        );
    }
}
