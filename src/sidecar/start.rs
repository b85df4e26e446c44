//! The process: from how it was started to its end.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::command::{self, Autoscaler};
use super::work::{SidecarOptions, work};
use crate::telemetry::logs::{self, LogFormat};

/// Where Ray keeps what belongs to the session of the head.
const SESSION: &str = "/tmp/ray/session_latest";

/// Runs as the shell of our image with `arguments` (without the program's own name): exit code 0
/// after SIGTERM or SIGINT, 2 if asked for anything but Ray's autoscaler.
pub fn run(arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let arguments: Vec<String> = arguments
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    match command::parse(&arguments) {
        Ok(asked) => match start(options(asked, None), LogFormat::Text, "info") {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("{error:#}")),
        },
        Err(error) => fail(&error.to_string()),
    }
}

/// The usual options, with what the environment of the container says.
pub fn options(asked: Autoscaler, kubeconfig: Option<PathBuf>) -> SidecarOptions {
    #[expect(
        clippy::disallowed_methods,
        reason = "KubeRay and Kubernetes tell through it"
    )]
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    SidecarOptions {
        cluster: asked.cluster,
        namespace: asked.namespace,
        head_pod: variable("RAY_HEAD_POD_NAME").or_else(|| variable("HOSTNAME")),
        kubeconfig,
        variable,
        session: PathBuf::from(SESSION),
    }
}

/// Works until told to stop, and never ends by itself: with `restartPolicy: Never` a container
/// that ended would stay ended.
pub fn start(options: SidecarOptions, format: LogFormat, filter: &str) -> anyhow::Result<()> {
    logs::start(format, filter)?;
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
                "standing by for RayCluster {}/{} until its mode is sidecar",
                options.namespace,
                options.cluster
            );
            let working = tokio::spawn(work(options, stopped));
            tokio::select! {
                _ = term.recv() => {}
                _ = interrupt.recv() => {}
            }
            stop.send_replace(true);
            // It ends after what it is writing; a second signal does not wait for that.
            tokio::select! {
                _ = working => {}
                _ = term.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("asked to stop, done");
            Ok(())
        })
}

fn fail(message: &str) -> ExitCode {
    use io::Write as _;
    // Nothing is left to do where standard error is gone.
    let _ = writeln!(io::stderr(), "rayfit: error: {message}");
    ExitCode::from(2)
}
