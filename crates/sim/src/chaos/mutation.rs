//! Defects that can be planted in a running controller, to see whether chaos finds them.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Mutation {
    /// Writes do not ask for a permit.
    PermitUnasked,
    /// The claim outlasts the lease.
    ClaimOverlong,
    /// The lease is taken from its holder.
    LeaseTaken,
    /// Decisions are shown, and go on being shown, without a claim.
    FollowerShows,
    /// The series of a variant that is gone stay.
    SeriesKept,
    /// Deletions that are seen in a list alone are not passed on.
    DeletionsUntold,
    /// Deletions that a watch delivers are not followed.
    DeletionsIgnored,
    /// A timer of an older epoch counts.
    DeadlineUnchecked,
    /// What holds a variant back for a limited time holds it for none: replicas that are not ready, a count
    /// that is not applied, silence. That of a ready replica goes on to keep counts from falling.
    PendingIgnored,
    /// Bounds are not applied.
    BoundsUndone,
    /// A variant without metrics is lowered.
    SilenceLowers,
    /// A variant goes to zero without being allowed to.
    ZeroUnasked,
    /// Every life of the optimizer counts cycles from one.
    CyclesFromOne,
    /// Every look at the settings makes a generation.
    GenerationRepeated,
    /// Static settings follow edits.
    StaticsFollow,
    /// A status that could not be written is forgotten.
    IntentDropped,
    /// A role that ends too often is started again all the same.
    BudgetIgnored,
    /// A role that has ended is not started again.
    RestartForgotten,
    /// Roles that stand still are not looked for.
    SweepForgotten,
    /// The ratio of a variant without replicas is no number.
    RatioUnchecked,
    /// Who begins to lead does not read anew what is stored.
    TakeoverUnread,
    /// A process that begins takes whatever is idle for idle since ever.
    IdleSinceEver,
    /// What routers say themselves is ignored.
    RoutersUnheard,
    /// What was seen once is never let go.
    SnapshotsKept,
    /// Nothing grows for the sake of load.
    NeverGrows,
    /// Counts fall for three quarters of a minute in ten minutes.
    SlowShrink,
    /// Each plan is published when the next one comes.
    PlanBehind,
    /// A config that was started again gets no messages.
    ConfigDeaf,
    /// GPUs limit nothing.
    BudgetForgotten,
    /// Series other than the desired count stay under the labels that a variant had.
    LabelsKept,
    /// A status is stored whatever the version of the object is.
    StatusUnversioned,
    /// Every third change of a pod is not noticed.
    PodsMissed,
    /// Autoscalers that are gone are still counted.
    ScalersKept,
    /// The replicas that exist are shown as more.
    CurrentInflated,
    /// A collector that was started again does not collect by itself.
    CollectorIdle,
    /// A collector that was started again has forgotten what was learned.
    LearnedLost,
    /// A variant that was started again has forgotten since when it waits.
    ClocksForgotten,
    /// However old a sample is, it is taken for fresh.
    AgeUnjudged,
    /// Whether its policy allows a model to go to zero is not asked.
    ZeroPolicyIgnored,
    /// Every tenth cycle goes on from the replicas that exist, whatever was published.
    RecordsForgotten,
    /// What is shown and stored is what the plan before the last one decided.
    ShownBehind,
    /// A status that could not be written is tried again at once, again and again.
    RetriesUnpaced,
    /// A condition that was stored as false once stays so.
    ConditionsStick,
    /// The lease is taken once the date in it and its duration have passed by the own wall clock.
    LeaseDated,
    /// What the scale of a target said when it was found is what it says for ever.
    ScalesKept,
    /// The API server is not left alone for as long as it says.
    RetryAfterIgnored,
    /// A ready replica that is silent is taken to say what another one of its variant says.
    SilenceOfSomeIgnored,
    /// Time in which a process was paused counts as time in which its roles stood still.
    PauseTakenForHang,
    /// A process ends when it loses its lease.
    ExitsWithoutLease,
    /// Who ends in order keeps its lease.
    LeaseNotReleased,
    /// A metrics page of a pod that could not be read counts as one of zeros.
    FailedReadZero,
    /// The panic of a PodAutoscaler never ends.
    PanicEndless,
    /// The window of a PodAutoscaler counts as full from its first demand on.
    WindowTakenFull,
    /// The series of a PodAutoscaler that is gone stays.
    AutoscalerSeriesKept,
    /// A PodAutoscaler grows for no load.
    AutoscalerNeverGrows,
}

impl Mutation {
    /// The seed of `storm` that found it last, where an earlier one did not: a search plays it first.
    pub(super) const fn first_seed(self) -> Option<u64> {
        Some(match self {
            Self::BudgetIgnored
            | Self::SweepForgotten
            | Self::NeverGrows
            | Self::ClocksForgotten
            | Self::ZeroPolicyIgnored
            | Self::WindowTakenFull
            | Self::FailedReadZero => 2,
            Self::SilenceOfSomeIgnored => 3,
            Self::PanicEndless => 4,
            Self::StatusUnversioned => 5,
            Self::IdleSinceEver | Self::RoutersUnheard => 6,
            Self::LabelsKept => 8,
            Self::TakeoverUnread => 10,
            Self::StaticsFollow => 13,
            Self::AutoscalerSeriesKept => 18,
            _ => return None,
        })
    }
}
