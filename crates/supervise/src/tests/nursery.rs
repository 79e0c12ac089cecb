//! A registry that runs the keys it is given, and the whole tree around it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::role::{FEEDS, Role};
use super::stage::{Curse, Journal, Post};
use crate::{
    Address, ChildSpec, Context, DirtySet, Epoch, Event, Order, Registry, TreeRole as _,
    dynamic_supervisor, supervisor,
};

/// What the kit reported about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notice {
    Started,
    Ended,
    Quarantined { failures: usize, retry_in: Duration },
    Released,
}

/// What outlives the registry: the objects, as if they were in a mirror.
#[derive(Clone)]
pub(super) struct Nursery {
    pub(super) address: Address<()>,
    pub(super) bell: DirtySet<String>,
    pub(super) posts: Arc<Mutex<BTreeMap<String, Post>>>,
    pub(super) notices: Arc<Mutex<Vec<(String, Notice)>>>,
    /// Further orders for the next reconciliation.
    pub(super) orders: Arc<Mutex<Vec<Order<String>>>>,
    /// Makes the next reconciliation panic.
    pub(super) poisoned: Arc<Mutex<bool>>,
    journal: Journal,
}

pub(super) fn key(number: usize) -> String {
    format!("s{number:05}")
}

pub(super) fn session(number: usize) -> Role {
    Role::Session(key(number))
}

impl Nursery {
    pub(super) fn new(journal: &Journal) -> Self {
        let address = Address::vacant();
        let owner = address.clone();
        Self {
            bell: DirtySet::new(move || _ = owner.send(())),
            address,
            posts: Arc::default(),
            notices: Arc::default(),
            orders: Arc::default(),
            poisoned: Arc::default(),
            journal: journal.clone(),
        }
    }

    pub(super) fn with(self, numbers: impl IntoIterator<Item = usize>) -> Self {
        for number in numbers {
            self.put(number, Curse::None);
        }
        self
    }

    /// Creates or changes an object.
    pub(super) fn put(&self, number: usize, curse: Curse) -> Post {
        let post = self
            .posts
            .lock()
            .unwrap()
            .entry(key(number))
            .or_insert_with(|| Post::new(session(number), &self.journal))
            .clone()
            .cursed(curse);
        self.bell.insert(key(number));
        post
    }

    /// Deletes an object.
    pub(super) fn delete(&self, number: usize) {
        self.posts.lock().unwrap().remove(&key(number));
        self.bell.insert(key(number));
    }

    pub(super) fn post(&self, number: usize) -> Post {
        self.posts.lock().unwrap()[&key(number)].clone()
    }

    pub(super) fn notices(&self, number: usize) -> Vec<Notice> {
        let notices = self.notices.lock().unwrap();
        notices
            .iter()
            .filter(|(about, _)| *about == key(number))
            .map(|(_, notice)| notice.clone())
            .collect()
    }

    pub(super) fn spec(&self) -> ChildSpec<Role> {
        let nursery = self.clone();
        dynamic_supervisor(Role::Sessions, &self.address, move |_: &Epoch| Nurse(nursery.clone()))
    }
}

struct Nurse(Nursery);

impl Nurse {
    fn notice(&self, key: &str, notice: Notice) {
        self.0.notices.lock().unwrap().push((key.to_owned(), notice));
    }
}

impl Registry for Nurse {
    type Role = Role;
    type Key = String;
    type Msg = ();

    fn reconcile(&mut self, _cx: &Context<()>, event: Event<()>) -> Vec<Order<String>> {
        assert!(!std::mem::take(&mut *self.0.poisoned.lock().unwrap()), "poisoned");
        let dirty = self.0.bell.drain();
        let posts = self.0.posts.lock().unwrap();
        let looked_at: Vec<String> = match event {
            Event::Started => posts.keys().cloned().collect(),
            Event::Message(()) => dirty.into_iter().collect(),
        };
        let orders = looked_at
            .into_iter()
            .map(|key| if posts.contains_key(&key) { Order::Run(key) } else { Order::End(key) });
        orders.chain(std::mem::take(&mut *self.0.orders.lock().unwrap())).collect()
    }

    fn child(&self, key: &String) -> ChildSpec<Role> {
        self.0.posts.lock().unwrap()[key].spec()
    }

    fn started(&mut self, key: &String) {
        self.notice(key, Notice::Started);
    }

    fn ended(&mut self, key: &String) {
        self.notice(key, Notice::Ended);
    }

    fn quarantined(&mut self, key: &String, failures: usize, why: &str, retry_in: Duration) {
        assert!(!why.is_empty());
        let notice = Notice::Quarantined { failures, retry_in };
        self.notice(key, notice);
    }

    fn released(&mut self, key: &String) {
        self.notice(key, Notice::Released);
    }
}

/// Every role of the tree, in its place.
pub(super) struct Ensemble {
    pub(super) posts: Vec<Post>,
    pub(super) nursery: Nursery,
}

impl Ensemble {
    pub(super) fn new(journal: &Journal) -> Self {
        let mut roles = vec![
            Role::Config,
            Role::Leadership,
            Role::Emitter,
            Role::Flusher,
            Role::Recorder,
            Role::Collector,
            Role::Planner,
            Role::Http,
        ];
        roles.extend((0..FEEDS).map(Role::Feed));
        roles.push(Role::Poller);
        Self {
            posts: roles.into_iter().map(|role| Post::new(role, journal)).collect(),
            nursery: Nursery::new(journal).with(0..2),
        }
    }

    pub(super) fn specs(&self) -> Vec<ChildSpec<Role>> {
        let under = |parent: &Role| -> Vec<ChildSpec<Role>> {
            let children = self.posts.iter();
            children
                .filter(|post| post.role.parent().as_ref() == Some(parent))
                .map(Post::spec)
                .collect()
        };
        let group = |role: Role| supervisor(role.clone(), under(&role));
        vec![
            self.post(&Role::Config).spec(),
            self.post(&Role::Leadership).spec(),
            group(Role::Egress),
            group(Role::Engine),
            self.nursery.spec(),
            group(Role::Ingress),
            self.post(&Role::Http).spec(),
        ]
    }

    /// Every leaf.
    pub(super) fn leaves(&self) -> Vec<Post> {
        let mut leaves = self.posts.clone();
        leaves.extend(self.nursery.posts.lock().unwrap().values().cloned());
        leaves
    }

    pub(super) fn post(&self, role: &Role) -> Post {
        let leaves = self.leaves();
        leaves.into_iter().find(|p| p.role == *role).unwrap()
    }
}
