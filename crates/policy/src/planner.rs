//! The planning cycle: from what is known to one decision per variant.

mod cancelled;
mod gates;
mod hybrid;
mod limits;
mod multi_analyzer;
mod parallel;
mod rescaled;
mod scale_down_memory;
mod scale_to_zero;
mod unserved;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rescaled::Sharing;

use super::analyzers::{
    AnalyzedModel, AnalyzerInputs, DecisionMode, InputsFor, analyzer_inputs, decision_mode,
};
use super::bounds::{Bounds, ZeroPolicy};
use super::capacity::ServingRole;
use super::group::{Group, group_by_model};
use super::key::{ModelKey, VariantKey};
use super::learned::Learned;
use super::observations;
use super::pending_decision::{PendingDecision, RecentStarts};
use super::plan::{
    Decision, DecisionOutcome, ModelFigures, Plan, SaturationFigures, VariantFigures,
};
use super::reason::{MetricsState, TargetProblem};
use super::safety_net;
use super::sample_reader::SampleReader;
use super::saturation::{self, SaturationAnalysis};
use super::slo::SloReport;
use super::snapshot::{ClusterSnapshot, Readiness, ResolvedTarget, TargetView, VariantView};
use super::startup::{StartOutlook, StartSeeds, StartSource, VariantOutlook};
use super::tier;
use super::transition::Transitions;
use super::zero::Kept;
use crate::params::{DynamicSettings, SaturationPolicy, TransitionLimits};
use wva_base::moment::Moment;

/// Decides a count for every variant of the snapshot. Models are independent of each other, apart
/// from GPUs that they share: one that cannot be analysed is kept by the safety net and costs the
/// others nothing.
pub fn plan(
    snapshot: &ClusterSnapshot,
    learned: &Learned,
    settings: &DynamicSettings,
    generation: u64,
    now: Moment,
) -> Plan {
    // First: the tier of a model selects the policy that every stage reads.
    let settings = &*tier::tiered(settings, snapshot);
    let seeds = StartSeeds::of(snapshot, settings);
    let cycle = Cycle {
        learned,
        settings,
        seeds: &seeds,
        reader: SampleReader::of(snapshot, settings, now),
        now,
    };
    let groups = group_by_model(snapshot);
    let models: Vec<_> = groups.iter().collect();
    // Without GPU limits no model depends on another, so threads share them out.
    let mut works = parallel::map(&models, |(model, group)| cycle.open(model, group));
    // Models draw from common pools, so limits come once the growth of each is known.
    let mut pools = limits::apply(&cycle, snapshot, &mut works);
    // Limits mark what a shared budget took, which stays taken. Unapplied releases still hold their GPUs.
    cancelled::apply(&cycle, &mut works);
    // The refusal of a start is final once all growth is served, and a cancelled release may make it needless.
    scale_to_zero::apply(&cycle, &mut works, pools.as_mut());
    // Starts hold GPUs and raise counts, so only now it is known which variants wait for GPUs, and for whose.
    if let Some(pools) = &pools {
        limits::mark_minima(&mut works, pools);
        limits::mark_held(&mut works, pools);
    }
    // Last: it names what the stages before left waiting, and a start counts as on its way.
    unserved::apply(&cycle, &mut works);
    let pools = pools.map_or_else(Vec::new, |pools| limits::figures(&works, &pools));
    let (mut decisions, mut models) = (Vec::with_capacity(snapshot.variants.len()), Vec::new());
    for work in works {
        models.extend(work.finish(&mut decisions));
    }
    let mut plan = Plan {
        cycle: snapshot.cycle,
        generation,
        at: now,
        decisions: decisions.into_iter().collect(),
        models: models.into_iter().collect(),
        pools,
    };
    tier::note(&mut plan, snapshot, settings);
    tier::note_classes(&mut plan, snapshot, settings);
    note_unreachable(&mut plan);
    plan
}

/// Notes at decisions that an objective is out of reach.
fn note_unreachable(plan: &mut Plan) {
    let reports = plan.models.values().filter_map(|figures| figures.slo.as_ref());
    for (variant, text) in reports.flat_map(SloReport::unreachable) {
        if let Some(decision) = plan.decisions.get_mut(variant) {
            decision.notes.push(text);
        }
    }
}

#[derive(Debug)]
struct Work<'a> {
    key: &'a ModelKey,
    group: &'a Group<'a>,
    /// Of its samples.
    reader: SampleReader<'a>,
    zero: ZeroPolicy,
    policy: SaturationPolicy,
    approach: DecisionMode,
    inputs: OnceCell<AnalyzerInputs>,
    drafts: Vec<PendingDecision<'a>>,
    figures: Option<ModelFigures>,
    growth: Option<multi_analyzer::Growth>,
    sharing: Sharing,
}

impl<'a> Work<'a> {
    fn subject(&self, cycle: &Cycle<'a>) -> AnalyzedModel<'a> {
        AnalyzedModel {
            members: &self.group.resolved,
            reader: self.reader,
            outlook: cycle.outlook(),
        }
    }

    fn inputs(&self, cycle: &Cycle<'a>) -> &AnalyzerInputs {
        self.inputs.get_or_init(|| {
            let (subject, configs) = (self.subject(cycle), self.approach.configs());
            let asked = (&*configs, InputsFor::Analyzers);
            analyzer_inputs(self.key, subject, asked, cycle.settings, &self.policy)
        })
    }

    /// Its figures, if there are any.
    fn finish(
        self,
        decisions: &mut Vec<(VariantKey, Decision)>,
    ) -> Option<(ModelKey, ModelFigures)> {
        let figures = self.figures.map(|mut figures| {
            figures.starts = (self.drafts.iter())
                .filter(|draft| draft.start.source == StartSource::Measured)
                .map(|draft| (draft.view.key.clone(), draft.start))
                .collect();
            (self.key.clone(), figures)
        });
        let resolved = self.drafts.into_iter().map(PendingDecision::finish);
        let others = self.group.others.iter();
        let others = others.map(|view| plan_other(view, self.zero));
        for mut decision in resolved.chain(others) {
            decision.actuation = self.policy.actuation;
            decisions.push((decision.key.clone(), decision));
        }
        figures
    }
}

#[derive(Debug, Clone, Copy)]
struct Cycle<'a> {
    learned: &'a Learned,
    settings: &'a DynamicSettings,
    seeds: &'a StartSeeds,
    reader: SampleReader<'a>,
    now: Moment,
}

impl<'a> Cycle<'a> {
    fn outlook(&self) -> StartOutlook<'a> {
        StartOutlook {
            starts: &self.learned.starts,
            seeds: self.seeds,
            pending: self.settings.transition_limits.pending,
            now: self.now,
        }
    }

    /// The start from zero that a variant keeps its replica for; perhaps one since the last collection,
    /// which cannot know who asked for it.
    fn woken(&self, model: &ModelKey, draft: &PendingDecision<'_>) -> Option<Kept> {
        let retention = self.settings.scale_to_zero.retention(model);
        let hold = draft.start.pending_limit(retention);
        if observations::is_started(draft.view, self.learned, self.now) {
            let ago = Duration::ZERO;
            return Some(Kept { ago, hold });
        }
        self.learned.wakes.kept(&draft.view.key, hold, self.now)
    }

    fn open(&self, model: &'a ModelKey, group: &'a Group<'a>) -> Work<'a> {
        let zero = ZeroPolicy::from(self.settings.may_go_to_zero(model));
        let policy = self.settings.saturation.policy(model);
        let members: Vec<&VariantView> = group.resolved.iter().map(|(view, _)| *view).collect();
        let reader = self.reader.of_model(model);
        let (analysis, figures) = saturation::analyze(&members, reader, &policy.thresholds);
        let mut work = Work {
            key: model,
            group,
            reader,
            zero,
            approach: decision_mode(self.settings, &policy),
            policy,
            inputs: OnceCell::new(),
            drafts: self.drafts(group, figures, zero),
            figures: None,
            growth: None,
            sharing: Sharing::None,
        };
        if !work.drafts.is_empty() {
            match work.approach.clone() {
                DecisionMode::Percentage => {
                    self.percentage(&mut work, &analysis);
                }
                DecisionMode::MultiAnalyzer(configs) => {
                    multi_analyzer::decide(self, &mut work, &analysis, &configs);
                }
                DecisionMode::Hybrid { saturation, model } => {
                    hybrid::decide(self, &mut work, &analysis, saturation, model);
                }
            }
            if !work.approach.remembers_needs() {
                scale_down_memory::hold(self, &mut work);
            }
            unserved::act(self, &mut work);
        }
        work.inputs.take();
        work
    }

    fn drafts(
        &self,
        group: &Group<'a>,
        figures: Vec<VariantFigures>,
        zero: ZeroPolicy,
    ) -> Vec<PendingDecision<'a>> {
        group
            .resolved
            .iter()
            .zip(figures)
            .map(|((view, target), figures)| {
                let limits = &self.settings.transition_limits;
                let VariantOutlook { estimate: start, prospect, .. } = self.outlook().of(&view.key);
                let limits =
                    TransitionLimits { pending: start.pending_limit(limits.pending), ..*limits };
                let transitions = Transitions::of(
                    view,
                    target,
                    &figures,
                    &self.learned.reporting,
                    &limits,
                    self.now,
                );
                let bounds = Bounds::effective(&view.bounds, zero);
                let mut draft =
                    PendingDecision::new(view, target, figures, transitions, bounds, start);
                draft.recent_starts = self.recent_starts(view, target, limits.pending);
                draft.prospect = prospect;
                draft
            })
            .collect()
    }

    /// The replicas of a variant that started within the time that peaks reach back: older replicas may
    /// show the load that these were started for. A replica that is ready once more, long after its
    /// creation, has not started, and while one is on its way another rule holds.
    fn recent_starts(
        &self,
        view: &VariantView,
        target: &ResolvedTarget,
        limit: Duration,
    ) -> RecentStarts {
        let reach = self.reader.reach();
        let mut recent = RecentStarts::default();
        let ready = (view.pods.iter()).filter(|pod| pod.readiness == Readiness::Ready);
        for pod in ready {
            let starts = (pod.ready_since).filter(|ready| ready.since(pod.created) <= limit);
            let ago = starts.map(|ready| self.now.wall.since(ready));
            match ago.filter(|ago| *ago < reach) {
                Some(ago) => recent.last = Some(recent.last.map_or(ago, |last| last.min(ago))),
                None => recent.has_older = true,
            }
        }
        if target.is_pending() {
            recent.last = None;
        }
        recent
    }

    fn is_reporting(&self, draft: &PendingDecision<'_>) -> bool {
        draft.figures.reporting > 0 || self.reader.is_reporting(draft.view)
    }

    fn unusable(&self, drafts: &[PendingDecision<'_>]) -> Option<MetricsState> {
        if self.reader.awaits_collection() {
            Some(MetricsState::NotCollected)
        } else if self.reader.has_failed() {
            Some(MetricsState::QueryFailed)
        } else if self.reader.has_expired() {
            Some(MetricsState::Stale)
        } else if drafts.iter().any(|draft| draft.figures.reporting > 0) {
            None
        } else if drafts.iter().any(|draft| draft.figures.outdated > 0) {
            Some(MetricsState::Stale)
        } else {
            Some(MetricsState::Missing)
        }
    }

    /// V1, or the safety net; whether it could be analysed.
    fn percentage(&self, work: &mut Work<'_>, analysis: &SaturationAnalysis) -> bool {
        if let Some(state) = self.unusable(&work.drafts) {
            gates::name(&mut work.drafts);
            let queue = multi_analyzer::held_queue(self, work, state);
            safety_net::hold(&mut work.drafts, state, queue);
            return false;
        }
        let by_role = Self::by_role(work, analysis);
        work.figures = Some(ModelFigures {
            percentage: Some(analysis.figures),
            percentage_by_role: by_role,
            ..ModelFigures::default()
        });
        true
    }

    /// Decides each part of a request by its own replicas: what prefill has to spare is of no use to
    /// decode. Nothing shrinks while a variant of the model is in transition. Returns the figures of
    /// each part; none where every variant serves whole requests.
    fn by_role(
        work: &mut Work<'_>,
        analysis: &SaturationAnalysis,
    ) -> BTreeMap<ServingRole, SaturationFigures> {
        let role = |draft: &PendingDecision<'_>| draft.view.template.role;
        let unseen = work.group.unseen();
        let roles: BTreeSet<ServingRole> = work.drafts.iter().map(role).collect();
        if roles.len() <= 1 {
            saturation::decide(&mut work.drafts, analysis, &unseen);
            return BTreeMap::new();
        }
        let holds = |draft: &&PendingDecision<'_>| draft.transitions.hold_shrink_of_model();
        let moving: Vec<(ServingRole, &VariantKey)> = (work.drafts.iter().filter(holds))
            .map(|draft| (role(draft), &draft.view.key))
            .collect();
        work.drafts.sort_by_key(role);
        let figures = (work.drafts)
            .chunk_by_mut(|one, other| role(one) == role(other))
            .filter_map(|drafts| {
                let own = role(drafts.first()?);
                let members: Vec<&VariantView> = drafts.iter().map(|draft| draft.view).collect();
                let partners = moving.iter().filter(|(role, _)| *role != own);
                let waits: Vec<&VariantKey> =
                    (unseen.iter().copied()).chain(partners.map(|(_, key)| *key)).collect();
                let thresholds = &work.policy.thresholds;
                let (analysis, _) = saturation::analyze(&members, work.reader, thresholds);
                saturation::decide(drafts, &analysis, &waits);
                Some((own, analysis.figures))
            })
            .collect();
        work.drafts.sort_by(|one, other| one.view.key.cmp(&other.view.key));
        figures
    }
}

fn plan_other(view: &VariantView, policy: ZeroPolicy) -> Decision {
    let unmanaged = |problem| safety_net::unpublished(view, problem, DecisionOutcome::Unmanaged);
    match &view.target {
        TargetView::Resolved(_) | TargetView::Unknown { .. } => {
            let bounds = Bounds::effective(&view.bounds, policy);
            safety_net::hold_unseen(view, TargetProblem::Unknown, Some(&bounds))
        }
        TargetView::Malformed { .. } => {
            safety_net::hold_unseen(view, TargetProblem::Malformed, None)
        }
        TargetView::NotFound { .. } => unmanaged(TargetProblem::NotFound),
        TargetView::Contested { .. } => unmanaged(TargetProblem::Contested),
        TargetView::UnsupportedKind { .. } => unmanaged(TargetProblem::UnsupportedKind),
    }
}
