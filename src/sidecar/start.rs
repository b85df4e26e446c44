//! The sidecar's process, from its start to its end.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use rayfit_core::dns_name::DnsName;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::command;
use super::work::{SidecarOptions, work};
use crate::controller::observe::Key;
use crate::telemetry::logs::{self, LogFormat};

/// The folder in which Ray keeps the files of the head's session.
const SESSION: &str = "/tmp/ray/session_latest";

/// Runs as the shell of Rayfit's image with `arguments` (without the program's own name). The exit
/// code is 0 after SIGTERM or SIGINT, and 2 if the command is not that of Ray's autoscaler.
pub fn run(arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let arguments: Vec<String> = arguments
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let cluster = command::parse(&arguments).map_err(anyhow::Error::from);
    match cluster.and_then(|cluster| start(options(cluster, None), LogFormat::Text, "info")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // An error of the write is ignored, because there is nowhere else to report it.
            let _ = writeln!(io::stderr(), "rayfit: error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The usual options, completed from the environment of the container.
pub fn options(key: Key, kubeconfig: Option<PathBuf>) -> SidecarOptions {
    #[expect(
        clippy::disallowed_methods,
        reason = "KubeRay and Kubernetes tell through it"
    )]
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    SidecarOptions {
        key,
        // In the host's network, HOSTNAME is the name of the Kubernetes node.
        head_pod: (variable("RAY_HEAD_POD_NAME").or_else(|| variable("HOSTNAME")))
            .and_then(|name| DnsName::parse(&name).ok()),
        kubeconfig,
        variable,
        session: PathBuf::from(SESSION),
    }
}

/// Runs until SIGTERM or SIGINT, and never ends by itself.
pub fn start(options: SidecarOptions, format: LogFormat, filter: &str) -> anyhow::Result<()> {
    logs::start(format, filter)?;
    // The container has 50m of CPU and 64Mi of memory (DF06), so that more threads would only cost.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(2)
        .build()?
        .block_on(async {
            let (mut term, mut interrupt) = (
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
            );
            let (stop, stopped) = watch::channel(false);
            tracing::info!(
                version = env!("CARGO_PKG_VERSION"),
                "waiting until the mode of RayCluster {} is sidecar",
                options.key
            );
            // If the task ends, the process goes on: with `restartPolicy: Never` a container that
            // has ended would not be started again.
            let working = tokio::spawn(work(options, stopped));
            tokio::select! {
                _ = term.recv() => {}
                _ = interrupt.recv() => {}
            }
            stop.send_replace(true);
            // The task ends after the write that is under way; a second signal does not wait for
            // it.
            tokio::select! {
                _ = working => {}
                _ = term.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("asked to stop, done");
            Ok(())
        })
}
