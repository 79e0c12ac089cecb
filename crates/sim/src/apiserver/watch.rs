//! Watches: changes as they come, from a version on.

use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::refusal::{ApiRefusal, Cause};
use super::request::{Ask, RequestTarget, ResponseForm};
use super::selector::Selector;
use super::server::Shared;
use super::state::State;
use super::store::StoredChange;
use super::versions::VersionFollower;
use super::{read, table, view};

const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
const LENGTH: Duration = Duration::from_mins(30);

pub(super) struct WatchStream {
    shared: Arc<Shared>,
    target: RequestTarget,
    selector: Selector,
    shape: ResponseForm,
    cursor: u64,
    bookmarks: bool,
    deadline: Instant,
    bookmark: Instant,
    changed: VersionFollower,
    opening: Vec<String>,
    over: bool,
}

impl WatchStream {
    pub(super) fn open(
        shared: &Arc<Shared>,
        state: &State,
        target: &RequestTarget,
        ask: &Ask,
        cut_after: Option<Duration>,
    ) -> Result<Self, ApiRefusal> {
        let initial = initial_events(ask)?;
        let mut target = target.clone();
        let mut selector = read::selector(ask)?;
        if let Some(name) = target.name.take() {
            selector = Selector::read("", &format!("metadata.name={name}"))?;
        }
        let asked = ask.number("resourceVersion")?.unwrap_or(0);
        let current = state.store.revision();
        let state_first = initial.unwrap_or(asked == 0);
        let length = ask.number("timeoutSeconds")?.filter(|length| *length > 0);
        let length = length.map_or(LENGTH, Duration::from_secs);
        let now = Instant::now();
        let mut watch = Self {
            shared: Arc::clone(shared),
            selector,
            shape: ask.shape(),
            cursor: if state_first || asked == 0 { current } else { asked },
            bookmarks: ask.flag("allowWatchBookmarks"),
            deadline: now + length.min(cut_after.unwrap_or(length)),
            bookmark: now + BOOKMARK_EVERY,
            changed: shared.versions.follow(&[&target.kind.stored_as]),
            opening: Vec::new(),
            over: false,
            target,
        };
        if state_first {
            watch.opening = watch.present(state);
        }
        if initial == Some(true) {
            watch.opening.push(watch.bookmark_of(current, true));
        }
        Ok(watch)
    }

    pub(super) fn lines(self) -> impl Stream<Item = Bytes> + Send {
        futures::stream::unfold(self, |mut watch| async move {
            let events = watch.next().await?;
            let mut text = String::new();
            for event in events {
                text.push_str(&event);
                text.push('\n');
            }
            Some((Bytes::from(text), watch))
        })
    }

    fn present(&self, state: &State) -> Vec<String> {
        let kind = &*self.target.kind;
        state
            .store
            .range(&kind.stored_as, self.target.namespace.as_deref())
            .map(|(_, stored)| view::shared(kind, stored))
            .filter(|object| self.selector.matches(object))
            .map(|object| self.event(state, "ADDED", object))
            .collect()
    }

    async fn next(&mut self) -> Option<Vec<String>> {
        if !self.opening.is_empty() {
            return Some(std::mem::take(&mut self.opening));
        }
        while !self.over {
            let events = self.news();
            if !events.is_empty() {
                return Some(events);
            }
            let until =
                if self.bookmarks { self.deadline.min(self.bookmark) } else { self.deadline };
            match timeout_at(until, self.changed.changed()).await {
                Ok(()) => {}
                Err(_elapsed) if Instant::now() >= self.deadline => return None,
                Err(_elapsed) => {
                    self.bookmark = Instant::now() + BOOKMARK_EVERY;
                    return Some(vec![self.bookmark_of(self.cursor, false)]);
                }
            }
        }
        None
    }

    fn news(&mut self) -> Vec<String> {
        let shared = Arc::clone(&self.shared);
        shared.with(|state| {
            let kind = &self.target.kind;
            let namespace = self.target.namespace.as_deref();
            let changes = state.store.changes(&kind.stored_as, namespace, self.cursor);
            let Some(changes) = changes else {
                self.over = true;
                let text = format!(
                    "too old resource version: {} ({})",
                    self.cursor,
                    state.store.revision()
                );
                return vec![line("ERROR", &ApiRefusal::expired(text).document())];
            };
            let events = changes.filter_map(|change| self.seen_event(state, change)).collect();
            self.cursor = self.cursor.max(state.store.revision());
            events
        })
    }

    /// What a change means to a watcher that sees only what the selector lets through.
    fn seen_event(&self, state: &State, change: &StoredChange) -> Option<String> {
        let kind = &*self.target.kind;
        let fits = |object: &Arc<Value>| self.selector.matches(&view::shared(kind, object));
        let before = change.before.as_ref().filter(|object| fits(object));
        let after = change.after.as_ref().filter(|object| fits(object));
        let (what, object) = match (before, after) {
            (None, Some(after)) => ("ADDED", view::shared(kind, after)),
            (Some(_), Some(after)) => ("MODIFIED", view::shared(kind, after)),
            (Some(before), None) => {
                let mut before = view::shown(kind, before);
                before["metadata"]["resourceVersion"] =
                    change.last["metadata"]["resourceVersion"].clone();
                ("DELETED", Arc::new(before))
            }
            (None, None) => return None,
        };
        Some(self.event(state, what, object))
    }

    fn event(&self, state: &State, kind: &str, object: Arc<Value>) -> String {
        line(kind, &state.in_shape(&self.target, self.shape, object))
    }

    fn bookmark_of(&self, revision: u64, initial: bool) -> String {
        let mut object = json!({"metadata": {
            "resourceVersion": revision.to_string(), "creationTimestamp": null,
        }});
        match self.shape {
            ResponseForm::Full => view::dress(&self.target.kind, &mut object),
            ResponseForm::Metadata => object = view::metadata_only(&object),
            ResponseForm::Table => {
                object = table::of(&self.target.kind, &[], &revision.to_string().into(), 0);
            }
        }
        if initial {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        line("BOOKMARK", &object)
    }
}

fn line(kind: &str, object: &Value) -> String {
    // A document always has a text.
    let object = serde_json::to_string(object).unwrap_or_default();
    format!(r#"{{"type":"{kind}","object":{object}}}"#)
}

const UNASKED: &str =
    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
const UNMATCHED: &str = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";

fn initial_events(ask: &Ask) -> Result<Option<bool>, ApiRefusal> {
    let how = ask.parameter("resourceVersionMatch");
    let forbid = |why: &str| {
        let cause = Cause::forbidden("resourceVersionMatch", why);
        Err(ApiRefusal::options("ListOptions", cause))
    };
    match (ask.parameter("sendInitialEvents"), how) {
        (None, None) => Ok(None),
        (None, Some(_)) => forbid(UNASKED),
        (Some(text), Some("NotOlderThan")) => Ok(Some(text == "true" || text == "1")),
        (Some(_), _) => forbid(UNMATCHED),
    }
}
