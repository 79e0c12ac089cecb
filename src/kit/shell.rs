//! Runs a behaviour as an actor.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tracing::Instrument;

use super::address::{Address, Inbox};
use super::behaviour::{Behaviour, Context, Occasion, Trouble};
use super::census::LifeGuard;
use super::child::{Boarding, ChildSpec, spawn};
use super::life::{Life, attend};
use super::machine::{Duty, Machine};
use super::role::{Role, Shape};
use super::root::Kit;
use super::tenure::Tenure;

/// A pump that fills a role. `make` is called for every life; what it must not lose lives elsewhere.
pub fn child<B: Behaviour>(
    role: Role,
    address: &Address<B::Msg>,
    make: impl Fn(&Tenure) -> B + Send + Sync + 'static,
) -> ChildSpec {
    leaf(role, Shape::Pump, address, make)
}

/// A machine that fills a role. `make` is called for every life; what it must not lose lives
/// elsewhere.
pub fn machine<D: Duty>(
    role: Role,
    address: &Address<D::Msg>,
    make: impl Fn(&Tenure) -> D + Send + Sync + 'static,
) -> ChildSpec {
    leaf(role, Shape::Machine, address, move |tenure| {
        Machine(make(tenure))
    })
}

fn leaf<B: Behaviour>(
    role: Role,
    shape: Shape,
    address: &Address<B::Msg>,
    make: impl Fn(&Tenure) -> B + Send + Sync + 'static,
) -> ChildSpec {
    let make: Arc<Make<B>> = Arc::new(make);
    let address = address.clone();
    ChildSpec::new(role, shape, move |boarding, supervisor| {
        let shell = Shell {
            make: Arc::clone(&make),
        };
        let address = address.clone();
        async move {
            let life = Arc::clone(boarding.guard.life());
            let actor = spawn(shell, boarding, supervisor).await?;
            let cell = actor.get_cell();
            address.publish(inbox(life, actor));
            Ok(cell)
        }
    })
}

type Make<B> = dyn Fn(&Tenure) -> B + Send + Sync;

struct Shell<B> {
    make: Arc<Make<B>>,
}

/// Everything that belongs to one life; dropped with it.
struct Occupant<B: Behaviour> {
    behaviour: B,
    cx: Context<B::Msg>,
    kit: Kit,
    guard: LifeGuard,
}

impl<B: Behaviour> Actor for Shell<B> {
    type Msg = Occasion<B::Msg>;
    type State = Occupant<B>;
    type Arguments = Boarding;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        Boarding { kit, guard }: Boarding,
    ) -> Result<Self::State, ActorProcessingErr> {
        guard.seat(myself.get_cell());
        let life = guard.life();
        let behaviour = life.span().in_scope(|| (self.make)(life.tenure()));
        let cx = Context::new(
            kit.clone(),
            Arc::clone(life),
            inbox(Arc::clone(life), myself),
        );
        Ok(Occupant {
            behaviour,
            cx,
            kit,
            guard,
        })
    }

    async fn handle(
        &self,
        _myself: ActorRef<Self::Msg>,
        occasion: Self::Msg,
        occupant: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let Occupant {
            behaviour,
            cx,
            kit,
            guard,
        } = occupant;
        #[cfg(feature = "sim")]
        occasion.meet(guard.life());
        attend(kit, guard.life(), behaviour.handle(cx, occasion))
            .await
            .map_err(Trouble::into_inner)
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<Self::Msg>,
        occupant: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let span = occupant.guard.life().span();
        occupant
            .behaviour
            .retire(&occupant.cx)
            .instrument(span)
            .await;
        Ok(())
    }
}

fn inbox<M: Send + 'static>(life: Arc<Life>, actor: ActorRef<Occasion<M>>) -> Inbox<Occasion<M>> {
    Inbox::new(life, move |occasion| actor.send_message(occasion).is_ok())
}
