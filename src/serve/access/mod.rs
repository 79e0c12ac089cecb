//! Who may read what: the API server is asked, by the rules of every extension of it.

mod cache;
mod common_name;
pub mod front_proxy;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use kube::Client;
use rustls::pki_types::CertificateDer;
use tokio::sync::Semaphore;

use self::cache::Cache;
pub(crate) use self::common_name::der_element;
use self::front_proxy::FrontProxies;
use crate::cluster::client::RequestError;
use crate::cluster::review::{Access, AccessDecision, User, review_access, review_token};
use crate::policy::readiness::{ReadinessReason, ReadinessState};
use crate::state::permission_reporter::PermissionReporter;
use wva_base::moment::Moment;
use wva_supervise::Clock;

/// How long an answer is taken as it is, refusals too: a token that is revoked is good for so long
/// at most. The default of the API server's own extensions.
const FRESH: Duration = Duration::from_secs(10);
/// How long an answer serves while the API server gives none: a scraper must not lose its target
/// together with the API server.
const OUTAGE: Duration = Duration::from_mins(5);
/// Questions to the API server at once.
const QUESTIONS: usize = 16;
/// The group of everybody who has proved who they are.
const AUTHENTICATED: &str = "system:authenticated";

/// Lets requests in, or says why not.
pub struct Authorizer {
    name: &'static str,
    clock: Clock,
    client: Client,
    front_proxies: Option<Arc<FrontProxies>>,
    /// By the digest of the token: a cache of tokens would be worth stealing.
    users: Cache<[u8; 32], Option<User>>,
    decisions: Cache<(User, Access), AccessDecision>,
    questions: Semaphore,
    permissions: PermissionReporter,
    troubles: Mutex<BTreeMap<ReviewKind, ReviewFailure>>,
}

/// What the API server is asked. Each takes a right of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ReviewKind {
    Token,
    Access,
}

/// The API server could not be asked.
#[derive(Debug, Clone)]
struct ReviewFailure {
    at: Moment,
    why: String,
}

wva_base::debug_of!(Authorizer: name);

/// Why a request is not let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessDenied {
    /// Its sender is not known.
    #[error("Unauthorized")]
    Unauthenticated,
    /// Its sender may not.
    #[error("User {user:?} cannot {access}{}", because(reason))]
    Forbidden {
        /// Who sent it.
        user: String,
        /// What they wanted.
        access: Access,
        /// What the authorizer says.
        reason: String,
    },
    /// The API server cannot be asked.
    #[error(
        "the API server does not answer whether the sender may read this; send it again, and see /readyz and the log \
         of the controller for the cause"
    )]
    Unavailable,
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

impl Authorizer {
    /// A gate that asks `client`. `front_proxies` may speak for others, where they are given.
    pub fn new(
        name: &'static str,
        clock: Clock,
        client: Client,
        front_proxies: Option<Arc<FrontProxies>>,
        permissions: PermissionReporter,
    ) -> Self {
        Self {
            name,
            clock,
            client,
            front_proxies,
            users: Cache::default(),
            decisions: Cache::default(),
            questions: Semaphore::new(QUESTIONS),
            permissions,
            troubles: Mutex::default(),
        }
    }

    /// Lets a request in. `certificate` is that of the client, proved to be signed by an authority
    /// of front proxies.
    pub async fn admit(
        &self,
        headers: &HeaderMap,
        certificate: Option<&CertificateDer<'_>>,
        access: Access,
    ) -> Result<(), AccessDenied> {
        let user = match self.fronted(headers, certificate) {
            Some(user) => user,
            None => self.bearer(headers).await?,
        };
        if user.is_master() {
            return Ok(());
        }
        let question = (user, access);
        match self.decision(&question).await? {
            AccessDecision::Allowed => Ok(()),
            AccessDecision::Denied { reason } => {
                Err(AccessDenied::Forbidden { user: question.0.name, access: question.1, reason })
            }
        }
    }

    fn fronted(
        &self,
        headers: &HeaderMap,
        certificate: Option<&CertificateDer<'_>>,
    ) -> Option<User> {
        let rules = self.front_proxies.as_ref()?.rules().ok()?;
        let mut user = rules.user(certificate?, headers)?;
        if !user.groups.iter().any(|group| group == AUTHENTICATED) {
            user.groups.push(AUTHENTICATED.to_owned());
        }
        Some(user)
    }

    async fn bearer(&self, headers: &HeaderMap) -> Result<User, AccessDenied> {
        let token = bearer_token(headers).ok_or(AccessDenied::Unauthenticated)?;
        let digest = digest(token);
        let known = self.users.get(&digest, self.clock.now(), self.patience());
        let user = if let Some(known) = known {
            known
        } else {
            let asked = review_token(&self.client, token);
            self.ask(ReviewKind::Token, &self.users, digest, asked).await?
        };
        user.ok_or(AccessDenied::Unauthenticated)
    }

    async fn decision(&self, question: &(User, Access)) -> Result<AccessDecision, AccessDenied> {
        let now = self.clock.now();
        if let Some(known) = self.decisions.get(question, now, self.patience()) {
            return Ok(known);
        }
        let (user, access) = question;
        let asked = review_access(&self.client, user, access);
        self.ask(ReviewKind::Access, &self.decisions, question.clone(), asked).await
    }

    /// How old an answer may be. For a moment after the API server gave none it is not asked for what
    /// is known already: it might take longer to say nothing than a scraper waits.
    fn patience(&self) -> Duration {
        let now = self.clock.now();
        let troubles = self.troubles();
        let mut ages = troubles.values().map(|trouble| now.since(trouble.at));
        if ages.any(|age| age < FRESH) { OUTAGE } else { FRESH }
    }

    async fn ask<K: Ord + Clone, V: Clone>(
        &self,
        about: ReviewKind,
        cache: &Cache<K, V>,
        key: K,
        question: impl Future<Output = Result<V, RequestError>>,
    ) -> Result<V, AccessDenied> {
        let _place = self.questions.acquire().await;
        let answer = question.await;
        if answer.as_ref().err().is_some_and(is_about_the_question) {
            return Err(AccessDenied::Unavailable);
        }
        let now = self.clock.now();
        self.note(about, answer.as_ref().err(), now);
        if let Ok(value) = answer {
            cache.put(key, now, value.clone());
            return Ok(value);
        }
        cache.get(&key, now, OUTAGE).ok_or(AccessDenied::Unavailable)
    }

    /// Says once that the API server cannot be asked, and once that it can again: scrapers ask
    /// often.
    fn note(&self, about: ReviewKind, error: Option<&RequestError>, at: Moment) {
        if let Some(error) = error
            && error.is_denied()
        {
            self.permissions.report("Review", error);
        }
        let trouble = error.map(|error| ReviewFailure { at, why: error.to_string() });
        let mut troubles = self.troubles();
        let before = match &trouble {
            Some(trouble) => troubles.insert(about, trouble.clone()),
            None => troubles.remove(&about),
        };
        drop(troubles);
        match (before, trouble) {
            (None, Some(ReviewFailure { why, .. })) => {
                tracing::error!(gate = self.name, why, "readers cannot be checked");
            }
            (Some(_), None) => tracing::info!(gate = self.name, "readers can be checked again"),
            _ => {}
        }
    }

    fn troubles(&self) -> MutexGuard<'_, BTreeMap<ReviewKind, ReviewFailure>> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How well it can ask, for `/readyz`.
    pub fn readiness(&self) -> Vec<ReadinessReason> {
        let reason = |what: &str, state, detail| ReadinessReason {
            name: format!("{what}/{}", self.name),
            state,
            detail,
        };
        let troubles: Vec<String> = self.troubles().values().map(|one| one.why.clone()).collect();
        let mut reasons = vec![if troubles.is_empty() {
            reason("access", ReadinessState::Ok, "readers are checked".to_owned())
        } else {
            reason("access", ReadinessState::Degraded, troubles.join("; "))
        }];
        if let Some(front_proxies) = &self.front_proxies {
            reasons.push(match front_proxies.rules() {
                Ok(_) => reason("front-proxy", ReadinessState::Ok, "believed".to_owned()),
                Err(why) => reason("front-proxy", ReadinessState::Degraded, why.to_string()),
            });
        }
        reasons
    }
}

/// Whether the API server found fault with the question alone. A client that provokes that must not
/// make old answers last longer for others.
fn is_about_the_question(error: &RequestError) -> bool {
    matches!(error.code(), Some(400 | 413 | 422))
}

/// The token of `Authorization: Bearer …`; the scheme in any letter case.
pub fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn digest(token: &str) -> [u8; 32] {
    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(digest.as_ref()) {
        *to = *from;
    }
    bytes
}

#[cfg(test)]
pub(super) mod tests;
