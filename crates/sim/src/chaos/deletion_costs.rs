//! A person who gives pods a cost of deletion while controllers choose those that go first.

use std::time::Duration;

use serde_json::json;

use super::check::InvariantViolation;
use super::checker::Checker;
use super::dice::Dice;
use super::trace::Trace;
use crate::apiserver::Insider;
use crate::workloads::object::{Object, pod_path};
use wva::api::{CHOSEN_BY_ANNOTATION, DELETION_COST_ANNOTATION};
use wva_supervise::SeedTree;

const COST: &str = "5";
const SHORTEST: Duration = Duration::from_mins(1);
const LONGEST: Duration = Duration::from_mins(8);

#[derive(Debug)]
pub(super) struct CostsByHand {
    dice: Dice,
    next: Duration,
    given: Option<Object>,
}

impl CostsByHand {
    pub(super) fn new(seed: &SeedTree) -> Self {
        let mut dice = Dice::new(seed.child("marks"));
        let next = dice.time(SHORTEST, LONGEST);
        Self { dice, next, given: None }
    }

    /// W5. Looks once a second. After `until` no pod gets a cost any more.
    pub(super) async fn look(
        &mut self,
        server: &Insider,
        (judge, trace): (&Checker, &Trace),
        (now, until): (Duration, Duration),
    ) {
        let live = live_pods(server);
        let given = self.given.take().filter(|given| {
            let found = live.iter().find(|pod| pod.uid() == given.uid());
            let cost = found.map(|pod| pod.annotation(DELETION_COST_ANNOTATION));
            if cost.is_some_and(|cost| cost != Some(COST)) {
                let text = format!("a cost by hand of {} has become {cost:?}", given.name());
                judge.report(InvariantViolation::new("W5", text));
            }
            found.is_some()
        });
        if now < self.next.min(until) {
            self.given = given;
            return;
        }
        self.next = now + self.dice.time(SHORTEST, LONGEST);
        let (pod, cost) = match given {
            Some(pod) => (pod, None),
            None if now >= until => return,
            None => match self.pick(live) {
                Some(pod) => (pod, Some(COST)),
                None => return,
            },
        };
        let verb = if cost.is_some() { "gives" } else { "takes" };
        trace.note("hand", verb, &format!("the cost of {}", pod.name()));
        let change = json!({"metadata": {"annotations": {DELETION_COST_ANNOTATION: cost}}});
        if server.merge(&pod_path(&pod), &change).await.is_ok() && cost.is_some() {
            self.given = Some(pod);
        }
    }

    fn pick(&mut self, live: Vec<Object>) -> Option<Object> {
        let (chosen, others): (Vec<Object>, _) = live.into_iter().partition(is_chosen);
        let mut among = if chosen.is_empty() { others } else { chosen };
        let place = self.dice.place(among.len());
        (place < among.len()).then(|| among.swap_remove(place))
    }
}

pub(super) fn chosen(server: &Insider) -> Option<String> {
    let mut live = live_pods(server).into_iter();
    let pod = live.find(is_chosen)?;
    Some(format!("{} is chosen to go first", pod.name()))
}

fn live_pods(server: &Insider) -> Vec<Object> {
    let pods = server.list("pods.").into_iter().map(Object);
    pods.filter(|pod| !pod.is_deleted()).collect()
}

fn is_chosen(pod: &Object) -> bool {
    let is_ours = pod.annotation(CHOSEN_BY_ANNOTATION).is_some();
    is_ours && pod.annotation(DELETION_COST_ANNOTATION) == Some("-1")
}
