//! The one place that judges settings: builds the next generation from all sources, refuses what
//! may not change, and says so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::actors::collector::CollectorMessage;
use crate::actors::mailboxes::Mailboxes;
use crate::actors::optimizer::OptimizerMessage;
use crate::cluster::event::{EventNotice, EventReason, Regarding};
use crate::cluster::mirror::ObjectKey;
use crate::cluster::project::config_map::ConfigMapObject;
use crate::policy::filter::{ConfigReach, Tracking};
use crate::settings::config_maps::{ConfigMapView, gather};
use crate::settings::generation::{Generation, GenerationTransition, SettingChange, transition};
use crate::settings::problem::{Diagnostics, Severity, Warning};
use crate::settings::purpose::Purpose;
use crate::settings::rejection::{REJECTION_LOG, Rejected, rejection_error, rejection_event};
use crate::settings::schema::{self, SettingState};
use crate::settings::sources::Sources;
use crate::state::findings::{ReportedFindings, lines};
use crate::state::{ConfigWriters, InForce, Readers};
use crate::telemetry::LevelHandle;
use wva_base::moment::Moment;
use wva_supervise::{Context, Epoch, Event, StateMachine};

#[cfg(test)]
mod tests;

#[derive(Debug)]
pub(crate) enum ConfigMessage {
    /// A ConfigMap or a namespace changed, or variants came or went.
    SourceChanged,
}

#[derive(Debug)]
pub(crate) enum ConfigEffect {
    /// Put a generation in force, and log what changed.
    Publish(Generation, Vec<SettingChange>),
    Refuse(Vec<Rejected>),
    /// Say what was found on the way.
    Report(Diagnostics),
}

#[derive(Debug)]
pub(crate) struct Config {
    shared: Readers,
    writers: Arc<ConfigWriters>,
    epoch: Epoch,
    /// Flags, environment and file; the rest is read from the mirrors.
    fixed: Sources,
    mailboxes: Arc<Mailboxes>,
    levels: Option<LevelHandle>,
}

impl Config {
    pub(crate) fn new(
        shared: Readers,
        writers: Arc<ConfigWriters>,
        epoch: &Epoch,
        fixed: Sources,
        mailboxes: Arc<Mailboxes>,
        levels: Option<LevelHandle>,
    ) -> Self {
        Self { shared, writers, epoch: epoch.clone(), fixed, mailboxes, levels }
    }

    /// All sources as they are now, or `None` while ConfigMaps have not been listed.
    fn sources(&self) -> Option<(Sources, Vec<Warning>)> {
        let objects = self.shared.mirrors.all_config_maps()?;
        let in_force = self.shared.settings.load();
        let names = &in_force.generation.statics.config_maps;
        let views = objects.iter().map(|object| ConfigMapView {
            namespace: &object.namespace,
            name: &object.name,
            data: &object.data,
        });
        let mut sources = self.fixed.clone();
        let local = |namespace: &str| self.reach(namespace) == ConfigReach::Local;
        let notices = gather(
            &mut sources,
            names,
            &self.shared.mirrors.scope().system_namespace,
            local,
            views,
        );
        Some((sources, notices))
    }

    fn reach(&self, namespace: &str) -> ConfigReach {
        let mirrors = &self.shared.mirrors;
        let object = mirrors.namespaces.get(&ObjectKey::new("", namespace));
        let mut variants = mirrors.variants_in(namespace).into_iter();
        let has_variants = variants.any(|key| mirrors.managed(&key).is_some());
        let tracking = if has_variants { Tracking::Tracked } else { Tracking::Untracked };
        let scope = mirrors.scope();
        scope.reach(namespace, object.as_deref(), tracking)
    }

    fn review(&self, effects: &mut Vec<ConfigEffect>) {
        if self.shared.hooks.ignores_sources(self.epoch.number()) {
            return;
        }
        let Some((sources, notices)) = self.sources() else {
            return;
        };
        let current = self.shared.settings.load();
        let GenerationTransition { next, changes, rejected, mut diagnostics } =
            transition(&current.generation, &sources);
        diagnostics.notices.extend(notices);
        let hooks = &self.shared.hooks;
        let next = hooks.next_generation(&current.generation, next, &sources);
        if let Some(next) = next {
            effects.push(ConfigEffect::Publish(next, changes));
        }
        effects.push(ConfigEffect::Refuse(rejected));
        effects.push(ConfigEffect::Report(diagnostics));
    }

    fn publish(&self, now: Moment, generation: Generation, changes: Vec<SettingChange>) {
        let schedule = self.shared.settings.load().schedule;
        let schedule = schedule.with_interval(now, generation.dynamic.interval);
        let in_force = Arc::new(InForce { generation, schedule });
        let published = Arc::clone(&in_force);
        if self.writers.settings.publish(&self.epoch, published).is_err() {
            // A younger life of this role has judged the same sources.
            return;
        }
        if let Some(levels) = &self.levels {
            levels.set(in_force.generation.log_level().as_str());
        }
        self.shared.series.show_settings(&in_force.generation);
        for change in changes {
            tracing::info!(
                key = change.key,
                namespace = change.namespace.as_deref(),
                old = change.old,
                new = change.new,
                entries = ?change.entries,
                "{}",
                change.message
            );
            if let Some(state) = effectless(change.key) {
                tracing::info!(remark = %format!("{} is {state}", change.key), "about settings");
            }
        }
        // Both read the settings when they come back.
        let addresses = &self.mailboxes.addresses;
        let collector = &addresses.collector;
        collector.hint(CollectorMessage::GenerationChanged);
        let optimizer = &addresses.optimizer;
        optimizer.hint(OptimizerMessage::GenerationChanged);
    }

    /// The map that is read for a purpose: under its current name, else under an older one.
    fn config_map_for(&self, purpose: Purpose, namespace: &str) -> Option<Arc<ConfigMapObject>> {
        let in_force = self.shared.settings.load();
        let mut names = in_force.generation.statics.config_maps.names(purpose);
        names.find_map(|name| {
            let key = ObjectKey::new(namespace, name);
            self.shared.mirrors.config_map(&key)
        })
    }

    /// Notes what is reported; `None` where a younger life has noted already.
    fn note<R>(&self, change: impl FnOnce(&mut ReportedFindings) -> R) -> Option<R> {
        self.writers.findings.update(&self.epoch, change).ok()
    }

    /// Once per version of the ConfigMap, all refused keys together.
    fn refuse(&self, rejected: &[Rejected]) {
        let system = &self.shared.mirrors.scope().system_namespace;
        let object = self.config_map_for(Purpose::Main, system);
        let known = object.as_ref().map(|object| {
            let version = Arc::clone(&object.resource_version);
            (version, rejected.to_vec())
        });
        let known_before = self.note(|found| std::mem::replace(&mut found.refused, known.clone()));
        let is_new = known_before.is_some_and(|before| before != known);
        let Some(object) = object.filter(|_| is_new) else {
            return;
        };
        if rejected.is_empty() {
            return;
        }
        let note = rejection_event(&object.namespace, &object.name, rejected);
        // The event may have to leave values out; the log does not.
        let every = rejection_error(rejected);
        tracing::error!(config_map = &*object.name, note = every, "{REJECTION_LOG}");
        for key in rejected {
            self.shared.series.config.rejected.with_label_values(&[key.key]).inc();
        }
        let event = notice(&object, EventReason::ImmutableConfigChangeRejected, "Reject", note);
        let now = self.shared.clock.now();
        self.mailboxes.events.throw_always(now, event);
    }

    fn report(&self, diagnostics: &Diagnostics) {
        if self.shared.findings.load().diagnostics == *diagnostics {
            return;
        }
        let logged = self.note(|found| {
            found.diagnostics = diagnostics.clone();
            std::mem::replace(&mut found.logged, lines(diagnostics).collect())
        });
        // A younger life of this role has reported the same findings.
        let Some(logged) = logged else { return };
        self.shared.series.config.entries_invalid.reset();
        for ((purpose, namespace), count) in diagnostics.invalid_entries() {
            let place = namespace.as_deref().unwrap_or("");
            let gauge = &self.shared.series.config.entries_invalid;
            gauge
                .with_label_values(&[purpose.as_str(), place])
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.report_mistakes(diagnostics, &logged);
        for remark in &diagnostics.notices {
            if !logged.contains(&remark.to_string()) {
                log_notice(remark);
            }
        }
    }

    /// One line for each problem that is new, and one event per ConfigMap with everything that is wrong with it or
    /// means nothing, when that is something else than before.
    fn report_mistakes(&self, diagnostics: &Diagnostics, logged: &BTreeSet<String>) {
        for problem in &diagnostics.problems {
            if !logged.contains(&problem.subject()) {
                tracing::error!(%problem, "setting refused");
                let purpose = problem.purpose().as_str();
                let refusals = &self.shared.series.config.refusals;
                refusals.with_label_values(&[purpose]).inc();
            }
        }
        let problems = diagnostics.problems.iter();
        let problems = problems.map(|problem| (problem.config_map(), problem.subject()));
        let mistakes = diagnostics.notices.iter();
        let mistakes = mistakes.filter(|remark| remark.severity() == Severity::Mistake);
        let mistakes = mistakes.filter_map(|one| Some((one.config_map()?, one.to_string())));
        let mut notes: BTreeMap<ObjectKey, (Arc<ConfigMapObject>, String)> = BTreeMap::new();
        for ((purpose, namespace), text) in problems.chain(mistakes) {
            let system = &self.shared.mirrors.scope().system_namespace;
            let namespace = namespace.map_or(&**system, |name| &**name);
            if let Some(object) = self.config_map_for(purpose, namespace) {
                let key = ObjectKey::new(Arc::clone(&object.namespace), Arc::clone(&object.name));
                let (_, note) = notes.entry(key).or_insert_with(|| (object, String::new()));
                note.push_str(if note.is_empty() { "" } else { "; " });
                note.push_str(&text);
            }
        }
        let now_noted = notes.iter().map(|(key, (_, note))| (key.clone(), note.clone())).collect();
        let before = self.note(|found| std::mem::replace(&mut found.noted, now_noted));
        let Some(before) = before else { return };
        for (key, (object, note)) in notes {
            if before.get(&key) != Some(&note) {
                let event = notice(&object, EventReason::InvalidConfigEntry, "Parse", note);
                let now = self.shared.clock.now();
                self.mailboxes.events.throw_always(now, event);
            }
        }
    }
}

/// The state of a setting that does not act, or not yet.
fn effectless(key: &str) -> Option<SettingState> {
    let spec = schema::all().find(|spec| spec.name == key)?;
    (spec.state != SettingState::Active).then_some(spec.state)
}

pub(crate) fn log_notice(remark: &Warning) {
    match remark.severity() {
        Severity::Mistake | Severity::Warning => tracing::warn!(%remark, "about settings"),
        Severity::Remark => tracing::info!(%remark, "about settings"),
    }
}

fn notice(
    object: &ConfigMapObject,
    reason: EventReason,
    action: &'static str,
    note: String,
) -> EventNotice {
    let regarding = Regarding {
        api_version: Arc::from("v1"),
        kind: Arc::from("ConfigMap"),
        namespace: Arc::clone(&object.namespace),
        name: Arc::clone(&object.name),
        uid: Arc::clone(&object.uid),
    };
    EventNotice::warning(regarding, reason, action, note)
}

impl StateMachine for Config {
    type Msg = ConfigMessage;
    type Effect = ConfigEffect;

    fn step(&mut self, _now: Moment, event: Event<Self::Msg>, effects: &mut Vec<Self::Effect>) {
        match event {
            Event::Started | Event::Message(ConfigMessage::SourceChanged) => {
                drop(self.mailboxes.config.drain());
                self.review(effects);
            }
        }
    }

    fn perform(&mut self, cx: &Context<ConfigMessage>, effect: ConfigEffect) {
        match effect {
            ConfigEffect::Publish(generation, changes) => {
                self.publish(cx.now(), generation, changes);
            }
            ConfigEffect::Refuse(rejected) => self.refuse(&rejected),
            ConfigEffect::Report(diagnostics) => self.report(&diagnostics),
        }
    }
}
