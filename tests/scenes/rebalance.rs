//! GPUs of a quota that change hands between two models: they are given up before they are taken.

use super::*;
use wva::roles::Role;

/// GPUs of the quota, and of one replica. The node has more, so that the quota alone binds.
const QUOTA: u32 = 16;
const GPUS: u32 = 2;
const NAMES: [&str; 2] = ["one", "other"];
/// Killed two at a time, after each half of a step.
const DEATHS: [[Role; 2]; 2] =
    [[Role::Optimizer, Role::Emitter], [Role::Collector, Role::StatusWriter]];

fn limited(rescale: bool) -> String {
    format!(
        "analyzerName: saturation\nenableLimiter: true\nenableRescale: {rescale}\nlimiters:\n\
         - {{name: fleet, type: quota, scope: cluster, quotas: {{H100: {QUOTA}}}}}\n"
    )
}

fn entry(model: &str, priority: u32) -> String {
    format!("model_id: {model}\nnamespace: llm-d\npriority: {priority}\n")
}

/// Two models that overflow whatever they get, and hold the whole quota together. The second one has the priority.
fn contended() -> Scenario {
    let full = || posed(&[(Duration::ZERO, 0.95, 0.0)]);
    let holding = |name: &'static str, replicas: u32| ScenarioVariant {
        gpus: GPUS,
        replicas,
        bounds: (1, 8),
        ..variant(name)
    };
    let [one, other] = NAMES;
    let entries = vec![("default", limited(false)), (one, entry(one, 1)), (other, entry(other, 9))];
    Scenario {
        nodes: vec![node("h100", QUOTA * 2, H100)],
        models: vec![
            model(one, full(), vec![holding(one, 6)]),
            model(other, full(), vec![holding(other, 2)]),
        ],
        config: vec![ConfigMap { name: SATURATION, data: entries }],
        ..small(full())
    }
}

/// What is published for a variant, and what its Deployment states.
fn counts(frame: &Frame, variant: &str) -> (u32, u32) {
    let stated = scaled_to(frame, variant);
    (desired(frame, variant).unwrap_or(stated), stated)
}

/// Neither what is published nor what is stated is more than the quota, whichever published counts are applied next.
fn keeps_within(frame: &Frame) {
    let most = NAMES.map(|name| {
        let (published, stated) = counts(frame, name);
        published.max(stated) * GPUS
    });
    assert!(most.iter().sum::<u32>() <= QUOTA, "{most:?}: {frame:#?}");
}

/// The first frame for which something holds, while every frame keeps within the quota.
async fn within_quota(world: &World, holds: impl Fn(&Frame) -> bool) -> Arc<Frame> {
    until(world, MINUTE * 15, |frame| {
        keeps_within(frame);
        holds(frame)
    })
    .await
}

fn kill(world: &World, roles: &[Role; 2]) {
    for role in roles {
        assert!(world.kill(role), "{role} does not run");
    }
}

/// One replica after the other goes from one model to the other, until the giver has its minimum. Roles die once a
/// replica is given up, and again once its GPUs are free.
async fn changes_hands(world: &World, giver: &str, taker: &str) {
    let [first, second] = &DEATHS;
    loop {
        let frame = world.frame();
        let ((_, kept), (_, gained)) = (counts(&frame, giver), counts(&frame, taker));
        if kept == 1 {
            break;
        }
        within_quota(world, |frame| counts(frame, giver).0 < kept).await;
        kill(world, first);
        let free = within_quota(world, |frame| counts(frame, giver).1 < kept).await;
        assert_eq!(counts(&free, taker).1, gained, "{free:#?}");
        kill(world, second);
        within_quota(world, |frame| counts(frame, taker).1 > gained).await;
    }
    within_quota(world, |frame| counts(frame, giver) == (1, 1) && counts(frame, taker) == (7, 7))
        .await;
    throughout(world, MINUTE * 5, |frame| {
        keeps_within(frame);
        assert_eq!(counts(frame, taker), (7, 7), "{frame:#?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn gpus_change_hands_within_the_quota_through_deaths() {
    let [one, other] = NAMES;
    let world = begin(&contended()).await;
    within_quota(&world, |frame| (ready(frame, one), ready(frame, other)) == (6, 2)).await;
    throughout(&world, MINUTE * 5, |frame| {
        let both = (counts(frame, one), counts(frame, other));
        assert_eq!(both, ((6, 6), (2, 2)), "nothing is shared yet: {frame:#?}");
    })
    .await;

    change_policy(&world, &limited(true)).await;
    changes_hands(&world, one, other).await;

    let user = Insider::new(world.server.clone(), "user");
    let path = format!("/api/v1/namespaces/wva-system/configmaps/{SATURATION}");
    let swapped = json!({"data": {one: entry(one, 9), other: entry(other, 1)}});
    user.merge(&path, &swapped).await.unwrap();
    changes_hands(&world, other, one).await;
    world.end().await;
}
