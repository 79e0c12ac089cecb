//! A tree to play on: actors that do as they are told and write down what happened.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::env::{Clock, SeedTree};
use crate::kit::{
    Address, Behaviour, Census, ChildSpec, Context, Delivery, Doorbell, Duty, ExitReason, Kit,
    Occasion, Role, RoleReport, RoleState, Shape, Tenure, Trouble, child, machine, run,
};
use crate::policy::moment::{Moment, WallTime};

pub(super) const TICK: Duration = Duration::from_millis(1);

pub(super) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A running tree.
pub(super) struct Stage {
    pub(super) kit: Kit,
    pub(super) journal: Journal,
    curtain: Option<oneshot::Sender<()>>,
    play: JoinHandle<ExitReason>,
}

pub(super) fn kit() -> Kit {
    Kit {
        clock: Clock::at(WallTime(0)),
        seed: SeedTree::new(7),
        census: Census::new(),
    }
}

impl Stage {
    /// Starts the tree and lets it come to rest.
    pub(super) async fn raise(journal: Journal, children: Vec<ChildSpec>) -> Self {
        let (curtain, fallen) = oneshot::channel();
        let kit = journal.kit.clone();
        let play = tokio::spawn(run(kit.clone(), children, async {
            drop(fallen.await);
        }));
        rest().await;
        Self {
            kit,
            journal,
            curtain: Some(curtain),
            play,
        }
    }

    pub(super) async fn fall(mut self) -> ExitReason {
        drop(self.curtain.take());
        self.play.await.unwrap()
    }

    /// The end of a tree that nobody stops.
    pub(super) async fn collapse(self, within: Duration) -> ExitReason {
        let reason = tokio::time::timeout(within, self.play).await;
        drop(self.curtain);
        reason.expect("still standing").unwrap()
    }

    /// Ends it as a crash of the process would.
    pub(super) fn abort(self) {
        self.play.abort();
    }

    pub(super) fn report(&self, role: &Role) -> RoleReport {
        report(&self.kit.census, role).unwrap_or_else(|| panic!("{role} has never lived"))
    }

    /// Waits until `role` runs with a higher number than `number`, and is at rest.
    pub(super) async fn reborn(&self, role: &Role, number: u64) -> RoleReport {
        self.reborn_within(secs(60), role, number).await
    }

    pub(super) async fn reborn_within(
        &self,
        within: Duration,
        role: &Role,
        number: u64,
    ) -> RoleReport {
        until(within, &format!("{role} after no. {number}"), || {
            let now = self.report(role);
            (now.state == RoleState::Running && now.incarnation > number && now.told == now.handled)
                .then_some(now)
        })
        .await
    }

    pub(super) fn kill(&self, role: &Role) {
        assert!(self.kit.census.kill(role), "{role} is not alive");
    }
}

pub(super) fn report(census: &Census, role: &Role) -> Option<RoleReport> {
    census.report().into_iter().find(|r| r.role == *role)
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
pub(super) enum Event {
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
    pub(super) event: Event,
}

/// What happened, in order.
#[derive(Clone)]
pub(super) struct Journal {
    kit: Kit,
    lines: Arc<Mutex<Vec<Line>>>,
}

impl Journal {
    pub(super) fn new() -> Self {
        Self {
            kit: kit(),
            lines: Arc::default(),
        }
    }

    pub(super) fn note(&self, tenure: &Tenure, event: Event) {
        self.lines.lock().unwrap().push(Line {
            at: self.kit.clock.now().monotonic,
            role: tenure.role().clone(),
            number: tenure.number(),
            event,
        });
    }

    pub(super) fn kit(&self) -> Kit {
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
            .filter(|line| line.event == Event::Made)
            .map(|line| line.at)
            .collect()
    }

    pub(super) fn roles(&self, event: &Event) -> Vec<Role> {
        self.lines()
            .into_iter()
            .filter(|line| line.event == *event)
            .map(|line| line.role)
            .collect()
    }
}

/// What an actor of these tests can be told.
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
    /// Tells itself to work after a while.
    Later(u32, Duration),
    /// Tells itself to work at once.
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
    pub(super) bell: Doorbell<u32>,
    pub(super) curse: Arc<Mutex<Curse>>,
    journal: Journal,
}

impl Post {
    pub(super) fn new(role: Role, journal: &Journal) -> Self {
        let address = Address::vacant();
        let owner = address.clone();
        Self {
            role,
            bell: Doorbell::new(move || _ = owner.tell(Act::Answer)),
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
    pub(super) fn spec(&self) -> ChildSpec {
        let post = self.clone();
        match self.role.policy().shape {
            Shape::Pump => child(self.role.clone(), &self.address, move |tenure| {
                Player::new(&post, tenure)
            }),
            Shape::Machine => machine(self.role.clone(), &self.address, move |tenure| {
                Player::new(&post, tenure)
            }),
            Shape::Supervisor => panic!("{} is a supervisor", self.role),
        }
    }

    pub(super) fn tell(&self, act: Act) {
        assert_eq!(self.address.tell(act), Delivery::Taken, "{}", self.role);
    }
}

/// One life of a post.
pub(super) struct Player {
    post: Post,
    tenure: Tenure,
}

impl Player {
    fn new(post: &Post, tenure: &Tenure) -> Self {
        post.journal.note(tenure, Event::Made);
        let player = Self {
            post: post.clone(),
            tenure: tenure.clone(),
        };
        assert!(!player.is(Curse::PanicWhenMade), "cannot be made");
        player
    }

    fn note(&self, event: Event) {
        self.post.journal.note(&self.tenure, event);
    }

    fn answer(&self) {
        self.note(Event::Answered(self.post.bell.answer()));
    }

    fn is(&self, curse: Curse) -> bool {
        *self.post.curse.lock().unwrap() == curse
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.note(Event::Gone);
    }
}

impl Behaviour for Player {
    type Msg = Act;

    async fn handle(&mut self, cx: &Context<Act>, occasion: Occasion<Act>) -> Result<(), Trouble> {
        assert_eq!((cx.tenure(), cx.role()), (&self.tenure, &self.post.role));
        match occasion {
            Occasion::Wake => {
                self.note(Event::Woke);
                if self.is(Curse::FailOnWake) {
                    return Err(Trouble::because("cannot wake"));
                }
                self.answer();
            }
            Occasion::Message(Act::Answer) => self.answer(),
            Occasion::Message(Act::Work(task, time)) => {
                self.note(Event::Began(task));
                tokio::time::sleep(time).await;
                self.note(Event::Finished(task));
            }
            Occasion::Message(Act::Hang) => std::future::pending().await,
            Occasion::Message(Act::Fail) => Err(std::io::Error::other("told to fail"))?,
            Occasion::Message(Act::Panic) => panic!("told to panic"),
            Occasion::Message(Act::Later(task, after)) => {
                cx.arm(after, Act::Work(task, Duration::ZERO));
            }
            Occasion::Message(Act::Next(task)) => {
                cx.tell_self(Act::Work(task, Duration::ZERO));
            }
        }
        Ok(())
    }

    async fn retire(&mut self, _cx: &Context<Act>) {
        if self.is(Curse::HangOnRetire) {
            std::future::pending::<()>().await;
        }
        self.note(Event::Retired);
    }
}

impl Duty for Player {
    type Msg = Act;
    type Effect = Event;

    fn step(&mut self, _now: Moment, occasion: Occasion<Act>, effects: &mut Vec<Event>) {
        match occasion {
            Occasion::Wake => {
                assert!(!self.is(Curse::FailOnWake), "cannot wake");
                effects.push(Event::Woke);
                effects.push(Event::Answered(self.post.bell.answer()));
            }
            Occasion::Message(Act::Answer) => {
                effects.push(Event::Answered(self.post.bell.answer()));
            }
            Occasion::Message(Act::Work(task, _)) => {
                effects.extend([Event::Began(task), Event::Finished(task)]);
            }
            Occasion::Message(act) => panic!("a machine was told to {act:?}"),
        }
    }

    fn perform(&mut self, _cx: &Context<Act>, effect: Event) {
        self.note(effect);
    }
}
