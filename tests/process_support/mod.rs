//! The real process of `rayfit serve`, on ports of its choosing.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each test binary includes it and uses a part of it"
)]

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::client_support::get;
use super::tls_support::{mount, self_signed};

/// A process of `rayfit serve` on ports of its choosing; killed when dropped.
pub struct Process {
    pub child: Child,
    pub log: Log,
    pub webhooks: SocketAddr,
    pub health: SocketAddr,
    pub volume: TempDir,
}

impl Process {
    pub async fn start(flags: &[&str]) -> Self {
        raise_open_files();
        let volume = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_rayfit"))
            .args([
                "serve",
                "--bind",
                "127.0.0.1",
                "--port",
                "0",
                "--health-port",
                "0",
            ])
            .args(["--cert-interval", "0.02", "--cert-dir"])
            .arg(volume.path())
            .args(flags)
            .env_clear()
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut log = Log::of(child.stderr.take().unwrap());
        let health = address(&mut log, "health and metrics", "address").await;
        let webhooks = address(&mut log, "serving", "webhooks").await;
        Self {
            child,
            log,
            webhooks,
            health,
            volume,
        }
    }

    /// Waits until it is ready, or not.
    pub async fn until_ready(&self, ready: bool) -> String {
        soon("readiness", async {
            loop {
                let answer = get(self.health, "/readyz").await.unwrap();
                if answer.status.is_success() == ready {
                    return answer.body;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
    }

    /// Waits until it is not ready for the reason that holds `text`.
    pub async fn until_not_ready(&self, text: &str) {
        soon(text, async {
            while !self.until_ready(false).await.contains(text) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    pub async fn ready(flags: &[&str]) -> Self {
        let process = Self::start(flags).await;
        mount(process.volume.path(), 0, &self_signed("localhost"));
        process.until_ready(true).await;
        process
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// The most memory that it ever held, in bytes.
    pub fn peak_memory(&self) -> usize {
        let pid = self.child.id().unwrap();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.unwrap().trim().strip_suffix(" kB").unwrap();
        kilobytes.parse::<usize>().unwrap() << 10
    }

    pub async fn exit_code(&mut self) -> Option<i32> {
        soon("the process ends", self.child.wait())
            .await
            .unwrap()
            .code()
    }
}

/// The lines that a process logs. They are read all the while: a process whose pipe is full stands still.
pub struct Log(UnboundedReceiver<String>);

impl Log {
    pub fn of(stderr: ChildStderr) -> Self {
        let (sender, lines) = unbounded_channel();
        tokio::spawn(async move {
            let mut log = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = log.next_line().await {
                // Read on also where no test wants it any more.
                let _ = sender.send(line);
            }
        });
        Self(lines)
    }

    /// The next line, `None` once the process has ended.
    pub async fn next_line(&mut self) -> Option<String> {
        self.0.recv().await
    }
}

async fn address(log: &mut Log, line: &str, field: &str) -> SocketAddr {
    loop {
        let next = soon(line, log.next_line()).await;
        let next: Value = serde_json::from_str(&next.expect("the process ended")).unwrap();
        if next["message"] == line {
            return next[field].as_str().unwrap().parse().unwrap();
        }
    }
}

/// Tests that play many clients have many connections open.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let current = Some(limit.maximum.map_or(8192, |most| most.min(8192)));
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
}

/// When a test gives up: what it waits for never comes, however slow the machine is.
pub const PATIENCE: Duration = Duration::from_mins(10);

/// Waits for what must come; the bound is for a broken server, not a measure.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let result = tokio::time::timeout(PATIENCE, future).await;
    result.unwrap_or_else(|_| panic!("still waiting: {what}"))
}
