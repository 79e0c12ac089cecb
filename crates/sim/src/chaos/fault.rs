//! Everything that can be made to go wrong, by class.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use wva::roles::Role;
use wva_supervise::SeedTree;

/// What is made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Class {
    ApiServer,
    Prometheus,
    /// Actors within a process.
    Actors,
    /// Whole processes of the controller.
    Controllers,
    /// Objects that people and other controllers own.
    Objects,
    Settings,
    Workloads,
    /// PodAutoscalers, their roles and what they measure; only where there are any.
    Autoscalers,
}

impl Class {
    /// The name in tables.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ApiServer => "api",
            Self::Prometheus => "prometheus",
            Self::Actors => "actors",
            Self::Controllers => "controllers",
            Self::Objects => "objects",
            Self::Settings => "settings",
            Self::Workloads => "workloads",
            Self::Autoscalers => "autoscalers",
        }
    }
}

/// In place of the number of a controller: whoever leads when the fault begins.
pub(super) const LEADER: usize = usize::MAX;

/// Something that goes wrong. Where it names a controller, that is its number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ChaosFault {
    /// Between one controller and the API server.
    Api(usize, Api),
    /// Between one controller and Prometheus.
    Prometheus(usize, Prom),
    /// Within one controller.
    Actor(usize, RoleFault),
    /// One controller as a whole.
    Controller(usize, ProcessFault),
    /// An object of a variant, by the number of the variant.
    Object(usize, ObjectFault),
    /// Settings.
    Settings(Edit),
    /// Workloads of a variant, by its number, or a node.
    Workload(usize, WorkloadFaultKind),
    /// What one controller measures for PodAutoscalers, or one of them.
    Autoscaler(usize, AutoscalerFault),
}

/// What happens to PodAutoscalers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AutoscalerFault {
    /// No page of a pod can be reached.
    PagesDown,
    /// No page of a pod is answered in time.
    PagesHang,
    /// Pages of half of the pods cannot be reached.
    PagesPartial,
    /// The object of this number is removed, and another one of its name comes.
    Removed(usize),
}

/// What happens on the way to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    /// Requests take so much longer.
    Latency(Duration),
    /// Requests are answered with this status, and so many seconds to wait.
    Refuse(u16, Option<u64>),
    /// Writes are answered with 409.
    Conflict,
    /// Writes are answered with 403.
    Forbidden,
    /// Writes of VariantAutoscalings are answered with 500: their admission webhook has failed.
    Webhook,
    /// Requests are never answered.
    Hang,
    /// Nobody can be reached.
    Partition,
    /// Writes are carried out, and never answered.
    Lost,
    /// Writes are never answered, and carried out so much later: by then their sender may have lost its lease.
    Late(Duration),
    /// The next write of a status is held on its way until somebody else has the lease, and carried out then;
    /// from that write on nobody can be reached.
    Lapse,
    /// Watches tell nothing any more, and do not end.
    Silent,
    /// Watches send no bookmarks.
    NoBookmarks,
    /// Watches tell everything twice.
    Doubled,
    /// Watches tell late.
    Delayed(Duration),
    /// Watches of some kinds tell late, of others in time: which ones is drawn from this number.
    Uneven(Duration, u8),
    /// Watches tell only the last of several changes of an object.
    Coalesced(Duration),
    /// Lists are older by so many changes.
    StaleList(u64),
    /// All that is read comes from a server that stands still this many changes back.
    Older(u64),
    /// History is forgotten: watches end with 410.
    Compact,
    /// Every watch is cut.
    Cut,
}

/// What happens on the way to Prometheus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prom {
    /// Nobody can be reached.
    Down,
    /// Requests are answered with this status.
    Status(u16),
    /// Answers take so long.
    Slow(Duration),
    /// Answers never come.
    Hang,
    /// Answers are too large to be read.
    Endless,
    /// Some of the series are missing.
    Partial,
    /// Nothing is found.
    Empty,
    /// Answers are those of the first question.
    Old,
    /// Every series is there twice.
    Doubled,
    /// Values are no numbers.
    NotANumber,
    /// Values are infinite.
    Infinite,
    /// Pods that are gone still report.
    Ghosts,
    /// Labels are called otherwise.
    WrongLabels,
    /// Every value is zero.
    Zeros,
    /// Its clock is ahead.
    Ahead(Duration),
    /// Its clock is behind.
    Behind(Duration),
    /// Nothing is scraped.
    Gap,
    /// What is scraped is seen late.
    Lag(Duration),
    /// All counters that it scrapes of pods begin anew at zero, while their containers live on.
    Reset,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RoleFault {
    /// One ends now, with everything below it.
    Kill(Role),
    /// One ends before its next occasion.
    Before(Role),
    /// One ends after its next occasion.
    After(Role),
    /// One fails with a panic at its next occasion.
    Panic(Role),
    /// A machine fails with a panic when it has done so many of the things that an occasion made it decide, and has
    /// more to do.
    Torn(Role, usize),
    /// One never finishes its next occasion.
    Hang(Role),
    /// The task of one is aborted.
    Abort(Role),
    /// Several end at once.
    Several(Vec<Role>),
    /// One ends again and again, beyond what its supervisor puts up with.
    Storm(Role),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessFault {
    /// It ends without a word.
    Crash,
    /// It ends in order, and another one comes.
    Restart,
    /// It stands still.
    Pause,
    /// It ends before its next write is sent.
    BeforeWrite,
    /// It ends when its next write has been carried out, before the answer.
    DuringWrite,
    /// It ends after the answer to its next write.
    AfterWrite,
    /// It ends at one of its next writes, and so does whoever comes after it, again and again.
    EveryWrite,
    /// It ends in order, and one with other settings comes.
    Rollout,
    /// The watches of the others fall silent, and then whoever leads by now ends in order.
    Handover,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectFault {
    /// The target is deleted, and another one of its name comes.
    TargetReplaced,
    /// Somebody scales the target by hand.
    ScaledTo(u32),
    /// A second HPA scales the target.
    SecondScaler,
    /// Bounds that contradict each other.
    MinAboveMax,
    /// Other bounds.
    Bounds(u32, u32),
    /// A specification that makes no sense: the shape of this number.
    Malformed(u8),
    /// The object is removed, and another one of its name comes.
    Removed,
    /// The same, and history is forgotten before a watch has told of it.
    Unseen,
    /// The same, while whoever leads waits for an answer of Prometheus: between what it collects and the plan.
    Midway,
    /// It serves a model of another name.
    Renamed,
    /// It belongs to another instance.
    Moved,
    /// Its accelerator has another name.
    Relabelled,
    /// Another object names the same target.
    Contested,
    /// So many objects come at once.
    Crowd(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    /// Another interval.
    Interval(u64),
    /// Other thresholds.
    Thresholds(u64),
    /// A key that is read at start alone: which one, and its value, is drawn from this number.
    Immutable(u64),
    /// Text that nobody can read: which one, and where, is drawn from this number.
    BrokenYaml(u64),
    /// A value that does not parse.
    BadValue,
    /// The main ConfigMap is deleted.
    Deleted,
    /// The ConfigMap of analyzers and limiters is deleted.
    SaturationDeleted,
    /// A ConfigMap is deleted and at once created again: of those that there are, the one of this number.
    Recreated(u8),
    /// So many edits, one after another.
    Storm(u64),
    /// The model that may go to zero may not.
    ZeroForbidden,
    /// It may when it has been idle for ten times as long.
    ZeroLater,
    /// The ConfigMap that allows it to is deleted.
    ZeroDeleted,
    /// A model whose bounds keep it from zero may go there.
    ZeroAllowed,
    /// Some key gets some value: what is drawn from this number.
    Random(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkloadFaultKind {
    /// Containers die.
    Crash(usize),
    /// Pods are evicted.
    Evict(usize),
    /// A node does not answer; the number is that of the node.
    NodeLost,
    /// New pods are never ready.
    NeverReady,
    /// New pods take ten times as long.
    SlowStart,
    /// Pods die again and again.
    Flapping,
    /// Nodes take no pods.
    Shortage,
}

impl ProcessFault {
    pub(super) fn is_at_a_write(self) -> bool {
        matches!(
            self,
            Self::BeforeWrite | Self::DuringWrite | Self::AfterWrite | Self::EveryWrite
        )
    }

    /// Where it is to end at a write in each of its lives: after how many others, and when. So each life comes to
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
    /// By how much each event of a watch of this kind is late.
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
    /// The same, with this controller in place of the leader.
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
        match self {
            Self::Api(..) => Class::ApiServer,
            Self::Prometheus(..) => Class::Prometheus,
            Self::Actor(..) => Class::Actors,
            Self::Controller(..) => Class::Controllers,
            Self::Object(..) => Class::Objects,
            Self::Settings(_) => Class::Settings,
            Self::Workload(..) => Class::Workloads,
            Self::Autoscaler(..) => Class::Autoscalers,
        }
    }

    /// What goes wrong, without whom it meets.
    fn fault(&self) -> &dyn fmt::Debug {
        match self {
            Self::Api(_, fault) => fault,
            Self::Prometheus(_, fault) => fault,
            Self::Actor(_, fault) => fault,
            Self::Controller(_, fault) => fault,
            Self::Object(_, fault) => fault,
            Self::Settings(fault) => fault,
            Self::Workload(_, fault) => fault,
            Self::Autoscaler(_, fault) => fault,
        }
    }

    /// Its kind, for tables: without numbers other than a status.
    pub(crate) fn kind(&self) -> String {
        let status = match self {
            Self::Api(_, Api::Refuse(status, _)) | Self::Prometheus(_, Prom::Status(status)) => {
                format!("-{status}")
            }
            _ => String::new(),
        };
        let text = format!("{:?}", self.fault());
        let name = text.split(['(', ' ', '{']).next().unwrap_or_default();
        format!("{}/{}{status}", self.class().as_str(), kebab(name))
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

/// Its kind, with its numbers.
impl fmt::Display for ChaosFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.kind())?;
        let fault = self.fault();
        match self {
            Self::Actor(whom, fault) => write!(formatter, " {} {fault}", whose(*whom)),
            Self::Controller(whom, _) => write!(formatter, " {}", whose(*whom)),
            Self::Object(whom, _) | Self::Workload(whom, _) => {
                write!(formatter, " v{whom} {fault:?}")
            }
            Self::Settings(_) => write!(formatter, " {fault:?}"),
            Self::Api(whom, _) | Self::Prometheus(whom, _) | Self::Autoscaler(whom, _) => {
                write!(formatter, " {} {fault:?}", whose(*whom))
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

impl fmt::Display for RoleFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Several(roles) => {
                let names: Vec<String> = roles.iter().map(ToString::to_string).collect();
                formatter.write_str(&names.join(","))
            }
            Self::Torn(role, done) => write!(formatter, "{role} after {done}"),
            Self::Kill(role)
            | Self::Before(role)
            | Self::After(role)
            | Self::Panic(role)
            | Self::Hang(role)
            | Self::Abort(role)
            | Self::Storm(role) => role.fmt(formatter),
        }
    }
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
        let all: Vec<_> = (0..=255)
            .map(|drawn| late(Api::Uneven(time, drawn)))
            .collect();
        for kind in 0..kinds.len() {
            let count = all.iter().filter(|late| late[kind]).count();
            assert!((96..160).contains(&count), "{count}");
        }
        // What pods tell and what their owners do come in either order.
        for order in [[true, false], [false, true]] {
            assert!(all.iter().any(|late| late[..2] == order));
        }
        assert_eq!(all[7], late(Api::Uneven(time, 7)));
    }
}
