//! Cases, their classes, and how they are run: many at once in one world, or alone.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Mutex, OnceCell, RwLock, Semaphore};
use tokio::time::{Instant, timeout};

use super::audit;
use super::dump::{self, Logs};
use super::fault::Result;
use super::namespace::Namespace;
use super::run::Run;
use super::tools::target;
use super::wait::SLACK;
use super::world::{Setup, World};
use crate::cases::rights;

const DEADLINE: Duration = Duration::from_mins(3);
/// Shared cases wait most of the time, above all for the one-minute peak of V1 to pass, so many more
/// of them run than there are cores.
const PARALLEL: usize = 8;
/// Each of these cases runs a dozen servers.
const WORLDS_AT_ONCE: usize = 2;

/// Who may use the servers of a case meanwhile. Cases run in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Other cases, each in its own namespace.
    Shared,
    /// With none: the case disturbs servers of the shared world.
    Exclusive,
    /// No other case: the servers are new, and end with it.
    OwnServers(Setup),
}

impl Class {
    const fn turn(self) -> usize {
        match self {
            Self::Shared => 0,
            Self::Exclusive => 1,
            Self::OwnServers(_) => 2,
        }
    }
}

/// How much of the suite is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Whole,
    /// What was asked for by name.
    Part,
}

pub(crate) struct Case {
    name: String,
    class: Class,
    deadline: Duration,
    body: Box<dyn Body>,
}

/// What a case is given: the servers, and a namespace of its own.
pub(crate) struct Cx {
    pub(crate) world: Arc<World>,
    pub(crate) namespace: Namespace,
    system: OnceCell<Namespace>,
}

impl Cx {
    async fn new(world: Arc<World>, namespace: &str) -> Result<Self> {
        let namespace = Namespace::create(&world, namespace).await?;
        Ok(Self { world, namespace, system: OnceCell::new() })
    }

    /// The namespace that the case's controllers run in, made when it is first asked for.
    pub(crate) async fn system(&self) -> Result<&Namespace> {
        let name = format!("{}-system", self.namespace.name);
        self.system.get_or_try_init(async || Namespace::create(&self.world, &name).await).await
    }

    /// Where files of the case alone may lie.
    pub(crate) fn conf(&self, what: &str) -> PathBuf {
        let name = format!("{what}-of-{}", self.namespace.name);
        self.world.site.conf(&name)
    }

    /// A folder for files of the case alone.
    pub(crate) fn folder(&self, what: &str) -> Result<PathBuf> {
        let folder = self.conf(what);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        std::iter::once(&self.namespace).chain(self.system.get())
    }
}

trait Body: Send {
    fn run<'a>(&'a self, cx: &'a Cx) -> LocalBoxFuture<'a, Result>;
}

impl<F: AsyncFn(&Cx) -> Result + Send> Body for F {
    fn run<'a>(&'a self, cx: &'a Cx) -> LocalBoxFuture<'a, Result> {
        Box::pin(self(cx))
    }
}

/// A case of a kind that is named like its module and its function, which may stand in a file of the module.
macro_rules! case {
    ($kind:ident $(($setup:expr))?, $module:ident::$case:ident) => {
        $crate::harness::suite::Case::$kind(
            concat!(stringify!($module), "::", stringify!($case)),
            $($setup,)?
            $case,
        )
    };
    ($kind:ident $(($setup:expr))?, $module:ident, $file:ident::$case:ident) => {
        $crate::harness::suite::Case::$kind(
            concat!(stringify!($module), "::", stringify!($case)),
            $($setup,)?
            $file::$case,
        )
    };
}
pub(crate) use case;

impl Case {
    /// A case that shares the servers with others.
    pub(crate) fn shared(name: &str, body: impl AsyncFn(&Cx) -> Result + Send + 'static) -> Self {
        Self::new(name, Class::Shared, body)
    }

    /// A case that runs when no other does, because it disturbs the servers.
    pub(crate) fn exclusive(
        name: &str,
        body: impl AsyncFn(&Cx) -> Result + Send + 'static,
    ) -> Self {
        Self::new(name, Class::Exclusive, body)
    }

    /// A case that gets servers of its own, set up as it needs them.
    pub(crate) fn with_own_servers(
        name: &str,
        setup: Setup,
        body: impl AsyncFn(&Cx) -> Result + Send + 'static,
    ) -> Self {
        Self::new(name, Class::OwnServers(setup), body)
    }

    /// Sets another deadline than the usual one for the body of the case.
    pub(crate) fn within(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn new(name: &str, class: Class, body: impl AsyncFn(&Cx) -> Result + Send + 'static) -> Self {
        Self { name: name.to_owned(), class, deadline: DEADLINE, body: Box::new(body) }
    }
}

/// The world that shared cases use: started by the first of them, once.
enum Shared {
    NotStarted,
    Running(Arc<World>),
    /// Kept, so that the other cases fail at once with the same reason.
    Failed(String),
}

struct Suite {
    runtime: Runtime,
    run: Arc<Run>,
    shared: Mutex<Shared>,
    /// Shared cases read, exclusive ones write.
    gate: RwLock<()>,
    worlds: Semaphore,
    names: AtomicUsize,
}

/// Runs the cases as the standard harness would: filters, `--list`, `--exact`, closing lines.
pub(crate) fn run(mut cases: Vec<Case>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(PARALLEL);
    let extent = if arguments.filter.is_none() && arguments.skip.is_empty() {
        Extent::Whole
    } else {
        Extent::Part
    };
    // Trials are taken in order, so exclusive cases come when the shared ones are done or running. Of each class those
    // that may take longest begin first: the others fit around them.
    cases.sort_by_key(|case| (case.class.turn(), Reverse(case.deadline)));
    if arguments.list {
        let trials = cases.into_iter().map(|case| Trial::test(case.name, || Ok(())));
        return libtest_mimic::run(&arguments, trials.collect()).exit_code();
    }
    let suite = match Suite::new() {
        Ok(suite) => Arc::new(suite),
        Err(fault) => {
            eprintln!("the suite cannot begin: {fault}");
            return ExitCode::FAILURE;
        }
    };
    remember_panics();
    suite.end_on_signals();
    let trials = cases.into_iter().map(|case| {
        let suite = Arc::clone(&suite);
        Trial::test(case.name.clone(), move || suite.judge(&case))
    });
    // The runner itself panics when its output is cut off; the servers are ended all the same.
    let trials = trials.collect();
    let conclusion = catch_unwind(AssertUnwindSafe(|| libtest_mimic::run(&arguments, trials)));
    suite.runtime.block_on(suite.end());
    match conclusion {
        Ok(conclusion) => match suite.rights_fitted(extent) {
            Ok(()) => conclusion.exit_code(),
            Err(fault) => {
                eprintln!("over all servers of the suite: {fault}");
                ExitCode::FAILURE
            }
        },
        Err(panic) => resume_unwind(panic),
    }
}

impl Suite {
    fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let run = runtime.block_on(Run::begin(&target().join("cluster")))?;
        Ok(Self {
            runtime,
            run,
            shared: Mutex::new(Shared::NotStarted),
            gate: RwLock::new(()),
            worlds: Semaphore::new(WORLDS_AT_ONCE),
            names: AtomicUsize::new(1),
        })
    }

    /// Ctrl-C and SIGTERM end the servers before they end the suite.
    fn end_on_signals(self: &Arc<Self>) {
        let run = Arc::clone(&self.run);
        self.runtime.spawn(async move {
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            let (interrupted, terminated) = (interrupt.recv(), terminate.recv());
            futures::pin_mut!(interrupted, terminated);
            futures::future::select(interrupted, terminated).await;
            eprintln!("interrupted: the servers are being ended");
            run.end().await;
            std::process::exit(130);
        });
    }

    fn judge(&self, case: &Case) -> std::result::Result<(), Failed> {
        IN_CASE.set(true);
        self.runtime.block_on(async {
            match case.class {
                Class::Shared => {
                    let _shared = self.gate.read().await;
                    self.attempt(case, &self.shared_world().await?).await
                }
                Class::Exclusive => {
                    let _alone = self.gate.write().await;
                    let verdict = self.attempt(case, &self.shared_world().await?).await;
                    if verdict.is_err() {
                        // What it disturbed may be disturbed still.
                        self.stop_shared_world().await;
                    }
                    verdict
                }
                Class::OwnServers(setup) => {
                    {
                        let _alone = self.gate.write().await;
                        self.stop_shared_world().await;
                    }
                    let _world = self.worlds.acquire().await?;
                    let name = self.name_for(case);
                    let world = Arc::new(World::start(&self.run, &name, setup).await?);
                    let verdict = self.attempt(case, &world).await;
                    world.stop().await;
                    verdict
                }
            }
        })
    }

    async fn attempt(&self, case: &Case, world: &Arc<World>) -> std::result::Result<(), Failed> {
        let cx = Cx::new(Arc::clone(world), &self.name_for(case)).await?;
        let logs = Logs::mark(&world.site.logs());
        let body = AssertUnwindSafe(case.body.run(&cx)).catch_unwind();
        let began = Instant::now();
        let ended = timeout(case.deadline * SLACK, body).await;
        eprintln!("{}: {:.1} s", case.name, began.elapsed().as_secs_f64());
        let outcome = match ended {
            Ok(Ok(Ok(()))) => cx.world.check().map_err(|fault| fault.to_string()),
            Ok(Ok(Err(fault))) => Err(fault.to_string()),
            Ok(Err(_)) => Err(last_panic()),
            Err(_) => Err(format!("not done within {:?}", case.deadline * SLACK)),
        };
        let verdict = match outcome {
            Ok(()) => Ok(()),
            Err(failure) => {
                let namespaces: Vec<&str> =
                    cx.namespaces().map(|namespace| namespace.name.as_str()).collect();
                let shown = dump::of_case(&cx.world, &namespaces, &logs).await;
                // Again at the end: reports that keep only the last lines keep the reason, too.
                Err(Failed::from(format!("{failure}\n{shown}\n{failure}")))
            }
        };
        for namespace in cx.namespaces() {
            if let Err(fault) = namespace.delete().await {
                eprintln!("{} stays behind: {fault}", namespace.name);
            }
        }
        verdict
    }

    async fn shared_world(&self) -> std::result::Result<Arc<World>, Failed> {
        let mut shared = self.shared.lock().await;
        match &*shared {
            Shared::Running(world) => {
                world.check()?;
                Ok(Arc::clone(world))
            }
            Shared::Failed(reason) => Err(Failed::from(reason)),
            Shared::NotStarted => match World::start(&self.run, "shared", Setup::Whole).await {
                Ok(world) => {
                    let world = Arc::new(world);
                    *shared = Shared::Running(Arc::clone(&world));
                    Ok(world)
                }
                Err(fault) => {
                    let reason = format!("the servers did not start: {fault}");
                    *shared = Shared::Failed(reason.clone());
                    Err(Failed::from(reason))
                }
            },
        }
    }

    /// A namespace name that shows the case: `t7-engines-follow-the-pods`.
    fn name_for(&self, case: &Case) -> String {
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        let slug: String = case
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
            .take(40)
            .collect();
        format!("t{number}-{}", slug.trim_matches('-').replace("--", "-"))
    }

    async fn stop_shared_world(&self) {
        let mut shared = self.shared.lock().await;
        if let Shared::Running(world) = &*shared {
            world.stop().await;
            *shared = Shared::NotStarted;
        }
    }

    /// In none of the worlds was a controller refused anything, or did what is not shipped, by the logs
    /// that they leave behind. Over all cases, everything that is granted was used.
    fn rights_fitted(&self, extent: Extent) -> Result {
        let uses = audit::uses_of_run(self.run.dir())?;
        rights::suffice(&uses)?;
        match extent {
            Extent::Whole => rights::are_all_used(&uses),
            Extent::Part => Ok(()),
        }
    }

    async fn end(&self) {
        self.stop_shared_world().await;
        self.run.end().await;
    }
}

thread_local! {
    /// Whether this thread runs cases, and the text of its last panic.
    static IN_CASE: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps the text and place of a case's panic for its report, instead of printing it between the
/// lines of the others. Panics of other threads are printed as they happen.
fn remember_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if IN_CASE.get() {
            PANIC.set(Some(info.to_string()));
        } else {
            usual(info);
        }
    }));
}

fn last_panic() -> String {
    PANIC.take().unwrap_or_else(|| String::from("panicked"))
}
