//! What the trace tells beside writes, plans, roles and faults: who leads, what was refused, pods that come and
//! go, and who scales.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use allocations::Owner;
use futures::future::select;
use serde_json::Value;
use tokio::time::sleep;

use super::check::claims::Sent;
use super::trace::Trace;
use crate::apiserver::Insider;
use crate::workloads::object::Object;
use crate::world::controller::ControllerView;
use wva::state::claim::ClaimDuration;

/// Whatever may have replicas, by resource, and pods first.
const FOLLOWED: [&str; 5] = [
    "pods.",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "leaderworkersets.leaderworkerset.x-k8s.io",
];

/// Writes of one kind that one process makes within a second and the last lines tell, of as many as there are objects.
const TOLD: u32 = 5;

impl Trace {
    /// A process writes something. That who leads renews its lease is no news, nor is that what happens to many
    /// objects at once happens to another one of them.
    pub(super) fn written(&self, place: usize, sent: &Sent<'_>, leads: bool) {
        let Sent {
            method, path, body, ..
        } = *sent;
        let who = format!("c{place}");
        let text = format!("{method:<6} {}", short(path));
        if leads && path.contains("/leases/") {
            self.hum(&who, "renews", &text);
            return;
        }
        let (kind, text) = if path.ends_with("/events") {
            let (reason, name) = about(body);
            (
                format!("{who} {reason}"),
                format!("{text} {reason} of {name}"),
            )
        } else {
            (format!("{who} {method} {}", of_kind(path)), text)
        };
        if self.counts(&kind) > TOLD {
            self.hum(&who, "write", &text);
        } else {
            self.note(&who, "write", &text);
        }
    }

    /// A process reads something, which changes nothing.
    pub(super) fn read(&self, place: usize, sent: &Sent<'_>) {
        let text = format!("{:<6} {}?{}", sent.method, sent.path, sent.query);
        self.hum(&format!("c{place}"), "reads", &text);
    }
}

/// A path without group and version.
pub(super) fn short(path: &str) -> &str {
    path.rsplit("/namespaces/").next().unwrap_or(path)
}

/// The same without the name of the object: `llm-d/pods/a/status` is of `pods/status`.
fn of_kind(path: &str) -> String {
    let mut parts = short(path).split('/').skip(1);
    let (plural, name) = (parts.next(), parts.next());
    let plural = plural.filter(|_| name.is_some()).unwrap_or(path);
    let parts: Vec<&str> = std::iter::once(plural).chain(parts).collect();
    parts.join("/")
}

fn about(event: &[u8]) -> (String, String) {
    let event: Value = serde_json::from_slice(event).unwrap_or_default();
    let word = |pointer: &str| {
        let word = event.pointer(pointer).and_then(Value::as_str);
        word.unwrap_or_default().to_owned()
    };
    (word("/reason"), word("/regarding/name"))
}

/// Requests of one process that came to nothing. Of equal ones the first, the tenth, the hundredth and so on are
/// among the last lines, so that one that is made again and again does not push everything else out of them. Clones
/// share it.
#[derive(Debug, Clone)]
pub(super) struct Misses {
    trace: Trace,
    who: String,
    counts: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Misses {
    pub(super) fn new(trace: Trace, place: usize) -> Self {
        Self {
            trace,
            who: format!("c{place}"),
            counts: Arc::default(),
        }
    }

    /// A request that failed, why, and by which faults; by none of ours if there are none.
    pub(super) fn note(&self, request: &str, why: &str, by: &[usize]) {
        // Nothing of the trace is held by who asked.
        let _scope = Owner::NOBODY.enter();
        let by: Vec<String> = by.iter().map(|id| format!("#{id}")).collect();
        let text = if by.is_empty() {
            format!("{request}: {why}")
        } else {
            format!("{request}: {why} by {}", by.join(" "))
        };
        let times = self.count(&text);
        if times == 1 {
            self.trace.note(&self.who, "fails", &text);
        } else if times == 10_u64.pow(times.ilog10()) {
            let text = format!("{text}, for the {times}th time");
            self.trace.note(&self.who, "fails", &text);
        } else {
            self.trace.hum(&self.who, "fails", &text);
        }
    }

    fn count(&self, text: &str) -> u64 {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let times = counts.entry(text.to_owned()).or_default();
        *times += 1;
        *times
    }
}

/// Tells when the claim of a process begins and ends.
pub(super) async fn claims(trace: Trace, place: usize, door: Arc<ControllerView>) {
    let who = format!("c{place}");
    let mut claims = door.shared.claim.follow();
    let mut told = (0, false);
    loop {
        let claim = *claims.take();
        let now = door.shared.clock.now();
        let leads = claim.hold.covers(now);
        if told != (claim.term, leads) {
            let text = match claim.hold {
                ClaimDuration::Until(end) if leads => format!(
                    "leads in term {}, until {:.3} for now",
                    claim.term,
                    end.as_secs_f64()
                ),
                ClaimDuration::Unlimited => format!("leads in term {}, without an end", claim.term),
                ClaimDuration::Until(_) => format!("has run out, of term {}", claim.term),
                ClaimDuration::NotOurs => format!("does not lead, in term {}", claim.term),
            };
            trace.note(&who, "claim", &text);
            told = (claim.term, leads);
        }
        let end = match claim.hold {
            ClaimDuration::Until(end) if leads => end.saturating_sub(now.monotonic),
            // Until it changes.
            _ => Duration::MAX,
        };
        let changed = pin!(claims.changed());
        let over = pin!(sleep(end));
        select(changed, over).await;
    }
}

/// What became of pods and counts since the last look.
#[derive(Debug, Default)]
pub(super) struct Chronicle {
    version: Option<u64>,
    pods: BTreeMap<String, &'static str>,
    /// Replicas that are asked for.
    counts: BTreeMap<String, u64>,
}

impl Chronicle {
    pub(super) fn look(&mut self, insider: &Insider, trace: &Trace) {
        let known = self.version.replace(insider.version());
        if known.is_some_and(|version| !insider.changed_since(version, &FOLLOWED)) {
            return;
        }
        let [pods, targets @ ..] = FOLLOWED;
        for resource in targets {
            self.scaled(resource, insider.list(resource), trace);
        }
        self.pods(insider.list(pods), trace);
    }

    fn pods(&mut self, pods: Vec<Arc<Value>>, trace: &Trace) {
        let pods = pods.into_iter().map(Object);
        let now: BTreeMap<String, &'static str> =
            pods.map(|pod| (named(&pod), stage(&pod))).collect();
        for (name, stage) in &now {
            if self.pods.get(name) != Some(stage) {
                trace.note("pod", stage, name);
            }
        }
        for name in self.pods.keys().filter(|name| !now.contains_key(*name)) {
            trace.note("pod", "is gone", name);
        }
        self.pods = now;
    }

    fn scaled(&mut self, resource: &str, targets: Vec<Arc<Value>>, trace: &Trace) {
        let kind = resource.split('.').next().unwrap_or_default();
        for target in targets.into_iter().map(Object) {
            // What belongs to something is scaled by that.
            if target.controller().is_some() {
                continue;
            }
            let count = target.at("/spec/replicas").as_u64().unwrap_or_default();
            let name = format!("{kind} {}", named(&target));
            let Some(before) = self.counts.insert(name.clone(), count) else {
                continue;
            };
            if before != count {
                let text = format!("{name} from {before} to {count}");
                trace.note(&by(&target), "scales", &text);
            }
        }
    }
}

fn named(object: &Object) -> String {
    format!("{}/{}", object.namespace(), object.name())
}

fn stage(pod: &Object) -> &'static str {
    match (
        pod.is_deleted(),
        pod.holds("Ready"),
        pod.text("/spec/nodeName"),
    ) {
        (true, ..) => "ends",
        (false, true, _) => "is ready",
        (false, false, "") => "waits",
        (false, false, _) => "is not ready",
    }
}

/// Who wrote the replicas of a target last.
fn by(target: &Object) -> String {
    let entries = target.at("/metadata/managedFields").as_array();
    let entries = entries.into_iter().flatten();
    let owners = entries.filter(|entry| entry.pointer("/fieldsV1/f:spec/f:replicas").is_some());
    let text = |entry: &Value, field: &str| {
        let text = entry.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let last = owners.max_by_key(|entry| text(entry, "time"));
    let manager = last.map_or_else(String::new, |entry| text(entry, "manager"));
    match &*manager {
        "horizontal-pod-autoscaler" => "hpa".to_owned(),
        "somebody" => "hand".to_owned(),
        _ => manager,
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::chaos::trace::Keep;
    use wva_base::moment::WallTime;
    use wva_supervise::Clock;

    /// What is kept, without times.
    fn texts(trace: &Trace) -> Vec<String> {
        let text = |line: &String| {
            line.split_whitespace()
                .skip(2)
                .collect::<Vec<_>>()
                .join(" ")
        };
        trace.take().iter().map(text).collect()
    }

    #[test]
    fn of_equal_failures_few_are_told_and_of_different_ones_each() {
        let trace = Trace::new(Clock::at(WallTime(0)), Keep::Tail);
        let misses = Misses::new(trace.clone(), 1);
        for _ in 0..150 {
            misses.note("GET a", "503", &[7]);
        }
        misses.note("GET a", "503", &[7, 8]);
        misses.note("GET b", "409", &[]);
        let expected = [
            "c1 fails GET a: 503 by #7",
            "c1 fails GET a: 503 by #7, for the 10th time",
            "c1 fails GET a: 503 by #7, for the 100th time",
            "c1 fails GET a: 503 by #7 #8",
            "c1 fails GET b: 409",
        ];
        assert_eq!(trace.count(), 152);
        assert_eq!(texts(&trace), expected);
    }

    /// Time stands still: the hash holds when each line was written.
    #[tokio::test(start_paused = true)]
    async fn of_many_objects_that_are_written_at_once_the_first_are_told() {
        let told = |keep: Keep| {
            let clock = Clock::at(WallTime(0));
            let trace = Trace::new(clock.clone(), keep);
            for number in 0..9 {
                let path = format!("/apis/x/v1/namespaces/a/variantautoscalings/v{number}/status");
                let body = format!(r#"{{"reason": "Why", "regarding": {{"name": "v{number}"}}}}"#);
                let events = "/apis/x/v1/namespaces/a/events";
                for (method, path, body) in [
                    (Method::PATCH, path.as_str(), "{}"),
                    (Method::POST, events, body.as_str()),
                ] {
                    let body = body.as_bytes();
                    let (method, query) = (&method, "");
                    let sent = Sent {
                        method,
                        path,
                        query,
                        body,
                    };
                    trace.written(0, &sent, true);
                }
            }
            let other = Sent {
                method: &Method::POST,
                path: "/apis/x/v1/namespaces/a/events",
                query: "",
                body: br#"{"reason": "Other", "regarding": {"name": "v8"}}"#,
            };
            trace.written(0, &other, true);
            let hash = trace.hash();
            (texts(&trace), hash)
        };
        let (tail, whole) = (told(Keep::Tail), told(Keep::All));
        let of =
            |texts: &[String], what: &str| texts.iter().filter(|text| text.contains(what)).count();
        assert_eq!(of(&whole.0, "PATCH"), 9);
        assert_eq!(of(&whole.0, "Why"), 9);
        assert_eq!(of(&tail.0, "PATCH"), 5);
        assert_eq!(of(&tail.0, "Why"), 5);
        assert_eq!(tail.0.last().unwrap(), "c0 write POST a/events Other of v8");
        assert_eq!(tail.1, whole.1);
    }

    #[test]
    fn what_is_read_is_in_the_whole_trace_alone() {
        let told = |keep: Keep| {
            let trace = Trace::new(Clock::at(WallTime(0)), keep);
            let sent = Sent {
                method: &Method::GET,
                path: "/api/v1/pods",
                query: "watch=true",
                body: b"",
            };
            trace.read(2, &sent);
            texts(&trace)
        };
        assert_eq!(told(Keep::Tail), Vec::<String>::new());
        assert_eq!(told(Keep::All), ["c2 reads GET /api/v1/pods?watch=true"]);
    }

    #[test]
    fn that_who_leads_renews_its_lease_is_no_news() {
        let told = |keep, leads| {
            let trace = Trace::new(Clock::at(WallTime(0)), keep);
            for (method, path, body) in [
                (Method::PUT, "/apis/x/v1/namespaces/a/leases/b", "{}"),
                (
                    Method::POST,
                    "/apis/x/v1/namespaces/a/events",
                    r#"{"reason": "Why", "regarding": {"name": "c"}}"#,
                ),
            ] {
                let sent = Sent {
                    method: &method,
                    path,
                    query: "",
                    body: body.as_bytes(),
                };
                trace.written(0, &sent, leads);
            }
            let count = trace.count();
            (texts(&trace), count)
        };
        let event = "c0 write POST a/events Why of c".to_owned();
        let taken = "c0 write PUT a/leases/b".to_owned();
        let renewed = "c0 renews PUT a/leases/b".to_owned();
        assert_eq!(told(Keep::Tail, false), (vec![taken, event.clone()], 2));
        assert_eq!(told(Keep::Tail, true), (vec![event.clone()], 2));
        assert_eq!(told(Keep::All, true), (vec![renewed, event], 2));
    }
}
