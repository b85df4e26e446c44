//! Standing by in the autoscaler container: no work, until the pod ends.

use std::io;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use super::command::{self, Autoscaler};

/// Runs as the shell of our image with `arguments` (without the program's own name): exit code 0
/// after SIGTERM or SIGINT, 2 if asked for anything but Ray's autoscaler.
pub fn run(arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let arguments: Vec<String> = arguments
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    match command::parse(&arguments).map(|asked| stand_by(&asked)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => fail(&format!("cannot wait for signals: {error}")),
        Err(error) => fail(&error.to_string()),
    }
}

/// Never ends by itself: with `restartPolicy: Never` a container that ended would stay ended.
fn stand_by(asked: &Autoscaler) -> io::Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?
        .block_on(async {
            let (mut term, mut interrupt) = (
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
            );
            say(&format!(
                "rayfit {}: standing by for RayCluster {}/{}: this container does no scaling, \
                 it keeps the place of Ray's autoscaler until the pod ends",
                env!("CARGO_PKG_VERSION"),
                asked.namespace,
                asked.cluster
            ));
            tokio::select! {
                _ = term.recv() => {}
                _ = interrupt.recv() => {}
            }
            say("rayfit: asked to stop, done");
            Ok(())
        })
}

fn fail(message: &str) -> ExitCode {
    say(&format!("rayfit: error: {message}"));
    ExitCode::from(2)
}

fn say(line: &str) {
    use io::Write as _;
    // Nothing is left to do where standard error is gone.
    let _ = writeln!(io::stderr(), "{line}");
}
