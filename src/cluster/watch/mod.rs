//! The objects of one kind as a sequence of events: a list, then its changes, for ever.
//!
//! The steps are our own, over the client's single list and watch requests. The library's
//! `watcher` gives no deadline to a list and none to the opening of a watch, hides the bookmarks
//! that prove a quiet watch alive, takes a broken connection for a regular end, and after an answer
//! of 410 requests the same old version again.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::Resource;
use kube::api::{Api, ListParams, WatchEvent as Notice, WatchParams};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until, timeout_at};

pub(crate) use self::discovery::Discovery;
pub(crate) use self::event::{WatchError, WatchEvent};
pub use self::guarded::{Guarded, key_of};
pub(crate) use self::guarded::{Malformed, ServedVersion};
use super::client::within;
use wva_base::backoff::Backoff;

mod discovery;
mod event;
mod guarded;

/// Delays after failures in a row: those of the library, but growing also while lists fail.
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(800), cap: Duration::from_secs(10) };

/// Delays between lists of a kind that is not served.
const ABSENCE: Backoff = Backoff { base: Duration::from_secs(2), cap: Duration::from_secs(30) };

/// How far from its agreed length a watch may end and count as having ended regularly.
const END_MARGIN: Duration = Duration::from_secs(5);

/// What to watch, and how patiently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchOptions {
    /// Only objects with these labels, in the syntax of a label selector.
    pub labels: Option<String>,
    /// Only objects with these fields, in the syntax of a field selector.
    pub fields: Option<String>,
    /// Objects in one page of a list; pages of large objects should be small.
    pub page_size: u32,
    /// Longest wait for one page of a list, or for a watch to open.
    pub request_deadline: Duration,
    /// How long one watch request lasts by agreement with the server.
    pub watch_length: Duration,
    /// How long after a list a fresh one is made, jitter apart. Only that finds out that the
    /// server was set back to an older state: it accepts a watch from a version it has yet to
    /// reach, and says nothing.
    pub relist_every: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            labels: None,
            fields: None,
            page_size: 500,
            request_deadline: Duration::from_secs(30),
            watch_length: Duration::from_secs(290),
            relist_every: Duration::from_mins(10),
        }
    }
}

type Notices<K> = BoxStream<'static, kube::Result<Notice<Guarded<K>>>>;

enum Phase<K> {
    /// Ask for a page: the first one, or the one that the token stands for.
    Listing {
        token: Option<String>,
    },
    Handing {
        page: std::vec::IntoIter<Guarded<K>>,
        then: AfterPage,
    },
    Opening {
        version: String,
    },
    Following {
        version: String,
        notices: Notices<K>,
        since: Instant,
    },
}

enum AfterPage {
    Page {
        token: String,
    },
    /// Nothing: the list is complete and has this version.
    Watch {
        version: String,
    },
}

/// A list and watch of one kind that never ends.
pub struct Watch<K> {
    /// The version that is asked for, then others in which the kind may be served.
    apis: VecDeque<Api<Guarded<K>>>,
    discovery: Option<Discovery<K>>,
    /// Versions in a row that were asked for in vain.
    unserved: usize,
    options: WatchOptions,
    jitter: Box<dyn FnMut(Duration) -> Duration + Send>,
    phase: Phase<K>,
    /// Failures since the server last said something on a watch. A list that succeeds is no sign
    /// of health: the watch after it may fail for ever.
    failures: usize,
    absences: usize,
    resume: Option<Instant>,
    /// Until when the server has asked to be left alone.
    spared: Option<Instant>,
    relist: Instant,
}

wva_base::debug_of!([K] Watch<K>: options, failures);

impl<K> Watch<K>
where
    K: Resource<DynamicType = ()> + Clone + fmt::Debug + DeserializeOwned + Send + 'static,
{
    /// Watches the objects that `api` covers. Every delay goes through `jitter`.
    pub fn new(
        api: Api<Guarded<K>>,
        options: WatchOptions,
        jitter: impl FnMut(Duration) -> Duration + Send + 'static,
    ) -> Self {
        Self {
            apis: VecDeque::from([api]),
            discovery: None,
            unserved: 0,
            options,
            jitter: Box::new(jitter),
            phase: Phase::Listing { token: None },
            failures: 0,
            absences: 0,
            resume: None,
            spared: None,
            relist: Instant::now(),
        }
    }

    /// Watches what the first of these covers that is served, where the server does not serve that of `new`.
    #[must_use]
    pub fn or(mut self, older: impl IntoIterator<Item = Api<Guarded<K>>>) -> Self {
        self.apis.extend(older);
        self
    }

    /// Watches what discovery shows, where the server serves none of these.
    #[must_use]
    pub fn or_any(mut self, discovery: Option<Discovery<K>>) -> Self {
        self.discovery = discovery;
        self
    }

    /// The next event, however long it takes. Dropping the future loses no event: at most, a
    /// request is made again.
    pub async fn next(&mut self) -> WatchEvent<K> {
        if let Some(resume) = self.resume {
            sleep_until(resume).await;
            self.resume = None;
        }
        loop {
            let event = match &mut self.phase {
                Phase::Listing { .. } => self.list().await,
                Phase::Handing { .. } => self.hand_out(),
                Phase::Opening { .. } => self.open().await,
                Phase::Following { .. } => self.follow().await,
            };
            if let Some(event) = event {
                return event;
            }
        }
    }

    /// Begins with a fresh list, as soon as the server takes requests: what was read until now may be behind.
    pub fn begin_anew(&mut self) {
        self.phase = Phase::Listing { token: None };
        self.resume = self.spared;
    }

    async fn list(&mut self) -> Option<WatchEvent<K>> {
        let Phase::Listing { token } = &self.phase else {
            return None;
        };
        let first = token.is_none();
        let parameters = ListParams {
            label_selector: self.options.labels.clone(),
            field_selector: self.options.fields.clone(),
            limit: Some(self.options.page_size),
            continue_token: token.clone(),
            ..ListParams::default()
        };
        let api = self.apis.front()?;
        let page = within(self.options.request_deadline, api.list(&parameters)).await;
        let page = match page {
            Ok(page) => page,
            Err(error) if error.code() == Some(404) => return self.unserved().await,
            Err(error) => return Some(self.fail(WatchError::List(error))),
        };
        let present = |text: &String| !text.is_empty();
        let then = match (
            page.metadata.continue_.filter(present),
            page.metadata.resource_version.filter(present),
        ) {
            (Some(token), _) => AfterPage::Page { token },
            (None, Some(version)) => AfterPage::Watch { version },
            (None, None) => return Some(self.fail(WatchError::NoVersion)),
        };
        self.absences = 0;
        self.unserved = 0;
        self.phase = Phase::Handing { page: page.items.into_iter(), then };
        first.then_some(WatchEvent::Restarted)
    }

    fn hand_out(&mut self) -> Option<WatchEvent<K>> {
        let Phase::Handing { page, then } = &mut self.phase else {
            return None;
        };
        if let Some(object) = page.next() {
            return Some(
                object.into_object().map_or_else(WatchEvent::Malformed, WatchEvent::Listed),
            );
        }
        match then {
            AfterPage::Page { token } => {
                let token = Some(std::mem::take(token));
                self.phase = Phase::Listing { token };
                None
            }
            AfterPage::Watch { version } => {
                let version = std::mem::take(version);
                self.phase = Phase::Opening { version };
                self.relist = Instant::now() + (self.jitter)(self.options.relist_every);
                Some(WatchEvent::ListDone)
            }
        }
    }

    async fn open(&mut self) -> Option<WatchEvent<K>> {
        let Phase::Opening { version } = &self.phase else {
            return None;
        };
        let version = version.clone();
        let mut parameters =
            WatchParams::default().timeout(whole_seconds(self.options.watch_length));
        parameters.label_selector.clone_from(&self.options.labels);
        parameters.field_selector.clone_from(&self.options.fields);
        let request = self.apis.front()?.watch(&parameters, &version);
        match within(self.options.request_deadline, request).await {
            Ok(notices) => {
                let notices = notices.boxed();
                let since = Instant::now();
                self.phase = Phase::Following { version, notices, since };
                Some(WatchEvent::Alive)
            }
            // Throttled or not allowed: the server is there, and the version is still good.
            Err(error) if matches!(error.code(), Some(403 | 429)) => {
                let event = self.fail(WatchError::Open(error));
                self.phase = Phase::Opening { version };
                Some(event)
            }
            Err(error) => Some(self.fail(WatchError::Open(error))),
        }
    }

    async fn follow(&mut self) -> Option<WatchEvent<K>> {
        let Phase::Following { version, notices, since } = &mut self.phase else {
            return None;
        };
        let agreed = self.options.watch_length;
        let deadline = self.relist.min(*since + agreed + END_MARGIN);
        let Ok(notice) = timeout_at(deadline, notices.next()).await else {
            if Instant::now() < self.relist {
                return Some(self.fail(WatchError::Silent));
            }
            self.phase = Phase::Listing { token: None };
            return None;
        };
        let Some(notice) = notice else {
            let lasted = since.elapsed();
            if lasted + END_MARGIN < agreed {
                return Some(self.fail(WatchError::Early(lasted)));
            }
            let version = std::mem::take(version);
            self.phase = Phase::Opening { version };
            return None;
        };
        let event = match notice {
            Err(error) => return Some(self.fail(WatchError::Broken(error.into()))),
            Ok(Notice::Error(status)) => return Some(self.fail(WatchError::Ended(status))),
            Ok(Notice::Added(object) | Notice::Modified(object)) => {
                *version = object.resource_version();
                object.into_object().map_or_else(WatchEvent::Malformed, WatchEvent::Applied)
            }
            Ok(Notice::Deleted(object)) => {
                *version = object.resource_version();
                WatchEvent::Deleted(object.key())
            }
            Ok(Notice::Bookmark(bookmark)) => {
                *version = bookmark.metadata.resource_version;
                WatchEvent::Alive
            }
        };
        self.failures = 0;
        Some(event)
    }

    /// The version is not there: another may be, of which objects are the same.
    async fn unserved(&mut self) -> Option<WatchEvent<K>> {
        self.unserved += 1;
        self.apis.rotate_left(1);
        self.phase = Phase::Listing { token: None };
        if self.unserved < self.apis.len() {
            return None;
        }
        self.unserved = 0;
        let deadline = self.options.request_deadline;
        let others = match &mut self.discovery {
            Some(discovery) => within(deadline, discovery.changed()).await,
            None => Ok(Vec::new()),
        };
        match others {
            Ok(others) if !others.is_empty() => {
                self.apis = others.into();
                None
            }
            Err(error) if error.code() != Some(404) => Some(self.fail(WatchError::List(error))),
            _ => Some(self.absent()),
        }
    }

    /// The kind is not there; list it again after a while. Discovery alone would answer for all kinds of a group at
    /// once, so that one watcher would not know that another was asked to wait.
    fn absent(&mut self) -> WatchEvent<K> {
        self.absences = self.absences.saturating_add(1);
        self.failures = 0;
        self.phase = Phase::Listing { token: None };
        let retry_in = self.pause(ABSENCE.delay(self.absences));
        WatchEvent::Absent { retry_in }
    }

    /// Something went wrong; list afresh after a while, since after a failure of the connection the
    /// server may be another one.
    fn fail(&mut self, error: WatchError) -> WatchEvent<K> {
        self.failures = self.failures.saturating_add(1);
        self.phase = Phase::Listing { token: None };
        let asked = match &error {
            WatchError::List(error) | WatchError::Open(error) => error.retry_after(),
            _ => None,
        };
        let retry_in = self.pause_after(BACKOFF.delay(self.failures), asked.unwrap_or_default());
        WatchEvent::Failed { error, retry_in }
    }

    fn pause(&mut self, delay: Duration) -> Duration {
        self.pause_after(delay, Duration::ZERO)
    }

    /// Waits for so long, and no less than the server has asked for: where that is the longer of the two, what would
    /// come too early is as much too late.
    fn pause_after(&mut self, delay: Duration, asked: Duration) -> Duration {
        let delay = (self.jitter)(delay.max(asked));
        let delay = delay.max(asked + asked.saturating_sub(delay));
        let now = Instant::now();
        self.spared = Some(now + asked);
        self.resume = Some(now + delay);
        delay
    }
}

fn whole_seconds(length: Duration) -> u32 {
    u32::try_from(length.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
