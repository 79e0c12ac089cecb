//! Everything that can be made to go wrong, by class. `docs/development/chaos.md` explains the names.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use wva::roles::Role;
use wva_supervise::SeedTree;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Class {
    Api,
    Prometheus,
    Actors,
    Controllers,
    Objects,
    Settings,
    Workloads,
    Autoscalers,
}

impl fmt::Display for Class {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&kebab(&format!("{self:?}")))
    }
}

/// In place of the number of a controller: the one that leads when the fault begins.
pub(super) const LEADER: usize = usize::MAX;

/// Something that goes wrong, with the number of the controller or the variant that it meets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ChaosFault {
    Api(usize, Api),
    Prometheus(usize, Prom),
    Actor(usize, RoleFault),
    Controller(usize, ProcessFault),
    Object(usize, ObjectFault),
    Settings(Edit),
    Workload(usize, WorkloadFaultKind),
    Autoscaler(usize, AutoscalerFault),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AutoscalerFault {
    PagesDown,
    PagesHang,
    PagesPartial,
    Removed(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Latency(Duration),
    /// Requests are answered with this status, and so many seconds to wait.
    Refuse(u16, Option<u64>),
    Conflict,
    Forbidden,
    Webhook,
    Hang,
    Partition,
    Lost,
    /// Writes are never answered, and carried out so much later: by then their sender may have lost its lease.
    Late(Duration),
    /// The next write of a status is held on its way until another process has the lease, and carried out then;
    /// from that write on no server can be reached.
    Lapse,
    Silent,
    NoBookmarks,
    Doubled,
    Delayed(Duration),
    /// Watches of some kinds deliver late, of others in time: which ones is drawn from this number.
    Uneven(Duration, u8),
    Coalesced(Duration),
    StaleList(u64),
    /// All that is read comes from a server that stands still this many changes back.
    Older(u64),
    Compact,
    Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prom {
    Down,
    Status(u16),
    Slow(Duration),
    Hang,
    Endless,
    Partial,
    Empty,
    Old,
    Doubled,
    NotANumber,
    Infinite,
    Ghosts,
    WrongLabels,
    Zeros,
    Ahead(Duration),
    Behind(Duration),
    Gap,
    Lag(Duration),
    Reset,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RoleFault {
    Kill(Role),
    Before(Role),
    After(Role),
    Panic(Role),
    /// A machine fails with a panic when it has done so many of the things that an occasion made it decide, and has
    /// more to do.
    Torn(Role, usize),
    Hang(Role),
    Abort(Role),
    Several(Vec<Role>),
    Storm(Role),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessFault {
    Crash,
    Restart,
    Pause,
    BeforeWrite,
    DuringWrite,
    AfterWrite,
    EveryWrite,
    Rollout,
    Handover,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectFault {
    TargetReplaced,
    ScaledTo(u32),
    SecondScaler,
    MinAboveMax,
    Bounds(u32, u32),
    Malformed(u8),
    Removed,
    Unseen,
    Midway,
    Renamed,
    Moved,
    Relabelled,
    Contested,
    Crowd(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    Interval(u64),
    Thresholds(u64),
    /// A key that is read at start alone: which one, and its value, is drawn from this number.
    Immutable(u64),
    /// Unreadable text: which one, and where, is drawn from this number.
    BrokenYaml(u64),
    BadValue,
    Deleted,
    SaturationDeleted,
    /// A ConfigMap is deleted and at once created again: of those that there are, the one of this number.
    Recreated(u8),
    Storm(u64),
    ZeroForbidden,
    ZeroLater,
    ZeroDeleted,
    ZeroAllowed,
    /// Some key gets some value: what is drawn from this number.
    Random(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkloadFaultKind {
    Crash(usize),
    Evict(usize),
    NodeLost,
    NeverReady,
    SlowStart,
    Flapping,
    Shortage,
}

impl ProcessFault {
    pub(super) fn is_at_a_write(self) -> bool {
        matches!(self, Self::BeforeWrite | Self::DuringWrite | Self::AfterWrite | Self::EveryWrite)
    }

    /// Where it is to end at a write in each of its lives: after how many others, and when. So each life reaches
    /// another write than the one before, and one in seven ends at its first.
    pub(super) fn end_of(life: u64) -> (u64, Self) {
        let when = match life % 3 {
            0 => Self::BeforeWrite,
            1 => Self::DuringWrite,
            _ => Self::AfterWrite,
        };
        (life % 7, when)
    }
}

impl Api {
    pub(super) fn delay(self, kind: &str) -> Option<Duration> {
        match self {
            Self::Delayed(time) => Some(time),
            Self::Uneven(time, drawn) => {
                let drawn = SeedTree::new(u64::from(drawn)).child(kind).next_u64();
                drawn.is_multiple_of(2).then_some(time)
            }
            _ => None,
        }
    }
}

impl Prom {
    /// Whether what is in use may look by it as if it were not.
    pub(super) fn hides_use(self) -> bool {
        matches!(self, Self::Partial | Self::Old | Self::Ghosts | Self::Zeros)
    }
}

impl ChaosFault {
    #[must_use]
    pub(crate) fn aimed(mut self, leader: usize) -> Self {
        if let Self::Api(whom, _)
        | Self::Prometheus(whom, _)
        | Self::Actor(whom, _)
        | Self::Controller(whom, _)
        | Self::Autoscaler(whom, _) = &mut self
            && *whom == LEADER
        {
            *whom = leader;
        }
        self
    }

    pub(crate) fn class(&self) -> Class {
        self.parts().0
    }

    /// Its class, the number of what it meets, and what it is.
    fn parts(&self) -> (Class, usize, &dyn fmt::Debug) {
        match self {
            Self::Api(whom, fault) => (Class::Api, *whom, fault),
            Self::Prometheus(whom, fault) => (Class::Prometheus, *whom, fault),
            Self::Actor(whom, fault) => (Class::Actors, *whom, fault),
            Self::Controller(whom, fault) => (Class::Controllers, *whom, fault),
            Self::Object(whom, fault) => (Class::Objects, *whom, fault),
            Self::Settings(fault) => (Class::Settings, 0, fault),
            Self::Workload(whom, fault) => (Class::Workloads, *whom, fault),
            Self::Autoscaler(whom, fault) => (Class::Autoscalers, *whom, fault),
        }
    }

    pub(crate) fn kind(&self) -> String {
        let status = match self {
            Self::Api(_, Api::Refuse(status, _)) | Self::Prometheus(_, Prom::Status(status)) => {
                format!("-{status}")
            }
            _ => String::new(),
        };
        let (class, _, fault) = self.parts();
        let text = format!("{fault:?}");
        let name = text.split(['(', ' ', '{']).next().unwrap_or_default();
        format!("{class}/{}{status}", kebab(name))
    }
}

/// `NoBookmarks` as `no-bookmarks`.
fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for (place, letter) in name.chars().enumerate() {
        if letter.is_ascii_uppercase() && place > 0 {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}

impl fmt::Display for ChaosFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.kind())?;
        let (_, whom, what) = self.parts();
        match self {
            Self::Actor(_, fault) => write!(formatter, " {} {fault}", whose(whom)),
            Self::Controller(..) => write!(formatter, " {}", whose(whom)),
            Self::Object(..) | Self::Workload(..) => write!(formatter, " v{whom} {what:?}"),
            Self::Settings(_) => write!(formatter, " {what:?}"),
            Self::Api(..) | Self::Prometheus(..) | Self::Autoscaler(..) => {
                write!(formatter, " {} {what:?}", whose(whom))
            }
        }
    }
}

fn whose(controller: usize) -> String {
    match controller {
        LEADER => "leader".to_owned(),
        number => format!("c{number}"),
    }
}

wva_base::display_of! { RoleFault:
    Self::Several(roles) => "{}", roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    Self::Torn(role, done) => "{role} after {done}";
    Self::Kill(role)
    | Self::Before(role)
    | Self::After(role)
    | Self::Panic(role)
    | Self::Hang(role)
    | Self::Abort(role)
    | Self::Storm(role) => "{role}";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uneven_watches_are_late_by_their_kind() {
        let time = Duration::from_secs(3);
        let kinds = ["pods", "deployments", "replicasets", "variantautoscalings"];
        let late = |fault: Api| kinds.map(|kind| fault.delay(kind) == Some(time));
        assert_eq!(late(Api::Delayed(time)), [true; 4]);
        assert_eq!(late(Api::Silent), [false; 4]);
        let all: Vec<_> = (0..=255).map(|drawn| late(Api::Uneven(time, drawn))).collect();
        for kind in 0..kinds.len() {
            let count = all.iter().filter(|late| late[kind]).count();
            assert!((96..160).contains(&count), "{count}");
        }
        // What pods show and what their owners do come in either order.
        for order in [[true, false], [false, true]] {
            assert!(all.iter().any(|late| late[..2] == order));
        }
        assert_eq!(all[7], late(Api::Uneven(time, 7)));
    }
}
