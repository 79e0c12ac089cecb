//! A tree with every sort of role.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::{
    ActorKind, ChildrenPolicy, QuarantinePolicy, RestartPolicy, RolePolicy, StopHow, TreeRole,
};

/// How many feeds there are.
pub(super) const FEEDS: u8 = 12;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Root,
    Config,
    Leadership,
    Egress,
    Emitter,
    Flusher,
    Recorder,
    Engine,
    Collector,
    Planner,
    Sessions,
    Session(String),
    Ingress,
    Feed(u8),
    Poller,
    Http,
}

const SINGLE: [Role; 14] = [
    Role::Root,
    Role::Config,
    Role::Leadership,
    Role::Egress,
    Role::Emitter,
    Role::Flusher,
    Role::Recorder,
    Role::Engine,
    Role::Collector,
    Role::Planner,
    Role::Sessions,
    Role::Ingress,
    Role::Poller,
    Role::Http,
];

impl TreeRole for Role {
    fn root() -> Self {
        Self::Root
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Config => "config",
            Self::Leadership => "leadership",
            Self::Egress => "egress",
            Self::Emitter => "emitter",
            Self::Flusher => "flusher",
            Self::Recorder => "recorder",
            Self::Engine => "engine",
            Self::Collector => "collector",
            Self::Planner => "planner",
            Self::Sessions => "sessions",
            Self::Session(_) => "session",
            Self::Ingress => "ingress",
            Self::Feed(_) => "feed",
            Self::Poller => "poller",
            Self::Http => "http",
        }
    }

    fn parent(&self) -> Option<Self> {
        match self {
            Self::Root => None,
            Self::Emitter | Self::Flusher | Self::Recorder => Some(Self::Egress),
            Self::Collector | Self::Planner => Some(Self::Engine),
            Self::Session(_) => Some(Self::Sessions),
            Self::Feed(_) | Self::Poller => Some(Self::Ingress),
            _ => Some(Self::Root),
        }
    }

    fn policy(&self) -> RolePolicy {
        let (ms, s, min) = (Duration::from_millis, Duration::from_secs, Duration::from_mins);
        match self {
            Self::Root => RolePolicy { grace: s(8), ..one_for_one(3, min(10), s(1)) },
            Self::Egress | Self::Ingress => one_for_one(10, min(5), ms(200)),
            Self::Engine => one_for_one(5, min(5), ms(500)),
            Self::Sessions => supervising(ChildrenPolicy::Quarantine(QuarantinePolicy {
                delay_base: s(1),
                delay_cap: min(5),
                quarantine_from: 3,
                systemic_window: min(1),
                systemic_floor: 10,
            })),
            Self::Config | Self::Emitter | Self::Planner | Self::Session(_) => {
                leaf(ActorKind::Machine, StopHow::Stop, Some(s(5)))
            }
            Self::Leadership => leaf(ActorKind::Pump, StopHow::Stop, Some(s(90))),
            Self::Flusher => {
                RolePolicy { grace: s(3), ..leaf(ActorKind::Pump, StopHow::Stop, Some(min(1))) }
            }
            Self::Recorder => leaf(ActorKind::Pump, StopHow::Stop, Some(min(1))),
            Self::Collector | Self::Poller => leaf(ActorKind::Pump, StopHow::Kill, Some(min(1))),
            Self::Feed(_) => leaf(ActorKind::Pump, StopHow::Kill, Some(s(90))),
            Self::Http => leaf(ActorKind::Pump, StopHow::Kill, None),
        }
    }
}

fn one_for_one(max_restarts: usize, window: Duration, delay_base: Duration) -> RolePolicy {
    supervising(ChildrenPolicy::Restart(RestartPolicy {
        max_restarts,
        window,
        delay_base,
        delay_cap: Duration::from_secs(30),
    }))
}

fn supervising(children: ChildrenPolicy) -> RolePolicy {
    RolePolicy {
        kind: ActorKind::Supervisor,
        stop: StopHow::Stop,
        grace: Duration::from_secs(4),
        stall_after: None,
        children: Some(children),
    }
}

fn leaf(kind: ActorKind, stop: StopHow, stall_after: Option<Duration>) -> RolePolicy {
    RolePolicy { kind, stop, grace: Duration::from_secs(1), stall_after, children: None }
}

/// The label, with the number or key where there are several: `feed/3`.
impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(key) => write!(formatter, "session/{key}"),
            Self::Feed(number) => write!(formatter, "feed/{number}"),
            _ => formatter.write_str(self.label()),
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(key) = text.strip_prefix("session/") {
            return Ok(Self::Session(key.to_owned()));
        }
        if let Some(number) = text.strip_prefix("feed/") {
            return number.parse().map(Self::Feed).map_err(|_error| text.to_owned());
        }
        let mut known = SINGLE.into_iter();
        let found = known.find(|role| role.label() == text);
        found.ok_or_else(|| text.to_owned())
    }
}

impl Serialize for Role {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
