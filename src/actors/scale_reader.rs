//! Reads the scale subresources of targets whose kinds have no watcher of their own: of all of them
//! on a schedule, and of one at once when a variant or a `PodAutoscaler` names it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::{StreamExt, stream};
use kube::api::ApiResource;

use crate::actors::mailboxes::Mailboxes;
use crate::actors::pod_autoscalers::AutoscalerInvalidation;
use crate::actors::variants::Invalidation;
use crate::cluster::client::RequestError;
use crate::cluster::project::variant::VariantRecord;
use crate::cluster::scale::{
    ReadError, ReadForm, ScaleApi, ScaleKind, ScaleReading, ScaleSource, Scales, autoscaler_target,
    kind_without_watcher,
};
use crate::policy::key::TargetKey;
use crate::policy::object::SpecReading;
use crate::state::mirrors::target_of;
use crate::state::permission_reporter::PermissionReporter;
use crate::state::{Readers, ScaleReaderWriters};
use wva_base::moment::Moment;
use wva_supervise::{Actor, ActorResult, Context, Event, TimerEpoch};

/// From one round to the next, where there are few targets.
const ROUND: Duration = Duration::from_secs(5);
/// Least time of a round for each target: 20 reads a second.
const ROUND_PER_TARGET: Duration = Duration::from_millis(50);
const WIDTH: usize = 8;
/// Reads of one handled message. With what one may take that is well below the limit on silence.
const BATCH: usize = 32;

#[derive(Debug)]
pub(crate) enum ScaleReaderMessage {
    /// Targets are newly named.
    TargetNamed,
    /// To itself: time for the next round.
    Round(TimerEpoch),
    /// To itself: go on with what is waiting.
    Read,
}

/// The outcome of reading one target; `None` where it was not read.
type ReadOutcome = Option<Result<ScaleReading, ReadError>>;

#[derive(Debug, Clone)]
pub(crate) struct ScaleReader {
    shared: Readers,
    writers: Arc<ScaleReaderWriters>,
    api: ScaleApi,
    mailboxes: Arc<Mailboxes>,
    permissions: PermissionReporter,
    waiting: VecDeque<TargetKey>,
    /// Resources of kinds, as discovery answered in this round.
    resources: BTreeMap<ScaleSource, Result<ApiResource, Arc<str>>>,
    /// Until when the API server has asked to be left alone: it has too many requests, whatever they are about.
    spared: Option<Moment>,
    timer: TimerEpoch,
}

impl ScaleReader {
    pub(crate) fn new(
        shared: Readers,
        writers: Arc<ScaleReaderWriters>,
        api: ScaleApi,
        mailboxes: Arc<Mailboxes>,
        permissions: PermissionReporter,
    ) -> Self {
        Self {
            shared,
            writers,
            api,
            mailboxes,
            permissions,
            waiting: VecDeque::new(),
            resources: BTreeMap::new(),
            spared: None,
            timer: TimerEpoch::default(),
        }
    }

    /// Targets that objects of this controller name, with the version that they name them in. A `PodAutoscaler` needs
    /// the roles of a StormService, and a variant does not mind them.
    fn named(&self) -> BTreeMap<TargetKey, ScaleSource> {
        let mirrors = &self.shared.mirrors;
        let all = mirrors.all_records().into_iter();
        // Few name one of these kinds, and the owner of a variant takes longer to find.
        let named = all.filter_map(|record| {
            let target = scale_target(&record)?;
            mirrors.managed(&record.object.key).map(|_ours| target)
        });
        let all = mirrors.pod_autoscalers.all().into_iter();
        let scaled = all.filter_map(|(key, stored)| {
            let target = autoscaler_target(&stored)?;
            mirrors.managed_autoscaler(&key).map(|_ours| target)
        });
        named.chain(scaled).collect()
    }

    fn begin_round(&mut self, cx: &Context<ScaleReaderMessage>) {
        self.resources.clear();
        self.waiting = self.named().into_keys().collect();
        let count = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        let round = ROUND.max(ROUND_PER_TARGET.saturating_mul(count));
        cx.arm(round, ScaleReaderMessage::Round(self.timer.advance()));
    }

    /// Puts what was named just now first.
    fn hurry(&mut self) {
        for target in self.mailboxes.named.drain() {
            self.waiting.retain(|waiting| *waiting != target);
            self.waiting.push_front(target);
        }
    }

    /// Reads the first of those waiting, and publishes what they say.
    async fn read(&mut self, cx: &Context<ScaleReaderMessage>) -> ActorResult {
        let named = self.named();
        let batch: BTreeSet<TargetKey> = (0..BATCH)
            .map_while(|_| self.waiting.pop_front())
            .filter(|target| named.contains_key(target))
            .collect();
        for target in &batch {
            if self.is_spared(cx) {
                break;
            }
            // While no server answers, one wait is enough; what is not known is not read.
            if let Some(kind) = named.get(target)
                && let Err(error) = self.discover(kind).await
            {
                self.undiscovered(&kind.kind, &error);
                self.spare(cx, error.retry_after());
                break;
            }
        }
        let is_spared = self.is_spared(cx);
        let asked = OnceLock::new();
        let reads = batch.into_iter().map(|target| {
            let source = named.get(&target);
            let form = source.map_or(ReadForm::Scale, |source| source.form);
            let resource = source.and_then(|source| self.resources.get(source));
            let (api, resource) = (self.api.clone(), resource.cloned());
            let (hooks, asked) = (&self.shared.hooks, &asked);
            async move {
                let reading = match resource {
                    Some(Ok(_)) if is_spared || asked.get().is_some() => return (target, None),
                    Some(Ok(resource)) => api.read(&target, &resource, form).await,
                    Some(Err(why)) => Ok(ScaleReading::Unscalable(why)),
                    None => return (target, None),
                };
                if let Err(error) = &reading
                    && let Some(time) = hooks.retry_after(error.retry_after())
                {
                    asked.get_or_init(|| time);
                }
                (target, Some(reading))
            }
        });
        let readings: Vec<_> = stream::iter(reads).buffered(WIDTH).collect().await;
        self.spare(cx, asked.into_inner());
        self.report_errors(&readings);
        let is_spared = self.is_spared(cx);
        if is_spared {
            let unread = readings.iter().filter(|(_, reading)| reading.is_none());
            let unread = unread.map(|(target, _)| target.clone());
            self.waiting.extend(unread);
        }
        self.publish(cx, &named, readings)?;
        if !is_spared && !self.waiting.is_empty() {
            cx.send_self(ScaleReaderMessage::Read);
        }
        Ok(())
    }

    fn is_spared(&self, cx: &Context<ScaleReaderMessage>) -> bool {
        let now = cx.now();
        self.spared.is_some_and(|until| now.monotonic < until.monotonic)
    }

    /// Leaves the API server alone for as long as it has asked for, if it has, and goes on then.
    fn spare(&mut self, cx: &Context<ScaleReaderMessage>, asked: Option<Duration>) {
        if let Some(asked) = self.shared.hooks.retry_after(asked) {
            self.spared = self.spared.max(Some(cx.now().later(asked)));
            cx.arm(asked, ScaleReaderMessage::Read);
        }
    }

    /// Asks once a round what a kind is served as.
    async fn discover(&mut self, source: &ScaleSource) -> Result<(), RequestError> {
        if !self.resources.contains_key(source) {
            let resource = self.api.discover_source(source).await?;
            self.resources.insert(source.clone(), resource);
        }
        Ok(())
    }

    fn undiscovered(&self, kind: &ScaleKind, error: &RequestError) {
        tracing::warn!(kind = %kind.kind.kind, %error, "discovery failed");
        self.writers.requests.failed(&error.to_string());
        if error.is_denied() {
            self.permissions.report("Discover", error);
        }
    }

    /// Says how reading goes: that one of several is refused is not made up for by the others.
    fn report_errors(&self, readings: &[(TargetKey, ReadOutcome)]) {
        let asked = readings.iter().filter_map(|(_, reading)| reading.as_ref());
        let errors: Vec<&ReadError> =
            asked.clone().filter_map(|read| read.as_ref().err()).collect();
        for error in &errors {
            tracing::warn!(%error, "scale subresource not read");
            if matches!(error, ReadError::Denied { .. }) {
                self.permissions.report("Read", error);
            }
        }
        let requests = &self.writers.requests;
        match errors.first() {
            Some(error) => requests.failed(&error.to_string()),
            None if asked.count() > 0 => requests.worked(),
            None => {}
        }
    }

    /// What was not read keeps what it said before.
    fn publish(
        &self,
        cx: &Context<ScaleReaderMessage>,
        named: &BTreeMap<TargetKey, ScaleSource>,
        readings: Vec<(TargetKey, ReadOutcome)>,
    ) -> ActorResult {
        let before = self.writers.scales.load();
        let mut after: Scales = before
            .iter()
            .filter(|(target, _)| named.contains_key(target))
            .map(|(target, reading)| (target.clone(), reading.clone()))
            .collect();
        for (target, reading) in readings {
            match reading {
                Some(Ok(_)) if self.shared.hooks.keeps_scale(after.get(&target)) => {}
                Some(Ok(reading)) => {
                    after.insert(target, reading);
                }
                // What is found stays so, as with the kinds that are watched.
                Some(Err(denied @ ReadError::Denied { .. })) => {
                    let known = after.entry(target).or_insert(ScaleReading::Unanswered);
                    if !matches!(known, ScaleReading::Found(_)) {
                        *known = ScaleReading::Unscalable(denied.to_string().into());
                    }
                }
                Some(Err(ReadError::Failed(_))) | None => {
                    after.entry(target).or_insert(ScaleReading::Unanswered);
                }
            }
        }
        if *before == after {
            return Ok(());
        }
        let changed: Vec<Invalidation> = after
            .iter()
            .filter(|(target, reading)| before.get(target) != Some(reading))
            .map(|(target, _)| Invalidation::Target(target.clone()))
            .collect();
        let first = after
            .iter()
            .filter(|(target, reading)| is_known(Some(reading)) && !is_known(before.get(target)));
        let first = first.flat_map(|(target, _)| self.shared.mirrors.autoscalers_of(target));
        let first = first.map(|stored| AutoscalerInvalidation::Object(stored.key.clone()));
        let first: Vec<AutoscalerInvalidation> = first.collect();
        let scales = &self.writers.scales;
        scales.publish(cx.epoch(), Arc::new(after))?;
        self.mailboxes.dirty.insert_all(changed);
        // Of a target that is known the next tick sees what changed.
        self.mailboxes.autoscalers.insert_all(first);
        Ok(())
    }
}

fn is_known(reading: Option<&ScaleReading>) -> bool {
    !matches!(reading, None | Some(ScaleReading::Unanswered))
}

/// The target of a variant, if its kind has no watcher, and how it is read.
pub(crate) fn scale_target(record: &VariantRecord) -> Option<(TargetKey, ScaleSource)> {
    let target = target_of(record)?;
    let kind = Arc::clone(kind_without_watcher(&target)?);
    let SpecReading::Read(spec) = &record.object.spec else {
        return None;
    };
    let (_, version) = spec.target.group_version()?;
    let version = Arc::from(version);
    let source = ScaleSource { kind: ScaleKind { kind, version }, form: ReadForm::Scale };
    Some((target, source))
}

impl Actor for ScaleReader {
    type Msg = ScaleReaderMessage;

    async fn handle(&mut self, cx: &Context<Self::Msg>, event: Event<Self::Msg>) -> ActorResult {
        match event {
            Event::Message(ScaleReaderMessage::Round(timer)) if timer != self.timer => {
                return Ok(());
            }
            Event::Started | Event::Message(ScaleReaderMessage::Round(_)) => self.begin_round(cx),
            // A kind may have been defined since.
            Event::Message(ScaleReaderMessage::TargetNamed) => self.resources.clear(),
            Event::Message(ScaleReaderMessage::Read) => {}
        }
        self.hurry();
        self.read(cx).await
    }
}

#[cfg(test)]
mod tests;
