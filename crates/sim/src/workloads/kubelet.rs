//! The kubelets: what becomes of a pod that has a node, and when.
//!
//! Everything follows from the object, so that nothing else is remembered.

use std::time::Duration;

use serde_json::{Value, json};

use super::event::{Volume, event};
use super::object::{Object, Write, pod_path, stamp, wall_time};
use super::sleepers::{self, WAKE};
use crate::engine::StartUp;
use wva_base::moment::WallTime;
use wva_supervise::SeedTree;

const COMPONENT: &str = "kubelet";
pub(crate) const IMAGE_PULL: &str = "simulation.wva.llmd.ai/image-pull-seconds";
/// Seconds from the start of a container to its readiness, in half of all cases at most.
pub(crate) const START_UP: &str = "simulation.wva.llmd.ai/start-up-seconds";
/// The same in 95 % of all cases.
pub(crate) const START_UP_P95: &str = "simulation.wva.llmd.ai/start-up-p95-seconds";
/// What a container takes that says nothing about it.
const PLAIN: StartUp = StartUp {
    image_pull: Duration::from_secs(1),
    median: Duration::from_secs(2),
    p95: Duration::from_secs(3),
    asleep: None,
};
/// Delay of the first restart of a container; each further one takes twice as long.
const BACK_OFF: Duration = Duration::from_secs(10);
const LONGEST_BACK_OFF: Duration = Duration::from_mins(5);

#[derive(Debug, Default)]
pub(super) struct Next {
    pub(super) writes: Vec<Write>,
    /// When the pod moves on by itself.
    pub(super) due: Option<WallTime>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Death {
    pub(super) code: i64,
    pub(super) reason: &'static str,
}

pub(super) fn reconcile(pod: &Object, seed: &SeedTree, now: WallTime) -> Next {
    let phase = pod.text("/status/phase");
    if pod.is_deleted() {
        return end(pod, now);
    }
    let state = pod.at("/status/containerStatuses/0/state");
    if matches!(phase, "Succeeded" | "Failed") {
        return Next::default();
    }
    if pod.at("/status/startTime").is_null() {
        return Next::at_once(starting(pod, now));
    }
    let start_up = start_up(pod);
    if let Some(running) = wall_time(&state["running"]["startedAt"]) {
        if pod.holds("Ready") {
            return Next::default();
        }
        let loading = StartUp { image_pull: Duration::ZERO, ..start_up };
        // Each start of each pod draws by itself, so that no other one changes it.
        let (namespace, name) = (pod.namespace(), pod.name());
        let start = format!("start-up/{namespace}/{name}/{}", pod.restarts());
        let takes = loading.draw(&mut seed.child(&start));
        return Next::after(running, takes, now, || vec![ready(pod, now)]);
    }
    if state["waiting"]["reason"] == "CrashLoopBackOff" {
        let last = pod.at("/status/containerStatuses/0/lastState/terminated/finishedAt");
        let died = wall_time(last).unwrap_or(now);
        return Next::after(died, back_off(pod.restarts()), now, || run(pod, now));
    }
    let started = pod.time("/status/startTime").unwrap_or(now);
    Next::after(started, start_up.image_pull, now, || run(pod, now))
}

pub(super) fn crash(pod: &Object, death: Death, now: WallTime) -> Vec<Write> {
    let restarts = pod.restarts().saturating_add(1);
    let mut container = stopped(pod);
    container["restartCount"] = restarts.into();
    container["state"] = json!({"waiting": {
        "reason": "CrashLoopBackOff",
        "message": format!("back-off {}s restarting failed container", back_off(restarts).as_secs()),
    }});
    container["lastState"] = json!({"terminated": {
        "exitCode": death.code, "reason": death.reason, "finishedAt": stamp(now),
        "startedAt": pod.at("/status/containerStatuses/0/state/running/startedAt"),
    }});
    let mut status = with_readiness(pod, false, "ContainersNotReady", now);
    status["containerStatuses"] = json!([container]);
    let message = "Back-off restarting failed container";
    let what = (Volume::Warning, "BackOff");
    announced(pod, &status, what, message, now)
}

pub(super) fn evict(pod: &Object, message: &str, now: WallTime) -> Vec<Write> {
    let mut container = stopped(pod);
    container["state"] = json!({"terminated": {
        "exitCode": 137, "reason": "Error", "finishedAt": stamp(now),
        "startedAt": pod.at("/status/containerStatuses/0/state/running/startedAt"),
    }});
    let mut status = with_readiness(pod, false, "PodFailed", now);
    status["phase"] = "Failed".into();
    status["reason"] = "Evicted".into();
    status["message"] = message.into();
    status["containerStatuses"] = json!([container]);
    let what = (Volume::Warning, "Evicted");
    announced(pod, &status, what, message, now)
}

/// Says that a pod does not take requests, though its container may run.
pub(super) fn unready(pod: &Object, reason: &str, now: WallTime) -> Write {
    write(pod, &with_readiness(pod, false, reason, now))
}

fn start_up(pod: &Object) -> StartUp {
    let seconds = |name: &str| {
        let seconds: f64 = pod.annotation(name)?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    };
    let median = seconds(START_UP).filter(|median| !median.is_zero());
    let Some(median) = median else {
        return PLAIN;
    };
    let whole = StartUp {
        image_pull: seconds(IMAGE_PULL).unwrap_or_default(),
        median,
        p95: seconds(START_UP_P95).unwrap_or(median).max(median),
        asleep: None,
    };
    let wake = seconds(WAKE).filter(|_| sleepers::wakes(pod));
    wake.map_or(whole, |wake| whole.waking(wake))
}

fn back_off(restarts: i64) -> Duration {
    let doublings = u32::try_from(restarts.saturating_sub(1).clamp(0, 10)).unwrap_or(10);
    BACK_OFF.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST_BACK_OFF)
}

impl Next {
    fn at_once(writes: Vec<Write>) -> Self {
        Self { writes, due: None }
    }

    fn after(
        since: WallTime,
        wait: Duration,
        now: WallTime,
        writes: impl FnOnce() -> Vec<Write>,
    ) -> Self {
        let due = since.later(wait);
        if due <= now {
            Self::at_once(writes())
        } else {
            Self { writes: Vec::new(), due: Some(due) }
        }
    }
}

/// A deleted pod ends when its grace does. After that it waits for its other holders.
fn end(pod: &Object, now: WallTime) -> Next {
    if pod.number("/metadata/deletionGracePeriodSeconds") == 0 {
        return Next::default();
    }
    let when = pod.time("/metadata/deletionTimestamp").unwrap_or(now);
    let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid()}});
    Next::after(when, Duration::ZERO, now, || vec![Write::Delete(pod_path(pod), options)])
}

pub(super) fn write(pod: &Object, status: &Value) -> Write {
    let path = format!("{}/status", pod_path(pod));
    Write::Merge(path, json!({"status": status}))
}

/// A status, and the event about its change.
fn announced(
    pod: &Object,
    status: &Value,
    what: (Volume, &str),
    message: &str,
    now: WallTime,
) -> Vec<Write> {
    let event = event(("v1", "Pod", pod), COMPONENT, what, message, now);
    vec![write(pod, status), event]
}

fn container(pod: &Object) -> Value {
    let present = pod.at("/status/containerStatuses/0");
    if present.is_object() {
        return present.clone();
    }
    let spec = pod.at("/spec/containers/0");
    json!({
        "name": spec["name"], "image": spec["image"], "imageID": "", "ready": false,
        "started": false, "restartCount": 0, "state": {},
    })
}

fn stopped(pod: &Object) -> Value {
    let mut container = container(pod);
    container["ready"] = false.into();
    container["started"] = false.into();
    container
}

fn with_readiness(pod: &Object, ready: bool, reason: &str, now: WallTime) -> Value {
    let status = if ready { "True" } else { "False" };
    let conditions = ["Ready", "ContainersReady"].map(|kind| {
        let mut condition = json!({"type": kind, "status": status});
        if !ready {
            condition["reason"] = reason.into();
        }
        condition
    });
    json!({"conditions": pod.having(conditions, now)})
}

fn starting(pod: &Object, now: WallTime) -> Vec<Write> {
    let mut status = with_readiness(pod, false, "ContainersNotReady", now);
    if let Some(conditions) = status["conditions"].as_array_mut() {
        let initialized = json!({
            "type": "Initialized", "status": "True", "lastTransitionTime": stamp(now),
        });
        conditions.push(initialized);
    }
    let mut container = container(pod);
    container["state"] = json!({"waiting": {"reason": "ContainerCreating"}});
    status["startTime"] = stamp(now).into();
    status["hostIP"] = "10.0.0.1".into();
    status["containerStatuses"] = json!([container]);
    let image = container["image"].as_str().unwrap_or_default().to_owned();
    let what = (Volume::Normal, "Pulling");
    let message = format!("Pulling image \"{image}\"");
    announced(pod, &status, what, &message, now)
}

fn run(pod: &Object, now: WallTime) -> Vec<Write> {
    let mut container = container(pod);
    let name = container["name"].as_str().unwrap_or_default().to_owned();
    container["state"] = json!({"running": {"startedAt": stamp(now)}});
    container["started"] = true.into();
    let status = json!({
        "phase": "Running", "containerStatuses": [container],
        "podIP": pod_ip(pod), "podIPs": [{"ip": pod_ip(pod)}],
    });
    let what = (Volume::Normal, "Started");
    let message = format!("Started container {name}");
    announced(pod, &status, what, &message, now)
}

fn ready(pod: &Object, now: WallTime) -> Write {
    let mut container = container(pod);
    container["ready"] = true.into();
    let mut status = with_readiness(pod, true, "", now);
    status["containerStatuses"] = json!([container]);
    write(pod, &status)
}

/// An address of its own, from the unique id.
fn pod_ip(pod: &Object) -> String {
    let digits: String = pod.uid().chars().filter(char::is_ascii_hexdigit).collect();
    let byte = |at: usize| {
        let digits = digits.get(at..at + 2).unwrap_or("00");
        u8::from_str_radix(digits, 16).unwrap_or(0)
    };
    format!("10.{}.{}.{}", byte(0), byte(2), byte(4))
}
