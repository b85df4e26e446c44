//! The messages that drivers print as `(autoscaler +3s) ...`. Ray's autoscaler writes them into a file in the
//! head's log folder, which Ray's log monitor reads and gives to the GCS. A sidecar does the same; from outside
//! the head's container they are given to the GCS at once.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayfit_core::reconcile::events::driver_log::Message;
use rustix::fs::{Mode, OFlags, openat};

use super::clock::Clock;
use crate::gcs;

/// The folders in that of the session that lead to the file.
const FOLDERS: &[&str] = &["logs", "events"];

/// The file that Ray's log monitor reads.
const FILE: &str = "event_AUTOSCALER.log";

/// The longest text of a message for a GCS, in bytes.
// A placement group may have any number of bundles.
const LONGEST: usize = 4 << 10;

/// The most messages that a GCS is given at once.
const MOST: usize = 50;

/// The host by which a process outside of the cluster is known there.
const OUTSIDE: &str = "rayfit";

/// The place where messages for drivers are written.
#[derive(Debug, Clone)]
pub struct DriverLog {
    place: LogPlace,
    clock: Clock,
    /// The last attempt failed: one reason is logged once.
    failing: Arc<AtomicBool>,
}

#[derive(Debug, Clone)]
enum LogPlace {
    /// The file in Ray's session, as the process on `host`.
    File { session: PathBuf, host: String },
    /// The GCS of the cluster. Whether it is being told: one that is slow misses what comes meanwhile.
    Gcs { telling: Arc<AtomicBool> },
}

impl DriverLog {
    /// Gives the messages to the GCS that is asked about the cluster.
    pub fn of_gcs(clock: Clock) -> Self {
        Self {
            place: LogPlace::Gcs {
                telling: Arc::default(),
            },
            clock,
            failing: Arc::default(),
        }
    }

    /// Writes into the folder of Ray's session, as the process on `host`.
    pub fn of_session(session: PathBuf, host: String, clock: Clock) -> Self {
        Self {
            place: LogPlace::File { session, host },
            ..Self::of_gcs(clock)
        }
    }

    /// Writes messages. `gcs` is the client of the GCS that was asked last, if any was.
    pub fn write(&self, messages: &[Message], gcs: Option<&gcs::Client>) {
        if messages.is_empty() {
            return;
        }
        match (&self.place, gcs) {
            (LogPlace::File { session, host }, _) => {
                let lines = messages.iter().map(|message| self.line(message, host));
                let lines: String = lines.map(|line| line + "\n").collect();
                // Opened each time, because session_latest is another folder once Ray has begun anew in the
                // head.
                let result = opened(session).and_then(|mut file| file.write_all(lines.as_bytes()));
                if let Some(error) = self.first(result) {
                    // Scaling goes on, and the messages are in Rayfit's own log too, so once is
                    // enough.
                    tracing::warn!(
                        %error, session = %session.display(), file = FILE,
                        "drivers do not print what is scaled, because Ray's log cannot be written; \
                         set autoscalerOptions.securityContext.runAsUser to the user of the head's \
                         container"
                    );
                }
            }
            (LogPlace::Gcs { telling }, Some(gcs)) => {
                if telling.swap(true, Ordering::Relaxed) {
                    return;
                }
                let lines = messages.iter().map(|message| self.line(message, OUTSIDE));
                let short = lines.filter(|line| line.len() <= LONGEST);
                let lines: Vec<String> = short.take(MOST).collect();
                let (log, gcs, telling) = (self.clone(), gcs.clone(), Arc::clone(telling));
                // In the background, since a GCS may take its time, and no round waits for it.
                tokio::spawn(async move {
                    let ip = gcs.endpoint.address.host.clone();
                    let result = gcs.print_in_drivers(ip, lines).await;
                    telling.store(false, Ordering::Relaxed);
                    if let Some(error) = log.first(result) {
                        tracing::info!(%error, "drivers do not print what is scaled");
                    }
                });
            }
            (LogPlace::Gcs { .. }, None) => {}
        }
    }

    /// The error of an attempt, unless the one before has failed, too.
    fn first<E>(&self, result: Result<(), E>) -> Option<E> {
        let failed_before = self.failing.swap(result.is_err(), Ordering::Relaxed);
        result.err().filter(|_| !failed_before)
    }

    fn line(&self, message: &Message, host: &str) -> String {
        #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970")]
        let seconds = self.clock.wall() as i64;
        // 36 hexadecimal digits, as Ray's events have them.
        let id = format!("{:032x}{:04x}", fastrand::u128(..), fastrand::u16(..));
        message.line(&id, host, std::process::id(), seconds)
    }
}

/// The file, which the containers of the head pod share, among them those in which users' code runs: below the
/// session's folder no link is followed, since it could lead to a file of this container, and nothing but a file is
/// opened, since a pipe that nobody reads would hold up the round.
fn opened(session: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = File::open(session)?;
    for name in FOLDERS {
        let below = openat(&folder, *name, flags | OFlags::DIRECTORY, Mode::empty())?;
        folder = File::from(below);
    }
    let write = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK;
    let file = File::from(openat(&folder, FILE, flags | write, Mode::from(0o644))?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("it is not a regular file"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_is_followed_and_no_pipe_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("session");
        let events = session.join("logs/events");
        fs::create_dir_all(&events).unwrap();
        let file = events.join(FILE);
        opened(&session).unwrap().write_all(b"line").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"line");

        let target = folder.path().join("target");
        fs::write(&target, "").unwrap();
        fs::remove_file(&file).unwrap();
        symlink(&target, &file).unwrap();
        assert!(opened(&session).is_err(), "a link");

        fs::remove_file(&file).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, Mode::from(0o600)).unwrap();
        assert!(opened(&session).is_err(), "a pipe");

        fs::remove_dir_all(&events).unwrap();
        symlink(folder.path(), &events).unwrap();
        assert!(opened(&session).is_err(), "a folder behind a link");
        assert_eq!(fs::read(&target).unwrap(), b"");
    }
}
