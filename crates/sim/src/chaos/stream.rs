//! The events of a watch on a way that is disturbed; and which watches of a process are live, that is open and not
//! fallen silent, and what they have delivered.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use allocations::Owner;
use futures::StreamExt;
use futures::future::{Either, select};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use serde_json::Value;

use super::api_server_proxy::ApiServerProxy;
use super::fault::Api;
use crate::apiserver::Wire;
use crate::threads::locked;

struct Ailing {
    body: Wire,
    line: ApiServerProxy,
    kind: String,
    ready: VecDeque<Bytes>,
    over: bool,
    /// The fault by which it delivers nothing from the start: a server that stands still.
    mute: Option<usize>,
    /// Nothing where it delivers nothing any more.
    open: Option<Open>,
}

pub(super) fn ailing(body: Wire, line: ApiServerProxy, open: Open) -> Wire {
    let faults = line.ills.api();
    // A server that stands still delivers nothing.
    let mut older = faults.iter().filter_map(|(id, fault, _)| match fault {
        Api::Older(_) => Some(*id),
        _ => None,
    });
    let mute = older.next();
    let ailing = Ailing {
        body,
        line,
        kind: open.plural.clone(),
        ready: VecDeque::new(),
        over: false,
        open: mute.is_none().then_some(open),
        mute,
    };
    let frames = futures::stream::unfold(ailing, |mut ailing| async move {
        let bytes = Owner::NONE.does(ailing.next()).await?;
        Some((Ok::<_, Infallible>(Frame::data(bytes)), ailing))
    });
    StreamBody::new(frames.boxed()).boxed_unsync()
}

impl Ailing {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(self.delivered(ready));
            }
            let mut bytes = self.receive().await?;
            self.line.life.gate().await;
            if self.open.is_none() {
                self.mute.iter().for_each(|id| self.line.ills.hit(*id));
                std::future::pending::<()>().await;
            }
            let mut doubled = Vec::new();
            for (id, fault, _) in self.line.ills.api() {
                let hit = match fault {
                    // An open connection does not notice that its other end is out of reach.
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
                // What is delivered after all comes twice.
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
            open.deliver(&String::from_utf8_lossy(&bytes));
        }
        bytes
    }

    async fn receive(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let received = self.line.next(&mut self.body).await;
        self.over = received.is_none();
        let is_error = |bytes: &Bytes| bytes.starts_with(br#"{"type":"ERROR""#);
        if received.as_ref().is_some_and(is_error) {
            self.line.ills.hit_newest(Api::Compact);
        }
        received
    }

    async fn gather(&mut self, first: Bytes, until: impl Future<Output = ()>) -> Vec<u8> {
        let mut all = first.to_vec();
        let mut until = pin!(until);
        while let Either::Left((Some(more), _)) = select(pin!(self.receive()), &mut until).await {
            all.extend_from_slice(&more);
        }
        all
    }
}

fn without_bookmarks(bytes: &Bytes) -> Bytes {
    let text = String::from_utf8_lossy(bytes);
    let kept = text.lines().filter(|line| !line.contains("\"type\":\"BOOKMARK\""));
    let kept = kept.flat_map(|line| [line, "\n"]);
    Bytes::from(kept.collect::<String>())
}

/// The events as a server that has fallen behind sends them: of what happened to an object one after the other only
/// the result, in the place of the last, so that versions ascend.
fn coalesced(text: &str) -> Bytes {
    let mut sent: Vec<String> = Vec::new();
    // By object: the place of the event that was sent last, and of which type it is.
    let mut last: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for line in text.lines() {
        let mut line = format!("{line}\n");
        let mut event: Value = serde_json::from_str(&line).unwrap_or_default();
        let word = |pointer: &str| Some(event.pointer(pointer)?.as_str()?.to_owned());
        let identity = word("/type").zip(word("/object/metadata/uid"));
        if let Some((mut kind, uid)) = identity {
            let before = last.get(&uid);
            let folded = before.and_then(|(place, first)| Some((*place, folded(first, &kind)?)));
            if let Some((place, folded_as)) = folded {
                sent.get_mut(place).into_iter().for_each(String::clear);
                if kind != folded_as
                    && let Some(known) = event.get_mut("type")
                {
                    *known = Value::from(folded_as);
                    line = format!("{event}\n");
                    folded_as.clone_into(&mut kind);
                }
            }
            last.insert(uid, (sent.len(), kind));
        }
        sent.push(line);
    }
    Bytes::from(sent.concat())
}

/// The type of one event that stands for two of one object. What came and went again is sent as gone, and not
/// left out: who watches may have it from a list that is newer than where the watch began.
fn folded(first: &str, then: &str) -> Option<&'static str> {
    match (first, then) {
        ("ADDED", "MODIFIED") => Some("ADDED"),
        ("MODIFIED", "MODIFIED") => Some("MODIFIED"),
        ("ADDED" | "MODIFIED", "DELETED") => Some("DELETED"),
        _ => None,
    }
}

/// The open watches of one process, by the plural of what they watch. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Watches(Arc<Mutex<BTreeMap<String, Kind>>>);

#[derive(Debug, Default)]
struct Kind {
    open: u64,
    /// The newest version that a watch has delivered, or a list before it.
    newest: u64,
}

#[derive(Debug)]
pub(super) struct Open {
    of: Watches,
    pub(super) plural: String,
}

impl Watches {
    /// A watch at this path begins. One of some objects alone says nothing of all of them.
    pub(super) fn open(&self, path: &str, query: &str) -> Open {
        let plural = path.rsplit('/').next().unwrap_or_default();
        let plural = if query.contains("fieldSelector=") {
            format!("{plural} of a selection")
        } else {
            plural.to_owned()
        };
        locked(&self.0).entry(plural.clone()).or_default().open += 1;
        let open = Open { of: self.clone(), plural };
        open.reach(number_after(query, "resourceVersion="));
        open
    }

    pub(super) fn newest(&self, plural: &str) -> u64 {
        locked(&self.0).get(plural).map_or(0, |kind| kind.newest)
    }

    pub(super) fn live(&self, plurals: &[&str]) -> bool {
        let table = locked(&self.0);
        let watched = |plural: &&str| table.get(*plural).is_some_and(|kind| kind.open > 0);
        plurals.iter().all(watched)
    }
}

impl Open {
    pub(super) fn deliver(&self, events: &str) {
        let last = events.lines().next_back().unwrap_or_default();
        self.reach(number_after(last, "\"resourceVersion\":\""));
    }

    fn reach(&self, version: Option<u64>) {
        let mut table = locked(&self.of.0);
        if let (Some(kind), Some(version)) = (table.get_mut(&self.plural), version) {
            kind.newest = kind.newest.max(version);
        }
    }
}

fn number_after(text: &str, words: &str) -> Option<u64> {
    let (_, rest) = text.split_once(words)?;
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(kind) = locked(&self.of.0).get_mut(&self.plural) {
            kind.open = kind.open.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, uid: &str, version: u64) -> String {
        let object = serde_json::json!({"metadata": {"uid": uid, "resourceVersion": version}});
        serde_json::json!({"type": kind, "object": object}).to_string() + "\n"
    }

    fn sent(events: &[String]) -> Vec<String> {
        let kept = coalesced(&events.concat());
        let kept = String::from_utf8_lossy(&kept);
        kept.lines().map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn of_several_changes_the_result_is_delivered() {
        let of = |kinds: &[&str]| -> Vec<String> {
            let events = kinds.iter().zip(1..);
            let events: Vec<String> = events.map(|(kind, at)| event(kind, "a", at)).collect();
            sent(&events)
        };
        for kinds in [&["ADDED"][..], &["MODIFIED"], &["DELETED"]] {
            assert_eq!(of(kinds), [event(kinds[0], "a", 1)]);
        }
        assert_eq!(of(&["ADDED", "MODIFIED"]), [event("ADDED", "a", 2)]);
        assert_eq!(of(&["MODIFIED", "MODIFIED"]), [event("MODIFIED", "a", 2)]);
        assert_eq!(of(&["MODIFIED", "DELETED"]), [event("DELETED", "a", 2)]);
        assert_eq!(of(&["ADDED", "DELETED"]), [event("DELETED", "a", 2)]);
        let all = ["ADDED", "MODIFIED", "MODIFIED", "DELETED"];
        assert_eq!(of(&all[..3]), [event("ADDED", "a", 3)]);
        assert_eq!(of(&all), [event("DELETED", "a", 4)]);
        // Of a selection what has left it comes again.
        let again = ["MODIFIED", "DELETED", "ADDED", "MODIFIED"];
        let expected = [event("DELETED", "a", 2), event("ADDED", "a", 4)];
        assert_eq!(of(&again), expected);
    }

    #[test]
    fn others_keep_their_events_and_all_their_order() {
        let events = [
            event("ADDED", "a", 1),
            event("MODIFIED", "b", 2),
            event("BOOKMARK", "", 3),
            event("MODIFIED", "a", 4),
            event("DELETED", "c", 5),
            "{\"type\":\"ERROR\"".to_owned() + "\n",
        ];
        let expected = [
            events[1].clone(),
            events[2].clone(),
            event("ADDED", "a", 4),
            events[4].clone(),
            events[5].clone(),
        ];
        assert_eq!(sent(&events), expected);
    }

    #[test]
    fn a_kind_is_followed_as_long_as_one_watch_of_it_is_open() {
        let watches = Watches::default();
        let _bound = watches.open("/api/v1/pods", "fieldSelector=spec.nodeName!=");
        assert!(!watches.live(&["pods"]));
        let one = watches.open("/api/v1/pods", "watch=true");
        let other = watches.open("/api/v1/namespaces/n/pods", "");
        assert!(watches.live(&["pods"]));
        assert!(!watches.live(&["pods", "nodes"]));
        drop(one);
        assert!(watches.live(&["pods"]));
        drop(other);
        assert!(!watches.live(&["pods"]));
    }

    #[test]
    fn a_kind_is_known_up_to_the_newest_version_of_any_of_its_watches() {
        let watches = Watches::default();
        assert_eq!(watches.newest("pods"), 0);
        let one = watches.open("/api/v1/pods", "watch=true&resourceVersion=17");
        assert_eq!(watches.newest("pods"), 17);
        let event =
            |version: u64| format!("{{\"metadata\":{{\"resourceVersion\":\"{version}\"}}}}\n");
        one.deliver(&(event(19) + &event(23)));
        assert_eq!(watches.newest("pods"), 23);
        let _older = watches.open("/api/v1/pods", "resourceVersion=5");
        assert_eq!((watches.newest("pods"), watches.newest("nodes")), (23, 0));
    }
}
