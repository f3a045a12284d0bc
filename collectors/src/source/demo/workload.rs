//! The demonstration load: a few threads that use the engine as programs use a kernel.
//!
//! Each cache shows one thing that a report should find: churn, objects freed
//! by another thread than their allocator, sparse slabs, a leak, a size class
//! against a cache of the right size, a debug cache with handles that nobody
//! closes (see `forget_handle`), and one load on every policy. The seeds
//! are fixed and the threads take turns while they warm up, so that the first
//! figures are the same every time. The load ends by itself ([`TIME`],
//! [`LEAK_OBJECTS`]); it measures nothing.

use std::alloc::Layout;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

use slabcore::{CacheBuilder, DebugFlags, Engine, Error, Policy, Slabbed, TypedCache};

/// How long the load runs at the most.
pub(super) const TIME: Duration = Duration::from_secs(10 * 60);
/// Objects at which the leak stops.
const LEAK_OBJECTS: usize = 400_000;
/// Handles that are forgotten.
const FORGOTTEN: usize = 12;
/// Pause between two bursts of a thread.
const PAUSE: Duration = Duration::from_millis(50);
/// Bursts before the first sample.
const WARM_UP: u32 = 24;
/// Threads.
const WORKERS: u32 = 3;

/// What the threads and the source share.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// Held for reading during a burst, for writing while figures are read.
    gate: RwLock<()>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct State {
    stop: bool,
    /// Bursts follow each other without a pause.
    hurry: bool,
    ended: bool,
    /// Bursts done in the warm-up.
    turn: u32,
}

impl Control {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the threads end; objects and caches go with them.
    pub(super) fn stop(&self) {
        self.state().stop = true;
        self.changed.notify_all();
    }

    /// Turns the pauses between bursts off or on.
    pub(super) fn hurry(&self, on: bool) {
        self.state().hurry = on;
        self.changed.notify_all();
    }

    /// Whether the load has reached its bound in time.
    pub(super) fn ended(&self) -> bool {
        self.state().ended
    }

    /// Waits until no thread is in a burst, and holds them there.
    pub(super) fn hold(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn in the warm-up; false when the load is to stop.
    fn wait_for(&self, turn: u32) -> bool {
        let waited = self
            .changed
            .wait_while(self.state(), |state| !state.stop && state.turn != turn);
        !waited.unwrap_or_else(PoisonError::into_inner).stop
    }

    fn next_turn(&self) {
        self.state().turn += 1;
        self.changed.notify_all();
    }

    /// Waits for the next burst; false when there is none.
    fn pause(&self, until: Instant) -> bool {
        let state = self.state();
        let (mut state, _) = self
            .changed
            .wait_timeout_while(state, PAUSE, |state| !state.stop && !state.hurry)
            .unwrap_or_else(PoisonError::into_inner);
        if Instant::now() < until {
            return !state.stop;
        }
        // What was allocated stays, so that the last figures can still be looked at.
        state.ended = true;
        while !state.stop {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        false
    }
}

/// An object of so many bytes.
struct Block<const N: usize>([u8; N]);

/// Objects of one cache that a thread keeps, with a limit.
struct Held<'c, const N: usize> {
    cache: &'c TypedCache<Block<N>>,
    objects: Vec<Slabbed<'c, Block<N>>>,
}

impl<'c, const N: usize> Held<'c, N> {
    fn new(cache: &'c TypedCache<Block<N>>) -> Self {
        let objects = Vec::new();
        Self { cache, objects }
    }

    /// One more object; none when the engine's limit is reached.
    fn make(&self) -> Option<Slabbed<'c, Block<N>>> {
        let mut object = self.cache.insert(Block([0; N])).ok()?;
        // The payload is written to, as by a user of it.
        if let Some(first) = object.0.first_mut() {
            *first = 1;
        }
        Some(object)
    }

    fn add(&mut self, count: usize) {
        let objects = (0..count).filter_map(|_| self.make()).collect::<Vec<_>>();
        self.objects.extend(objects);
    }

    /// Frees one at random.
    fn remove(&mut self, random: &mut Random) {
        if !self.objects.is_empty() {
            let at = random.below(self.objects.len());
            self.objects.swap_remove(at);
        }
    }

    /// Adds `count` objects and frees at random down to `keep`.
    fn churn(&mut self, count: usize, keep: usize, random: &mut Random) {
        self.add(count);
        while self.objects.len() > keep {
            self.remove(random);
        }
    }
}

/// A small generator (xorshift, Marsaglia 2003), since only spread is needed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (bound.max(1) as u64)).unwrap_or(0)
    }
}

/// The caches, as a reader will find them.
struct Caches {
    session: TypedCache<Block<200>>,
    message: TypedCache<Block<256>>,
    fragmented: TypedCache<Block<512>>,
    leak: TypedCache<Block<72>>,
    page_lock: TypedCache<Block<72>>,
    odd: TypedCache<Block<100>>,
    idle: TypedCache<Block<640>>,
    kmalloc_64: TypedCache<Block<64>>,
    kmalloc_96: TypedCache<Block<96>>,
    kmalloc_1k: TypedCache<Block<1024>>,
    /// With `slab_debug=FZPU`, and a leak that its tracks explain.
    handle: TypedCache<Block<96>>,
    policies: Vec<TypedCache<Block<128>>>,
}

impl Caches {
    fn new(engine: &Engine) -> Result<Self, Error> {
        Ok(Self {
            session: TypedCache::new(engine, "demo_session")?,
            message: TypedCache::new(engine, "demo_message")?,
            fragmented: TypedCache::new(engine, "demo_fragmented")?,
            leak: TypedCache::new(engine, "demo_leak")?,
            page_lock: TypedCache::new(engine, "demo_page_lock")?,
            odd: TypedCache::new(engine, "demo_odd")?,
            idle: TypedCache::new(engine, "demo_idle")?,
            kmalloc_64: TypedCache::new(engine, "kmalloc-64")?,
            kmalloc_96: TypedCache::new(engine, "kmalloc-96")?,
            kmalloc_1k: TypedCache::new(engine, "kmalloc-1k")?,
            handle: TypedCache::with(
                CacheBuilder::new(engine, "demo_handle", Layout::new::<Block<96>>())
                    .debug_flags(DebugFlags::DEFAULT),
            )?,
            policies: Policy::ALL
                .into_iter()
                .map(|policy| {
                    let name = format!("demo_{}", policy.name().replace('-', "_"));
                    let layout = Layout::new::<Block<128>>();
                    TypedCache::with(CacheBuilder::new(engine, &name, layout).policy(policy))
                })
                .collect::<Result<_, _>>()?,
        })
    }
}

/// A thread's part of the load.
trait Work {
    fn burst(&mut self, round: u32);
}

/// Sessions come and go, a driver fragments its slabs and leaks.
struct Service<'c> {
    random: Random,
    session: Held<'c, 200>,
    fragmented: Held<'c, 512>,
    leak: Held<'c, 72>,
    page_lock: Held<'c, 72>,
    odd: Held<'c, 100>,
    idle: Held<'c, 640>,
    kmalloc_64: Held<'c, 64>,
    kmalloc_96: Held<'c, 96>,
    kmalloc_1k: Held<'c, 1024>,
    /// Handles that are closed in the next burst.
    handles: Held<'c, 96>,
    /// Handles that the fault in [`forget_handle`] leaves open.
    forgotten: Held<'c, 96>,
}

/// The planted fault: one of the handles of a burst is not closed.
#[inline(never)]
fn forget_handle(forgotten: &mut Held<'_, 96>) {
    forgotten.add(1);
}

/// The right way: opened here, closed in the next burst.
#[inline(never)]
fn open_handles(handles: &mut Held<'_, 96>) {
    handles.add(8);
}

impl<'c> Service<'c> {
    fn new(caches: &'c Caches) -> Self {
        Self {
            random: Random(0x5eed_0001),
            session: Held::new(&caches.session),
            fragmented: Held::new(&caches.fragmented),
            leak: Held::new(&caches.leak),
            page_lock: Held::new(&caches.page_lock),
            odd: Held::new(&caches.odd),
            idle: Held::new(&caches.idle),
            kmalloc_64: Held::new(&caches.kmalloc_64),
            kmalloc_96: Held::new(&caches.kmalloc_96),
            kmalloc_1k: Held::new(&caches.kmalloc_1k),
            handles: Held::new(&caches.handle),
            forgotten: Held::new(&caches.handle),
        }
    }
}

impl Work for Service<'_> {
    fn burst(&mut self, round: u32) {
        let random = &mut self.random;
        self.session.churn(200, 3000, random);
        self.odd.churn(60, 900, random);
        self.kmalloc_64.churn(50, 700, random);
        self.kmalloc_1k.churn(8, 120, random);
        // The same 72 bytes, from a size class and from a cache of their own.
        self.kmalloc_96.churn(100, 2000, random);
        self.page_lock.churn(100, 2000, random);
        // A peak of 4000, of which one in ten stays wherever it lies.
        match round {
            0 => self.fragmented.churn(4000, 400, random),
            _ => self.fragmented.churn(2, 400, random),
        }
        if self.leak.objects.len() < LEAK_OBJECTS {
            self.leak.add(30);
        }
        self.handles.objects.clear();
        open_handles(&mut self.handles);
        if self.forgotten.objects.len() < FORGOTTEN {
            forget_handle(&mut self.forgotten);
        }
        if round == 0 {
            // Used once, then never again.
            self.idle.churn(60, 0, random);
        }
    }
}

type Message<'c> = Slabbed<'c, Block<256>>;
type Parcel<'c> = Slabbed<'c, Block<128>>;

/// Allocates what the other one frees.
struct Producer<'c> {
    random: Random,
    messages: Held<'c, 256>,
    policies: Vec<Held<'c, 128>>,
    to: SyncSender<Message<'c>>,
    parcels: SyncSender<Parcel<'c>>,
}

impl Work for Producer<'_> {
    fn burst(&mut self, _: u32) {
        for _ in 0..150 {
            // A full queue means that the message is dropped, and freed here.
            let _ = self.messages.make().map(|m| self.to.try_send(m));
        }
        for held in &mut self.policies {
            held.churn(100, 800, &mut self.random);
            for _ in 0..50 {
                let _ = held.make().map(|parcel| self.parcels.try_send(parcel));
            }
        }
    }
}

/// Frees what the other one allocates, some messages behind.
struct Consumer<'c> {
    random: Random,
    backlog: Vec<Message<'c>>,
    policies: Vec<Held<'c, 128>>,
    from: Receiver<Message<'c>>,
    parcels: Receiver<Parcel<'c>>,
}

impl Work for Consumer<'_> {
    fn burst(&mut self, _: u32) {
        self.backlog.extend(self.from.try_iter());
        while self.backlog.len() > 600 {
            let at = self.random.below(self.backlog.len());
            self.backlog.swap_remove(at);
        }
        self.parcels.try_iter().for_each(drop);
        for held in &mut self.policies {
            held.churn(100, 800, &mut self.random);
        }
    }
}

/// Runs the load until it is told to stop; `ready` hears when it has warmed up.
pub(super) fn run(engine: &Engine, control: &Control, ready: &SyncSender<Result<(), Error>>) {
    // Nobody listens only when the source is gone.
    let caches = match Caches::new(engine) {
        Ok(caches) => caches,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    let (to, from) = sync_channel(4096);
    let (give, take) = sync_channel(4096);
    let held = || caches.policies.iter().map(Held::new).collect::<Vec<_>>();
    let producer = Producer {
        random: Random(0x5eed_0002),
        messages: Held::new(&caches.message),
        policies: held(),
        to,
        parcels: give,
    };
    let consumer = Consumer {
        random: Random(0x5eed_0003),
        backlog: Vec::new(),
        policies: held(),
        from,
        parcels: take,
    };
    let until = Instant::now() + TIME;
    let service = Service::new(&caches);
    thread::scope(|scope| {
        let workers = [
            thread::Builder::new().spawn_scoped(scope, move || work(service, 0, control, until)),
            thread::Builder::new().spawn_scoped(scope, move || work(producer, 1, control, until)),
            thread::Builder::new().spawn_scoped(scope, move || work(consumer, 2, control, until)),
        ];
        if workers.iter().any(Result::is_err) {
            return control.stop();
        }
        if control.wait_for(WARM_UP * WORKERS) {
            let _ = ready.send(Ok(()));
        }
    });
}

fn work(mut work: impl Work, me: u32, control: &Control, until: Instant) {
    let mut burst = |round| {
        let _in_burst = control.gate.read().unwrap_or_else(PoisonError::into_inner);
        work.burst(round);
    };
    for round in 0..WARM_UP {
        if !control.wait_for(round * WORKERS + me) {
            return;
        }
        burst(round);
        control.next_turn();
    }
    let mut round = WARM_UP;
    while control.pause(until) {
        burst(round);
        round = round.saturating_add(1);
    }
}
