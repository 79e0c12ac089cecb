//! T7: the requests of a process stay within bounds, whatever fails, and honour the Retry-After of a server.

use std::collections::BTreeMap;
use std::time::Duration;

use super::InvariantViolation;
use super::claims::Sent;
use crate::chaos::api_server_proxy::is_write;
use crate::world::objects::SYSTEM;
use wva::signals::query::{HISTORY_QUERIES, MAX_QUERIES};

/// Requests are counted for so long, and then from zero: what is kept is of one minute. The bounds follow from what
/// any minute may have; of a burst across two of these up to twice as much is not reported.
const MINUTE: Duration = Duration::from_mins(1);

/// Attempts at writing one object. A status is tried five times within a second where the object is found
/// changed, and after seconds then; all of that begins anew with each change of what is to be written, and with
/// each start of the writer. In a storm a target changes about five times in a minute, and roles that end again
/// and again are started again about ten times: fifteen times five, twice over.
const TRIED: u64 = 150;
/// The same for each plan, which changes what is to be written once at most: five attempts, twice over.
const TRIED_FOR_A_PLAN: u64 = 10;
/// Writes of one object that are carried out. A lease is renewed every 3.2 s at the soonest, that is 19 times in
/// a minute. A status is written only where it differs: for a target that comes, goes or has another scaler, about
/// ten times.
const STORED: u64 = 40;
/// The same for each plan: one that changes something, twice over.
const STORED_FOR_A_PLAN: u64 = 2;
/// Lists of one collection, and as many openings of a watch. The pause after a failure is 0.64 s at the least, and
/// that is what it always is where each watch delivers one event and breaks: 94 times in a minute, twice over. Where
/// it delivers nothing the pauses double, and a watcher that ends again and again lists about 30 times.
const LISTED: u64 = 200;
/// Reads of one object, or of what is served in one group. A lease is read 19 times in a minute, and when it is
/// free; scales are read every five seconds, and the kind before them.
const READ: u64 = 120;
/// The same for each variant and pod: where a variant is new its target is read at once, and its kind before.
const READ_FOR_EACH: u64 = 2;
/// Events of one reason about one object. One is sent in a minute, and eight at most report what came since the last;
/// each may be counted up in vain before it is stored anew. An orderly end sends what still waits.
const NEWS: u64 = 40;
/// The same about a ConfigMap: each edit that is refused has its event, two storms may have 82 edits.
const SETTINGS_NEWS: u64 = 200;
/// All events: of that there are few variants with a few reasons each, and settings.
const EVENTS: u64 = 600;
/// The same for each variant and pod: in a crowd each has its own, of five reasons at most, twice over, and each
/// may be counted up in vain before.
const EVENTS_FOR_EACH: u64 = 20;
const COLLECTED: u64 = 3;
/// Collections for early cycles: there is one in a second at most.
const EARLY: u64 = 60;

#[derive(Debug, Default)]
pub(crate) struct Pace {
    began: Duration,
    counts: BTreeMap<(&'static str, String), u64>,
    plans: u64,
    beat: Option<Duration>,
}

impl Pace {
    pub(crate) fn planned(&mut self, now: Duration) {
        self.turn(now);
        self.plans += 1;
    }

    /// A request is sent to the API server. `were` says whether there were so many variants and pods lately.
    pub(crate) fn sent(
        &mut self,
        sent: &Sent<'_>,
        now: Duration,
        were: &mut dyn FnMut(u64) -> bool,
    ) -> Option<InvariantViolation> {
        self.turn(now);
        let Sent { path, query, .. } = *sent;
        if is_write(sent.method) {
            return if is_event(path) {
                let all = self.count_for_each("events in", "all", (EVENTS, EVENTS_FOR_EACH), were);
                let (subject, most) = subject(sent);
                self.count("events about", &subject, most).or(all)
            } else {
                let most = TRIED + TRIED_FOR_A_PLAN * self.plans;
                self.count("attempts at writing", path, most)
            };
        }
        if query.contains("watch=") {
            self.count("watches of", &collection(path, query), LISTED)
        } else if !query.contains("limit=") {
            self.count_for_each("reads of", path, (READ, READ_FOR_EACH), were)
        } else if query.contains("continue=") {
            // The page after another one is no list of its own.
            None
        } else {
            self.count("lists of", &collection(path, query), LISTED)
        }
    }

    pub(crate) fn stored(&mut self, path: &str, now: Duration) -> Option<InvariantViolation> {
        self.turn(now);
        let most = STORED + STORED_FOR_A_PLAN * self.plans;
        let counts = !is_event(path);
        counts.then(|| self.count("writes of", path, most)).flatten()
    }

    pub(crate) fn asked(&mut self, beat: Duration, now: Duration) -> Option<InvariantViolation> {
        self.turn(now);
        let beat = self.beat.map_or(beat, |known| known.min(beat));
        self.beat = Some(beat);
        let ticks = MINUTE.as_secs() / beat.as_secs().max(1) + 1;
        let questions = u64::try_from(MAX_QUERIES + HISTORY_QUERIES).unwrap_or(u64::MAX);
        let most = questions * (COLLECTED * ticks + EARLY);
        self.count("questions to", "Prometheus", most)
    }

    /// Begins anew where a minute has passed: what is kept is of one minute.
    fn turn(&mut self, now: Duration) {
        if now.saturating_sub(self.began) >= MINUTE {
            *self = Self { began: now, ..Self::default() };
        }
    }

    fn count(&mut self, what: &'static str, of: &str, most: u64) -> Option<InvariantViolation> {
        let count = self.add(what, of);
        (count > most).then(|| {
            let text = format!("{count} {what} {of} within a minute, more than {most}");
            InvariantViolation::new("T7", text)
        })
    }

    fn count_for_each(
        &mut self,
        what: &'static str,
        of: &str,
        (most, each): (u64, u64),
        were: &mut dyn FnMut(u64) -> bool,
    ) -> Option<InvariantViolation> {
        let count = self.add(what, of);
        let needed = count.saturating_sub(most).div_ceil(each);
        let is_odd = needed > 0 && !were(needed);
        is_odd.then(|| {
            let more = format!("more than {most} and {each} for each variant and pod");
            let text = format!("{count} {what} {of} within a minute, {more}");
            InvariantViolation::new("T7", text)
        })
    }

    fn add(&mut self, what: &'static str, of: &str) -> u64 {
        let count = self.counts.entry((what, of.to_owned())).or_default();
        *count += 1;
        *count
    }
}

fn is_event(path: &str) -> bool {
    path.starts_with("/apis/events.k8s.io/")
}

fn collection(path: &str, query: &str) -> String {
    let is_selector = |part: &&str| part.contains("Selector=");
    let selectors: Vec<&str> = query.split('&').filter(is_selector).collect();
    if selectors.is_empty() { path.to_owned() } else { format!("{path}?{}", selectors.join("&")) }
}

/// What an event is about, and how many of them there may be. One that counts up another says no more than whose
/// name it has.
fn subject(sent: &Sent<'_>) -> (String, u64) {
    let bound = |is_of_settings| {
        if is_of_settings { SETTINGS_NEWS } else { NEWS }
    };
    let event = sent.object();
    if event.text("/reason").is_empty() {
        let is_of_system = sent.path.contains(&format!("/namespaces/{SYSTEM}/"));
        return (sent.path.to_owned(), bound(is_of_system));
    }
    let subject = format!(
        "{} {}/{} {}: {}",
        event.text("/regarding/kind"),
        event.text("/regarding/namespace"),
        event.text("/regarding/name"),
        event.text("/regarding/uid"),
        event.text("/reason"),
    );
    (subject, bound(event.text("/regarding/kind") == "ConfigMap"))
}

/// The longest time for which a controller does so: `cluster::client` says why.
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(crate) struct Spared(BTreeMap<String, Wait>);

#[derive(Debug)]
struct Wait {
    until: Duration,
    asked: Duration,
    /// How many roles had begun by then: a later one knows nothing of it.
    lives: u64,
}

impl Spared {
    pub(crate) fn note(&mut self, request: &Sent<'_>, asked: Duration, lives: u64, now: Duration) {
        self.0.retain(|_, wait| now < wait.until);
        let Some(name) = repeated(request) else {
            return;
        };
        let until = now + asked.min(LONGEST);
        let wait = Wait { until, asked, lives };
        self.0.insert(name, wait);
    }

    /// Whether a request comes too early. Where a role has begun since the answer it is unknown here whether it
    /// is the one that had it.
    pub(crate) fn judge(
        &mut self,
        request: &Sent<'_>,
        lives: u64,
        now: Duration,
    ) -> Option<InvariantViolation> {
        if self.0.is_empty() {
            return None;
        }
        let name = repeated(request)?;
        let wait = self.0.remove(&name)?;
        if now >= wait.until || lives != wait.lives {
            return None;
        }
        let (early, asked) = (wait.until.saturating_sub(now), wait.asked.as_secs());
        let early = early.as_secs_f64();
        let text =
            format!("{name} is sent {early:.3} s too early: the server has asked for {asked} s");
        Some(InvariantViolation::new("T7", text))
    }
}

/// What is one request, made again. Nothing where it may be repeated: who leads renews its lease in time or loses it,
/// and each reader of a page of the process causes a review.
fn repeated(request: &Sent<'_>) -> Option<String> {
    let Sent { method, path, query, .. } = *request;
    if path.contains("/leases") || path.contains("reviews") {
        return None;
    }
    let verb = if query.contains("watch=") { "WATCH" } else { method.as_str() };
    Some(format!("{verb} {}", collection(path, query)))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::*;

    const STATUS: &str = "/apis/llmd.ai/v1alpha1/namespaces/n/variantautoscalings/v/status";
    const PODS: &str = "/api/v1/pods";
    const EVENTS_OF_N: &str = "/apis/events.k8s.io/v1/namespaces/n/events";

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn sent<'a>(method: &'a Method, (path, query): (&'a str, &'a str), body: &'a [u8]) -> Sent<'a> {
        Sent { method, path, query, body }
    }

    fn is_odd(pace: &mut Pace, sent: &Sent<'_>) -> bool {
        pace.sent(sent, seconds(1), &mut |count| count <= 3).is_some()
    }

    fn most(pace: &mut Pace, method: &Method, to: (&str, &str), body: &[u8]) -> u64 {
        let mut all = 0..10_000;
        let odd = all.find(|_| is_odd(pace, &sent(method, to, body)));
        odd.unwrap()
    }

    #[test]
    fn each_kind_of_request_has_its_bound() {
        let first = (PODS, "limit=500");
        let selected = (PODS, "limit=500&labelSelector=a");
        let watch = (PODS, "watch=true&resourceVersion=3");
        for (method, to, expected) in [
            (Method::PATCH, (STATUS, ""), TRIED),
            (Method::GET, first, LISTED),
            (Method::GET, selected, LISTED),
            (Method::GET, watch, LISTED),
            (Method::GET, (STATUS, ""), READ + 3 * READ_FOR_EACH),
            (Method::PATCH, (&format!("{EVENTS_OF_N}/v.1"), ""), NEWS),
        ] {
            let found = most(&mut Pace::default(), &method, to, b"{}");
            assert_eq!(found, expected, "{method} {to:?}");
        }
    }

    #[test]
    fn counts_are_kept_apart_and_begin_anew_after_a_minute() {
        let mut pace = Pace::default();
        assert_eq!(most(&mut pace, &Method::GET, (PODS, "limit=500"), b""), LISTED);
        let selected = (PODS, "limit=500&fieldSelector=a");
        assert_eq!(most(&mut pace, &Method::GET, selected, b""), LISTED);
        assert_eq!(most(&mut pace, &Method::PATCH, (STATUS, ""), b""), TRIED);
        let sent = sent(&Method::PATCH, (STATUS, ""), b"");
        assert!(pace.sent(&sent, seconds(59), &mut |_| false).is_some());
        assert_eq!(pace.sent(&sent, seconds(60), &mut |_| false), None);
        assert_eq!(pace.counts.len(), 1, "{pace:?}");
    }

    #[test]
    fn a_status_may_be_written_as_often_as_there_are_plans() {
        let mut pace = Pace::default();
        for _ in 0..2 {
            pace.planned(seconds(1));
        }
        let mut all = 0..10_000;
        let odd = all.find(|_| pace.stored(STATUS, seconds(2)).is_some());
        assert_eq!(odd, Some(STORED + 2 * STORED_FOR_A_PLAN));
        assert!(odd < Some(60), "with two plans one that is written every second is found");
        assert_eq!(
            most(&mut pace, &Method::PATCH, (STATUS, ""), b""),
            TRIED + 2 * TRIED_FOR_A_PLAN
        );
    }

    #[test]
    fn pages_and_events_that_are_carried_out_count_for_nothing() {
        let mut kept = Pace::default();
        let asked = sent(&Method::GET, (PODS, "limit=500&continue=x"), b"");
        for _ in 0..1_000 {
            let page = kept.sent(&asked, seconds(1), &mut |_| false);
            let event = kept.stored(EVENTS_OF_N, seconds(1));
            assert_eq!((page, event), (None, None));
        }
        assert!(kept.counts.is_empty(), "{kept:?}");
    }

    #[test]
    fn events_are_counted_by_what_they_are_about_and_all_together() {
        let event = |kind: &str, name: &str, reason: &str| {
            let about = json!({"kind": kind, "namespace": "n", "name": name, "uid": "1"});
            json!({"reason": reason, "regarding": about}).to_string()
        };
        let of = |pace: &mut Pace, kind: &str, name: &str, reason: &str| {
            let body = event(kind, name, reason);
            most(pace, &Method::POST, (EVENTS_OF_N, ""), body.as_bytes())
        };
        let mut pace = Pace::default();
        assert_eq!(of(&mut pace, "VariantAutoscaling", "v", "ScaledUp"), NEWS);
        assert_eq!(of(&mut pace, "VariantAutoscaling", "v", "NoScaler"), NEWS);
        assert_eq!(of(&mut pace, "ConfigMap", "c", "Refused"), SETTINGS_NEWS);
        let known: u64 = 2 * (NEWS + 1) + SETTINGS_NEWS + 1;
        let all = EVENTS + 3 * EVENTS_FOR_EACH;
        let odd = (known..10_000).find(|number| {
            let body = event("VariantAutoscaling", &number.to_string(), "ScaledUp");
            let sent = sent(&Method::POST, (EVENTS_OF_N, ""), body.as_bytes());
            is_odd(&mut pace, &sent)
        });
        assert_eq!(odd, Some(all));
    }

    #[test]
    fn questions_follow_the_shortest_time_between_collections() {
        let of_a_collection = u64::try_from(MAX_QUERIES + HISTORY_QUERIES).unwrap();
        for (beats, ticks) in [(&[30][..], 3), (&[30, 10], 7), (&[10, 30], 7), (&[0], 61)] {
            let mut pace = Pace::default();
            let mut count = 0;
            for beat in beats {
                count += 1;
                assert_eq!(pace.asked(seconds(*beat), seconds(1)), None);
            }
            let last = seconds(*beats.last().unwrap());
            let odd = (count..10_000).find(|_| pace.asked(last, seconds(1)).is_some());
            let expected = of_a_collection * (COLLECTED * ticks + EARLY);
            assert_eq!(odd, Some(expected), "{beats:?}");
        }
    }
}
