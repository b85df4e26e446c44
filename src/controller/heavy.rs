//! Work on so many pods that other clusters would wait for it.

use tokio::runtime::{Handle, RuntimeFlavor};

use super::observe::Texts;

/// From so many pods on, deciding may take so long that other tasks must not wait for it.
const MANY_PODS: usize = 100;

/// Reading it takes so long that other tasks must not wait for it.
pub fn is_heavy(texts: &Texts) -> bool {
    texts.pods() >= MANY_PODS
}

/// Runs what may take long, if it is heavy, so that other tasks go on.
pub fn apart<T>(heavy: bool, work: impl FnOnce() -> T) -> T {
    if heavy && Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}
