//! A tree to play on: actors that follow orders and record what happened.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::role::Role;
use crate::{
    Actor, ActorKind, ActorRegistry, ActorResult, Address, ChildSpec, Context, Delivery, DirtySet,
    Epoch, Event, ExitReason, Kit, RoleReport, RoleState, StateMachine, TreeRole as _, child,
    machine, run,
};
use crate::{Clock, SeedTree};
use wva_base::moment::{Moment, WallTime};

pub(super) const TICK: Duration = Duration::from_millis(1);

pub(super) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A running tree.
pub(super) struct Stage {
    pub(super) kit: Kit<Role>,
    pub(super) journal: Journal,
    curtain: Option<oneshot::Sender<()>>,
    play: JoinHandle<ExitReason>,
}

pub(super) fn kit() -> Kit<Role> {
    Kit { clock: Clock::at(WallTime(0)), seed: SeedTree::new(7), actors: ActorRegistry::new() }
}

impl Stage {
    /// Starts the tree and lets it come to rest.
    pub(super) async fn raise(journal: Journal, children: Vec<ChildSpec<Role>>) -> Self {
        let (curtain, fallen) = oneshot::channel();
        let kit = journal.kit.clone();
        let play = tokio::spawn(run(kit.clone(), children, async {
            drop(fallen.await);
        }));
        rest().await;
        Self { kit, journal, curtain: Some(curtain), play }
    }

    pub(super) async fn fall(mut self) -> ExitReason {
        drop(self.curtain.take());
        self.play.await.unwrap()
    }

    /// The end of a tree that is not shut down.
    pub(super) async fn collapse(self, within: Duration) -> ExitReason {
        let reason = tokio::time::timeout(within, self.play).await;
        drop(self.curtain);
        reason.expect("still standing").unwrap()
    }

    /// Ends it as a crash of the process would.
    pub(super) fn abort(self) {
        self.play.abort();
    }

    pub(super) fn report(&self, role: &Role) -> RoleReport<Role> {
        report(&self.kit.actors, role).unwrap_or_else(|| panic!("{role} has never lived"))
    }

    /// Waits until `role` runs with a higher number than `number`, and is at rest.
    pub(super) async fn reborn(&self, role: &Role, number: u64) -> RoleReport<Role> {
        self.reborn_within(secs(60), role, number).await
    }

    pub(super) async fn reborn_within(
        &self,
        within: Duration,
        role: &Role,
        number: u64,
    ) -> RoleReport<Role> {
        until(within, &format!("{role} after no. {number}"), || {
            let now = self.report(role);
            (now.state == RoleState::Running && now.incarnation > number && now.sent == now.handled)
                .then_some(now)
        })
        .await
    }

    pub(super) fn kill(&self, role: &Role) {
        assert!(self.kit.actors.kill(role), "{role} is not alive");
    }
}

pub(super) fn report(actors: &ActorRegistry<Role>, role: &Role) -> Option<RoleReport<Role>> {
    actors.report().into_iter().find(|r| r.role == *role)
}

/// Waits (virtually) for something to become true.
pub(super) async fn until<T>(
    within: Duration,
    what: &str,
    mut holds: impl FnMut() -> Option<T>,
) -> T {
    let deadline = tokio::time::Instant::now() + within;
    let step = TICK.max(within / 10_000);
    loop {
        if let Some(value) = holds() {
            return value;
        }
        assert!(tokio::time::Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(step).await;
    }
}

/// Lets everybody finish what can be finished at this instant: virtual time moves only when all
/// tasks wait.
pub(super) async fn rest() {
    tokio::time::sleep(TICK).await;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Noted {
    Made,
    Woke,
    Answered(BTreeSet<u32>),
    Began(u32),
    Finished(u32),
    Retired,
    Gone,
}

#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) at: Duration,
    pub(super) role: Role,
    pub(super) number: u64,
    pub(super) event: Noted,
}

/// What happened, in order.
#[derive(Clone)]
pub(super) struct Journal {
    kit: Kit<Role>,
    lines: Arc<Mutex<Vec<Line>>>,
}

impl Journal {
    pub(super) fn new() -> Self {
        Self { kit: kit(), lines: Arc::default() }
    }

    pub(super) fn note(&self, epoch: &Epoch, event: Noted) {
        self.lines.lock().unwrap().push(Line {
            at: self.kit.clock.now().monotonic,
            role: epoch.role().parse().unwrap(),
            number: epoch.number(),
            event,
        });
    }

    pub(super) fn kit(&self) -> Kit<Role> {
        self.kit.clone()
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        self.lines.lock().unwrap().clone()
    }

    pub(super) fn of(&self, role: &Role) -> Vec<Line> {
        let mut lines = self.lines();
        lines.retain(|line| line.role == *role);
        lines
    }

    /// Times at which lives of this role were attempted.
    pub(super) fn attempts(&self, role: &Role) -> Vec<Duration> {
        self.of(role)
            .into_iter()
            .filter(|line| line.event == Noted::Made)
            .map(|line| line.at)
            .collect()
    }

    pub(super) fn roles(&self, event: &Noted) -> Vec<Role> {
        self.lines().into_iter().filter(|line| line.event == *event).map(|line| line.role).collect()
    }
}

/// The messages of the actors of these tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// The bell rang.
    Answer,
    /// Takes this long, in a pump.
    Work(u32, Duration),
    /// Never returns, in a pump.
    Hang,
    Fail,
    Panic,
    /// Orders itself to work after a while.
    Later(u32, Duration),
    /// Orders itself to work at once.
    Next(u32),
}

/// What goes wrong with every life of a post from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Curse {
    None,
    PanicWhenMade,
    FailOnWake,
    HangOnRetire,
}

/// A role with everything that outlives its lives.
#[derive(Clone)]
pub(super) struct Post {
    pub(super) role: Role,
    pub(super) address: Address<Act>,
    pub(super) bell: DirtySet<u32>,
    pub(super) curse: Arc<Mutex<Curse>>,
    journal: Journal,
}

impl Post {
    pub(super) fn new(role: Role, journal: &Journal) -> Self {
        let address = Address::vacant();
        let owner = address.clone();
        Self {
            role,
            bell: DirtySet::new(move || _ = owner.send(Act::Answer)),
            address,
            curse: Arc::new(Mutex::new(Curse::None)),
            journal: journal.clone(),
        }
    }

    pub(super) fn cursed(self, curse: Curse) -> Self {
        *self.curse.lock().unwrap() = curse;
        self
    }

    pub(super) fn journal(&self) -> Journal {
        self.journal.clone()
    }

    /// As a machine or pump, as its role has it.
    pub(super) fn spec(&self) -> ChildSpec<Role> {
        let post = self.clone();
        match self.role.policy().kind {
            ActorKind::Pump => {
                child(self.role.clone(), &self.address, move |epoch| Player::new(&post, epoch))
            }
            ActorKind::Machine => {
                machine(self.role.clone(), &self.address, move |epoch| Player::new(&post, epoch))
            }
            ActorKind::Supervisor => panic!("{} is a supervisor", self.role),
        }
    }

    pub(super) fn send(&self, act: Act) {
        assert_eq!(self.address.send(act), Delivery::Taken, "{}", self.role);
    }
}

/// One life of a post.
pub(super) struct Player {
    post: Post,
    epoch: Epoch,
}

impl Player {
    fn new(post: &Post, epoch: &Epoch) -> Self {
        post.journal.note(epoch, Noted::Made);
        let player = Self { post: post.clone(), epoch: epoch.clone() };
        assert!(!player.is(Curse::PanicWhenMade), "cannot be made");
        player
    }

    fn note(&self, event: Noted) {
        self.post.journal.note(&self.epoch, event);
    }

    fn drain(&self) {
        self.note(Noted::Answered(self.post.bell.drain()));
    }

    fn is(&self, curse: Curse) -> bool {
        *self.post.curse.lock().unwrap() == curse
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.note(Noted::Gone);
    }
}

impl Actor for Player {
    type Msg = Act;

    async fn handle(&mut self, cx: &Context<Self::Msg>, event: Event<Self::Msg>) -> ActorResult {
        assert_eq!(cx.epoch(), &self.epoch);
        assert_eq!(cx.epoch().role(), self.post.role.to_string());
        match event {
            Event::Started => {
                self.note(Noted::Woke);
                if self.is(Curse::FailOnWake) {
                    return Err(std::io::Error::other("cannot wake").into());
                }
                self.drain();
            }
            Event::Message(Act::Answer) => self.drain(),
            Event::Message(Act::Work(task, time)) => {
                self.note(Noted::Began(task));
                tokio::time::sleep(time).await;
                self.note(Noted::Finished(task));
            }
            Event::Message(Act::Hang) => std::future::pending().await,
            Event::Message(Act::Fail) => Err(std::io::Error::other("ordered to fail"))?,
            Event::Message(Act::Panic) => panic!("ordered to panic"),
            Event::Message(Act::Later(task, after)) => {
                cx.arm(after, Act::Work(task, Duration::ZERO));
            }
            Event::Message(Act::Next(task)) => {
                cx.send_self(Act::Work(task, Duration::ZERO));
            }
        }
        Ok(())
    }

    async fn retire(&mut self, _cx: &Context<Act>) {
        if self.is(Curse::HangOnRetire) {
            std::future::pending::<()>().await;
        }
        self.note(Noted::Retired);
    }
}

impl StateMachine for Player {
    type Msg = Act;
    type Effect = Noted;

    fn step(&mut self, _now: Moment, event: Event<Self::Msg>, effects: &mut Vec<Self::Effect>) {
        match event {
            Event::Started => {
                assert!(!self.is(Curse::FailOnWake), "cannot wake");
                effects.push(Noted::Woke);
                effects.push(Noted::Answered(self.post.bell.drain()));
            }
            Event::Message(Act::Answer) => {
                effects.push(Noted::Answered(self.post.bell.drain()));
            }
            Event::Message(Act::Work(task, _)) => {
                effects.extend([Noted::Began(task), Noted::Finished(task)]);
            }
            Event::Message(act) => panic!("no order for a machine: {act:?}"),
        }
    }

    fn perform(&mut self, _cx: &Context<Act>, effect: Noted) {
        self.note(effect);
    }
}
