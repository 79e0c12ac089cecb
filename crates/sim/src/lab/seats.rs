//! Rules at work in a world: in a run of the laboratory, or below the demo's load.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::fluid::primaries;
use super::number;
use super::policies::{Peer, PeerModel, PolicyChoice, read_signals};
use super::scenario::NAMESPACE;
use crate::apiserver::Insider;
use crate::hpa::SYNC;
use crate::prometheus::Prometheus;
use crate::workloads::object::path;
use crate::world::{Frame, LoadSource, PodListeners, Scenario, ScenarioModel, World};
use wva::policy::capacity::ServingRole;
use wva_base::moment::WallTime;

/// Mean tokens of prompts and of answers, where a load does not state them.
const LENGTHS: (f64, f64) = (400.0, 200.0);

struct Seat {
    model: usize,
    variant: &'static str,
    role: ServingRole,
    peer: Box<dyn Peer>,
    next: Duration,
}

/// One rule for each role of a model, for the variant that does its requests for the least money; the others stay as
/// they are.
pub(crate) struct Seats(Vec<Seat>);

impl Seats {
    pub(super) fn new<'a>(
        policy: &PolicyChoice,
        models: impl Iterator<Item = (&'a ScenarioModel, (f64, f64))>,
    ) -> Self {
        let mut seats = Vec::new();
        for (place, (model, lengths)) in models.enumerate() {
            for variant in primaries(model, lengths) {
                let peer = policy.peer(&PeerModel::of(model, variant, lengths));
                seats.extend(peer.map(|peer| Seat {
                    model: place,
                    variant: variant.name,
                    role: variant.role,
                    peer,
                    next: Duration::ZERO,
                }));
            }
        }
        Self(seats)
    }

    /// Lets every rule that is due decide, and writes what it wants; the variants that changed, with the reasons.
    pub(super) async fn act(
        &mut self,
        server: &Insider,
        (prometheus, at): (&Mutex<Prometheus>, WallTime),
        frame: &Frame,
        now: Duration,
    ) -> Result<Vec<(&'static str, String)>, String> {
        let mut written = Vec::new();
        for seat in &mut self.0 {
            let Some(model) = frame.models.get(seat.model) else {
                continue;
            };
            let is_due = now >= seat.next;
            let scraped_at = (is_due && seat.peer.is_scraping()).then_some((prometheus, at));
            let Some(signals) = read_signals(model, (seat.variant, seat.role), scraped_at) else {
                continue;
            };
            seat.peer.observe(&signals, now);
            if !is_due {
                continue;
            }
            seat.next = now + seat.peer.poll();
            let decision = seat.peer.decide(&signals, now);
            if let Some(decision) = decision.filter(|one| one.replicas != signals.wanted) {
                scale(server, seat.variant, decision.replicas).await?;
                written.push((seat.variant, decision.why));
            }
        }
        Ok(written)
    }

    pub(crate) async fn world(
        policy: &PolicyChoice,
        scenario: &Scenario,
        seed: u64,
        date: WallTime,
    ) -> Result<World, String> {
        let (mut world, server) = unattended(scenario, seed, date).await?;
        let models = scenario.models.iter();
        let seats = Self::new(policy, models.map(|model| (model, lengths(model))));
        let (frames, clock) = (world.frames.clone(), world.clock.clone());
        let prometheus = Arc::clone(&world.prometheus);
        world.attend(async move {
            let mut seats = seats;
            let mut frames = frames;
            loop {
                if frames.changed().await.is_err() {
                    return std::future::pending::<Infallible>().await;
                }
                let frame = Arc::clone(&frames.borrow_and_update());
                let now = number::duration(frame.seconds);
                let at = (&*prometheus, clock.now().wall);
                if let Err(error) = seats.act(&server, at, &frame, now).await {
                    tracing::warn!(%error, "failed to scale by a rule");
                }
            }
        });
        Ok(world)
    }
}

pub(super) fn lengths(model: &ScenarioModel) -> (f64, f64) {
    let mix = match &model.load {
        LoadSource::Generated(demand) => Some(demand.mix()),
        LoadSource::Flow { mixes, .. } => mixes.first().map(|(_, mix)| *mix),
        _ => None,
    };
    let means = mix.map(|mix| (f64::from(mix.prompt_tokens), f64::from(mix.output_tokens)));
    means.unwrap_or(LENGTHS)
}

/// A world in which neither a controller nor autoscalers scale.
pub(super) async fn unattended(
    scenario: &Scenario,
    seed: u64,
    date: WallTime,
) -> Result<(World, Insider), String> {
    let staff = Some(PodListeners::default());
    let world = World::arranged(scenario, seed, date, staff, SYNC, false).await?;
    let server = Insider::new(world.server.clone(), "laboratory");
    for variant in scenario.variants() {
        let plural = "horizontalpodautoscalers";
        let path = path("autoscaling/v2", scenario.namespace, plural, variant.name);
        let deleted = server.delete(&path, &json!({})).await;
        deleted.map_err(|denied| format!("the objects of the scenario: {denied}"))?;
    }
    Ok((world, server))
}

pub(super) async fn scale(server: &Insider, variant: &str, replicas: u32) -> Result<(), String> {
    let path = path("apps/v1", NAMESPACE, "deployments", variant);
    let scale = json!({"spec": {"replicas": replicas}});
    server.merge(&format!("{path}/scale"), &scale).await?;
    Ok(())
}
