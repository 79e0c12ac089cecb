//! One watcher per kind: keeps a mirror and rings for every difference.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use tokio::time::timeout;

use crate::cluster::kinds::WatchedKind;
use crate::cluster::mirror::{MirrorError, MirrorWriter, ObjectKey, ObjectUpdate, Relist};
use crate::cluster::project::{Interner, Projected};
use crate::cluster::watch::{
    Discovery, Guarded, Malformed, Watch, WatchError, WatchEvent, WatchOptions, key_of,
};
use crate::state::Readers;
use crate::state::permission_reporter::PermissionReporter;
use crate::state::relist::RelistResponder;
use wva_supervise::{Actor, ActorError, ActorResult, Context, Event};

/// How long one occasion waits for the next event. Then it is waited for anew, so that a watcher that
/// stands still differs from one without events. Longer than a request may take.
const PULL: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(crate) enum WatcherMessage {
    /// To itself: take the next event. There is never more than one in the mailbox, so back pressure
    /// reaches the connection.
    Pull,
}

/// Whether a role reads an object.
pub(crate) type ObjectFilter<V> = Arc<dyn Fn(&V) -> bool + Send + Sync>;
/// Notifies the roles that depend on a kind.
pub(crate) type UpdateHandler<V> = Arc<dyn Fn(WatchUpdate<'_, V>) + Send + Sync>;

/// Makes a view of an object that cannot be read.
pub(crate) type MalformedReader<V> = fn(&Malformed, Option<&V>, &mut Interner) -> Option<V>;

/// What one kind needs to be watched.
pub(crate) struct WatchSpec<K: Projected> {
    pub(crate) kind: WatchedKind,
    /// Where its objects are listed and watched.
    pub(crate) api: Arc<Api<Guarded<K>>>,
    /// The same in older versions of its group.
    pub(crate) older: Arc<[Api<Guarded<K>>]>,
    /// Shows other versions; `None` where all that there are are known.
    pub(crate) discovery: Option<Discovery<K>>,
    /// What is watched, and how patiently.
    pub(crate) options: WatchOptions,
    /// Whether a role reads the object.
    pub(crate) wanted: ObjectFilter<K::View>,
    /// What is kept of an object that cannot be read, of which this is known from before; `None` treats it as absent.
    pub(crate) malformed: MalformedReader<K::View>,
    /// Where it is kept.
    pub(crate) mirror: Arc<MirrorWriter<K::View>>,
    /// Notifies the dependent roles.
    pub(crate) notify: UpdateHandler<K::View>,
    /// Requests of fresh lists; `None` where there are none.
    pub(crate) relists: Option<Arc<RelistResponder>>,
}

wva_base::debug_of!([K: Projected] WatchSpec<K>: kind);

/// What there is to publish.
#[derive(Debug)]
pub(crate) enum WatchUpdate<'a, V> {
    /// One object came, changed or went.
    Changed(&'a ObjectUpdate<V>),
    /// The mirror holds a complete list for the first time: what is missing does not exist. Or the right to list the kind
    /// was lost or came back.
    Synced,
}

pub(crate) struct Watcher<K: Projected> {
    spec: Arc<WatchSpec<K>>,
    shared: Readers,
    permissions: PermissionReporter,
    watch: Option<Watch<K>>,
    relist: Option<Relist<K::View>>,
    /// The fresh list that was asked for and that the watch began with, at least.
    rereading: u64,
    /// Whether the kind is forgotten, since no role needs it.
    rests: bool,
    texts: Interner,
}

wva_base::debug_of!([K: Projected] Watcher<K>: spec);

impl<K: Projected> Watcher<K> {
    pub(crate) fn new(
        spec: Arc<WatchSpec<K>>,
        shared: Readers,
        permissions: PermissionReporter,
    ) -> Self {
        Self {
            spec,
            shared,
            permissions,
            watch: None,
            relist: None,
            rereading: 0,
            rests: false,
            texts: Interner::default(),
        }
    }

    fn open(&self, cx: &Context<WatcherMessage>) -> Watch<K> {
        let mut generator = cx.seed().child(cx.epoch().role());
        let jitter = move |delay| generator.jitter(delay, 0.2);
        Watch::new((*self.spec.api).clone(), self.spec.options.clone(), jitter)
            .or(self.spec.older.iter().cloned())
            .or_any(self.spec.discovery.clone())
    }

    /// Forgets the kind, and waits for settings that need it, for as long as an occasion may take;
    /// whether they came.
    async fn rest(&mut self, cx: &Context<WatcherMessage>) -> Result<bool, ActorError> {
        if !self.rests {
            self.relist = None;
            // It is what knows for how long the API server is to be left alone.
            if let Some(watch) = &mut self.watch {
                watch.begin_anew();
            }
            self.spec.mirror.forget(cx.epoch())?;
            self.rests = true;
        }
        let mut settings = self.shared.settings.follow();
        let in_force = settings.wait_for(|settings| settings.needs(self.spec.kind));
        Ok(timeout(PULL, in_force).await.is_ok())
    }

    fn take_in(&mut self, cx: &Context<WatcherMessage>, event: WatchEvent<K>) -> ActorResult {
        let is_answered = !matches!(event, WatchEvent::Failed { .. });
        match event {
            WatchEvent::Restarted => self.relist = Some(self.spec.mirror.relist()),
            WatchEvent::Listed(object) => {
                let key = key_of(object.meta());
                let view = object.project(&mut self.texts);
                self.list(key, view);
            }
            WatchEvent::ListDone => self.swap(cx)?,
            WatchEvent::Applied(object) if self.misses(object.meta()) => {}
            WatchEvent::Applied(object) => {
                let key = key_of(object.meta());
                let view = object.project(&mut self.texts);
                self.apply(cx, key, view)?;
            }
            WatchEvent::Deleted(_) if self.keeps() => {}
            WatchEvent::Deleted(key) => self.delete(cx, &key)?,
            WatchEvent::Malformed(malformed) => self.malformed(cx, &malformed)?,
            WatchEvent::Alive => {}
            WatchEvent::Absent { retry_in } => self.absent(cx, retry_in)?,
            WatchEvent::Failed { error, retry_in } => self.fail(cx, &error, retry_in)?,
        }
        if is_answered {
            self.spec.mirror.touch(cx.epoch(), cx.now())?;
        }
        // While a list comes in, what is there is from before.
        if is_answered && self.relist.is_none() && self.spec.mirror.permit(cx.epoch())? {
            (self.spec.notify)(WatchUpdate::Synced);
        }
        Ok(())
    }

    /// The API server does not serve the kind.
    fn absent(&mut self, cx: &Context<WatcherMessage>, retry_in: Duration) -> ActorResult {
        let kind = self.spec.kind;
        let is_first = !self.spec.mirror.synced();
        let is_needed =
            kind == WatchedKind::VariantAutoscaling && !self.shared.mirrors.takes_annotations();
        if is_first && is_needed {
            tracing::error!(
                kind = kind.as_str(),
                "kind is not served, so no object of it is decided on: wva crds | kubectl apply --server-side -f -"
            );
        } else {
            tracing::debug!(kind = kind.as_str(), ?retry_in, "kind is not served");
        }
        for changed in self.spec.mirror.kind_absent(cx.epoch())? {
            (self.spec.notify)(WatchUpdate::Changed(&changed));
        }
        if is_first {
            (self.spec.notify)(WatchUpdate::Synced);
        }
        self.relists();
        Ok(())
    }

    fn fail(
        &self,
        cx: &Context<WatcherMessage>,
        error: &WatchError,
        retry_in: Duration,
    ) -> ActorResult {
        tracing::warn!(kind = self.spec.kind.as_str(), %error, ?retry_in, "watch failed");
        let labels = ["watcher", self.spec.kind.as_str()];
        let errors = &self.shared.series.process.errors;
        errors.with_label_values(&labels).inc();
        self.spec.mirror.fail(cx.epoch(), &error.to_string())?;
        if error.is_forbidden() {
            if self.spec.mirror.forbid(cx.epoch())? {
                (self.spec.notify)(WatchUpdate::Synced);
            }
            self.permissions.report("Watch", error);
        }
        Ok(())
    }

    fn list(&mut self, key: ObjectKey, view: K::View) {
        if let Some(relist) = &mut self.relist
            && (self.spec.wanted)(&view)
            && let Err(error) = relist.add(key, view)
        {
            tracing::error!(kind = self.spec.kind.as_str(), %error, "object left out");
        }
    }

    fn swap(&mut self, cx: &Context<WatcherMessage>) -> ActorResult {
        let Some(relist) = self.relist.take() else {
            return Ok(());
        };
        let first = !self.spec.mirror.synced();
        for changed in self.spec.mirror.replace(cx.epoch(), relist)? {
            if changed.after.is_none() && self.shared.hooks.hides_relisted_deletion() {
                continue;
            }
            (self.spec.notify)(WatchUpdate::Changed(&changed));
        }
        self.texts.sweep();
        if first {
            (self.spec.notify)(WatchUpdate::Synced);
        }
        self.relists();
        Ok(())
    }

    fn relists(&self) {
        if let Some(relists) = &self.spec.relists {
            relists.done(self.rereading);
        }
    }

    /// The next event, from a fresh list as soon as one is requested; `None` if there was none for
    /// as long as an occasion may take.
    async fn next(&mut self, cx: &Context<WatcherMessage>) -> Option<WatchEvent<K>> {
        let mut watch = match self.watch.take() {
            Some(watch) => watch,
            None => self.open(cx),
        };
        if let Some(relists) = &self.spec.relists
            && relists.asked() > self.rereading
        {
            self.rereading = relists.asked();
            watch.begin_anew();
        }
        let asked = async {
            match &self.spec.relists {
                Some(relists) => relists.is_asked_beyond(self.rereading).await,
                None => pending().await,
            }
        };
        let event = match select(pin!(asked), pin!(timeout(PULL, watch.next()))).await {
            Either::Left(_) => None,
            Either::Right((event, _)) => event.ok(),
        };
        self.watch = Some(watch);
        event
    }

    fn apply(&self, cx: &Context<WatcherMessage>, key: ObjectKey, view: K::View) -> ActorResult {
        if !(self.spec.wanted)(&view) {
            return self.delete(cx, &key);
        }
        match self.spec.mirror.apply(cx.epoch(), key, view) {
            Ok(Some(changed)) => (self.spec.notify)(WatchUpdate::Changed(&changed)),
            Ok(None) => {}
            Err(error @ MirrorError::Full { .. }) => {
                tracing::error!(kind = self.spec.kind.as_str(), %error, "object left out");
            }
            Err(error @ MirrorError::Superseded(_)) => return Err(error.into()),
        }
        Ok(())
    }

    fn delete(&self, cx: &Context<WatcherMessage>, key: &ObjectKey) -> ActorResult {
        if let Some(changed) = self.spec.mirror.delete(cx.epoch(), key)? {
            (self.spec.notify)(WatchUpdate::Changed(&changed));
        }
        Ok(())
    }

    fn misses(&self, metadata: &ObjectMeta) -> bool {
        self.shared.hooks.misses_change(self.spec.kind, metadata)
            && self.spec.mirror.get(&key_of(metadata)).is_some()
    }

    /// Whether deleted objects stay, by a hook.
    fn keeps(&self) -> bool {
        self.shared.hooks.keeps_deleted(self.spec.kind)
    }

    fn malformed(&mut self, cx: &Context<WatcherMessage>, malformed: &Malformed) -> ActorResult {
        let key = malformed.key();
        tracing::warn!(kind = self.spec.kind.as_str(), error = %malformed, "object cannot be read");
        let before = self.spec.mirror.get(&key);
        let view = (self.spec.malformed)(malformed, before.as_deref(), &mut self.texts);
        match (view, self.relist.is_some()) {
            (Some(view), true) => self.list(key, view),
            (Some(view), false) => self.apply(cx, key, view)?,
            (None, true) => {}
            (None, false) => self.delete(cx, &key)?,
        }
        Ok(())
    }
}

impl<K: Projected> Actor for Watcher<K> {
    type Msg = WatcherMessage;

    async fn handle(&mut self, cx: &Context<Self::Msg>, _event: Event<Self::Msg>) -> ActorResult {
        if !self.shared.settings.load().needs(self.spec.kind) {
            let is_needed = self.rest(cx).await?;
            if !is_needed {
                cx.send_self(WatcherMessage::Pull);
                return Ok(());
            }
        }
        self.rests = false;
        if let Some(event) = self.next(cx).await {
            self.take_in(cx, event)?;
        }
        cx.send_self(WatcherMessage::Pull);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
