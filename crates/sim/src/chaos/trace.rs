//! What happened, one dense line per event, and one number for all of it: besides writes, plans, roles and faults who
//! leads, what was refused, pods that come and go, and who scales.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use allocations::Owner;
use futures::future::select;
use serde_json::Value;
use tokio::time::sleep;

use super::check::claims::Sent;
use crate::apiserver::Insider;
use crate::number::{HASH_OF_NOTHING, hash};
use crate::threads::locked;
use crate::workloads::object::Object;
use crate::world::controller::ControllerView;
use wva::state::claim::ClaimDuration;
use wva_supervise::Clock;

pub(crate) const TAIL: usize = 100;

#[derive(Debug, Clone)]
pub(super) struct Trace {
    clock: Clock,
    lines: Arc<Mutex<Lines>>,
}

#[derive(Debug, Default)]
struct Lines {
    count: u64,
    hash: u64,
    tail: VecDeque<String>,
    /// Whether the last lines are those before what was to be shown.
    is_sealed: bool,
    whole: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The last hundred lines, without what is done again and again.
    Tail,
    All,
}

impl Trace {
    pub(super) fn new(clock: Clock, keep: Keep) -> Self {
        let lines = Lines {
            hash: HASH_OF_NOTHING,
            tail: VecDeque::with_capacity(TAIL),
            whole: (keep == Keep::All).then(Vec::new),
            ..Lines::default()
        };
        Self { clock, lines: Arc::new(Mutex::new(lines)) }
    }

    pub(super) fn note(&self, who: &str, what: &str, text: &str) {
        self.take_down(who, what, text, true);
    }

    /// The same of what is done again and again as long as nothing happens: the last lines leave it out.
    pub(super) fn hum(&self, who: &str, what: &str, text: &str) {
        self.take_down(who, what, text, false);
    }

    pub(super) fn fold(&self, text: &str) {
        let mut lines = locked(&self.lines);
        lines.hash = hash(lines.hash, text.bytes().chain([0xfe]));
    }

    fn take_down(&self, who: &str, what: &str, text: &str, is_news: bool) {
        let now = self.clock.now().monotonic;
        let mut lines = locked(&self.lines);
        lines.count += 1;
        let (seconds, count) = (now.as_secs_f64(), lines.count);
        let line = format!("{seconds:>11.3} {count:>7} {who:<5} {what:<12} {text}");
        lines.hash = hash(lines.hash, line.bytes().chain([0xff]));
        if let Some(whole) = &mut lines.whole {
            whole.push(line.clone());
        }
        if !is_news || lines.is_sealed {
            return;
        }
        if lines.tail.len() == TAIL {
            lines.tail.pop_front();
        }
        lines.tail.push_back(line);
    }

    pub(super) fn seal(&self) {
        locked(&self.lines).is_sealed = true;
    }

    pub(super) fn hash(&self) -> u64 {
        locked(&self.lines).hash
    }

    pub(super) fn count(&self) -> u64 {
        locked(&self.lines).count
    }

    pub(super) fn take(&self) -> Vec<String> {
        let mut lines = locked(&self.lines);
        let whole = lines.whole.take();
        whole.unwrap_or_else(|| lines.tail.drain(..).collect())
    }

    /// A process writes something. That who leads renews its lease is no news.
    pub(super) fn written(&self, place: usize, sent: &Sent<'_>, leads: bool) {
        let Sent { method, path, .. } = *sent;
        let who = format!("c{place}");
        let text = format!("{method:<6} {}", short(path));
        if leads && path.contains("/leases/") {
            self.hum(&who, "renews", &text);
            return;
        }
        let text = if path.ends_with("/events") {
            let event = sent.object();
            let (reason, name) = (event.text("/reason"), event.text("/regarding/name"));
            format!("{text} {reason} of {name}")
        } else {
            text
        };
        self.note(&who, "write", &text);
    }

    pub(super) fn read(&self, place: usize, sent: &Sent<'_>) {
        let text = format!("{:<6} {}?{}", sent.method, sent.path, sent.query);
        self.hum(&format!("c{place}"), "reads", &text);
    }
}

/// Whatever may have replicas, by resource, and pods first.
const FOLLOWED: [&str; 5] = [
    "pods.",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "leaderworkersets.leaderworkerset.x-k8s.io",
];

pub(super) fn short(path: &str) -> &str {
    path.rsplit("/namespaces/").next().unwrap_or(path)
}

/// Requests of one process that came to nothing. Of equal ones the first is among the last lines, so that one that is
/// made again and again does not push everything else out of them. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Misses {
    trace: Trace,
    who: String,
    seen: Arc<Mutex<BTreeSet<String>>>,
}

impl Misses {
    pub(super) fn new(trace: Trace, place: usize) -> Self {
        Self { trace, who: format!("c{place}"), seen: Arc::default() }
    }

    pub(super) fn note(&self, request: &str, why: &str, by: &[usize]) {
        // Nothing of the trace is held by who asked.
        let _scope = Owner::NONE.enter();
        let by: Vec<String> = by.iter().map(|id| format!("#{id}")).collect();
        let text = if by.is_empty() {
            format!("{request}: {why}")
        } else {
            format!("{request}: {why} by {}", by.join(" "))
        };
        let mut seen = locked(&self.seen);
        if seen.insert(text.clone()) {
            self.trace.note(&self.who, "fails", &text);
        } else {
            self.trace.hum(&self.who, "fails", &text);
        }
    }
}

pub(super) async fn claims(trace: Trace, place: usize, door: Arc<ControllerView>) {
    let who = format!("c{place}");
    let mut claims = door.shared.claim.follow();
    let mut shown = (0, false);
    loop {
        let claim = *claims.take();
        let now = door.shared.clock.now();
        let leads = claim.hold.covers(now);
        if shown != (claim.term, leads) {
            let text = match claim.hold {
                ClaimDuration::Until(end) if leads => {
                    format!("leads in term {}, until {:.3} for now", claim.term, end.as_secs_f64())
                }
                ClaimDuration::Unlimited => format!("leads in term {}, without an end", claim.term),
                ClaimDuration::Until(_) => format!("has run out, of term {}", claim.term),
                ClaimDuration::NotOurs => format!("does not lead, in term {}", claim.term),
            };
            trace.note(&who, "claim", &text);
            shown = (claim.term, leads);
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

#[derive(Debug, Default)]
pub(super) struct Chronicle {
    version: Option<u64>,
    pods: BTreeMap<String, &'static str>,
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
    match (pod.is_deleted(), pod.holds("Ready"), pod.text("/spec/nodeName")) {
        (true, ..) => "ends",
        (false, true, _) => "is ready",
        (false, false, "") => "waits",
        (false, false, _) => "is not ready",
    }
}

fn by(target: &Object) -> String {
    let entries = target.list("/metadata/managedFields").iter();
    let owners = entries.filter(|entry| entry.pointer("/fieldsV1/f:spec/f:replicas").is_some());
    let text = |entry: &Value, field: &str| {
        let text = entry.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let last = owners.max_by_key(|entry| text(entry, "time"));
    let manager = last.map_or_else(String::new, |entry| text(entry, "manager"));
    match &*manager {
        "kube-controller-manager" | "horizontal-pod-autoscaler" => "hpa".to_owned(),
        "person" => "hand".to_owned(),
        _ => manager,
    }
}
