//! Background tasks that a process cannot do without.
//!
//! The runtime catches the panic of a task and continues, and so would the process: alive and
//! ready, but without its watches or its Leases. So a task that has to run until the process stops
//! is given to a [`Supervisor`] under a name. When the task panics, or ends before the process was
//! asked to stop, [`Supervisor::guard`] fails and the process ends with an error; Kubernetes then
//! starts another one.
//!
//! Work that belongs to one request, one connection or one cluster is not supervised: a panic there
//! must affect that one only.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Supervises background tasks. Clones supervise the same tasks.
#[derive(Debug, Clone, Default)]
pub struct Supervisor {
    is_stopping: Arc<AtomicBool>,
    failed: watch::Sender<Option<TaskFailed>>,
}

/// The failure because of which the process has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the background task \"{task}\" {how}: the process cannot do without it and ends")]
pub struct TaskFailed {
    /// The name of the task.
    pub task: &'static str,
    /// The failure of the task, after its name in a sentence.
    pub how: &'static str,
}

/// A supervised task, as a set of this one, because a set stops its tasks when it is dropped. That does not count as a
/// failure. The supervisor has been told how a task ended.
pub type Task = JoinSet<()>;

impl Supervisor {
    /// Runs `task` in the background under a name that the log can show.
    #[must_use = "dropping it stops the task"]
    pub fn spawn<F>(&self, name: &'static str, task: F) -> Task
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut supervised = Task::new();
        supervised.spawn(self.clone().watch(name, task));
        supervised
    }

    /// The supervised `task` as a future, for another runtime to run.
    pub async fn watch(self, name: &'static str, task: impl Future<Output = ()>) {
        // Unwind safety does not matter, because the process ends: no other task will use what this
        // one left inconsistent.
        match AssertUnwindSafe(task).catch_unwind().await {
            Ok(()) if self.is_stopping() => {}
            Ok(()) => self.fail(name, "ended by itself"),
            Err(_panic) => self.fail(name, "panicked"),
        }
    }

    /// Allows tasks to end, because the process stops. A panic is still logged, but does not
    /// disturb the orderly end.
    pub fn let_end(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// Runs `work`; fails as soon as a supervised task does, and then abandons the work.
    pub async fn guard<T>(
        &self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        tokio::select! {
            done = work => done,
            failed = self.failed() => Err(failed.into()),
        }
    }

    /// Waits for the first task that fails.
    pub async fn failed(&self) -> TaskFailed {
        let mut failed = self.failed.subscribe();
        match failed.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(failed)) => *failed,
            // The sender lives as long as `self`, so this is never reached before `self` is gone.
            _ => std::future::pending().await,
        }
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    fn fail(&self, task: &'static str, how: &'static str) {
        let failed = TaskFailed { task, how };
        if self.is_stopping() {
            tracing::error!(task, %failed, "a background task failed while the process stops");
            return;
        }
        tracing::error!(task, %failed, "a background task failed");
        self.failed.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert(failed);
            is_first
        });
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    /// The result of a process whose own work never ends.
    async fn outcome(supervisor: &Supervisor) -> String {
        let work = pending::<anyhow::Result<()>>();
        supervisor.guard(work).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_panic_ends_the_process() {
        let supervisor = Supervisor::default();
        let _well = supervisor.spawn("well", pending());
        let _ill = supervisor.clone().spawn("ill", async { panic!("a bug") });
        assert_eq!(
            outcome(&supervisor).await,
            "the background task \"ill\" panicked: the process cannot do without it and ends"
        );
    }

    #[tokio::test]
    async fn an_end_that_nobody_asked_for_ends_the_process() {
        let supervisor = Supervisor::default();
        let mut brief = supervisor.spawn("brief", async {});
        brief.join_next().await;
        let _later = supervisor.spawn("later", async { panic!("a bug") });
        let text = outcome(&supervisor).await;
        assert!(text.contains("\"brief\" ended by itself"), "{text}");
    }

    #[tokio::test]
    async fn a_panic_on_another_runtime_counts_too() {
        let supervisor = Supervisor::default();
        let watched = supervisor.clone().watch("apart", async { panic!("a bug") });
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.unwrap().block_on(watched);
        });
        assert!(outcome(&supervisor).await.contains("\"apart\" panicked"));
    }

    #[tokio::test]
    async fn what_is_stopped_has_not_failed() {
        let supervisor = Supervisor::default();
        drop(supervisor.spawn("dropped", pending()));
        supervisor.let_end();
        let mut ended = supervisor.spawn("ended", async {});
        ended.join_next().await;
        let mut panicked = supervisor.spawn("panicked", async { panic!("a bug") });
        panicked.join_next().await;
        assert!(supervisor.failed().now_or_never().is_none());
        let done = supervisor.guard(async { Ok(7) }).await;
        assert_eq!(done.unwrap(), 7);
    }
}
