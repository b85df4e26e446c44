//! The messages that drivers print as `(autoscaler +3s) ...`: lines in a file in the head's log
//! folder, which only a sidecar can reach.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::clock::Clock;
use crate::reconcile::events::driver_log::Message;

/// The file that Ray's log monitor reads, relative to the session's folder.
const FILE: &str = "logs/events/event_AUTOSCALER.log";

/// Where messages for drivers are written.
#[derive(Debug, Clone, Default)]
pub struct DriverLog {
    place: Option<LogFile>,
}

#[derive(Debug, Clone)]
struct LogFile {
    session: PathBuf,
    host: String,
    clock: Clock,
    /// Whether the last attempt failed, so that one reason is logged once.
    failing: Arc<AtomicBool>,
}

impl DriverLog {
    /// Writes the messages nowhere.
    pub fn none() -> Self {
        Self::default()
    }

    /// Writes into the folder of Ray's session, as the process on `host`.
    pub fn of_session(session: PathBuf, host: String, clock: Clock) -> Self {
        Self {
            place: Some(LogFile {
                session,
                host,
                clock,
                failing: Arc::default(),
            }),
        }
    }

    /// Writes messages.
    pub fn write(&self, messages: &[Message]) {
        let Some(place) = self.place.as_ref().filter(|_| !messages.is_empty()) else {
            return;
        };
        let result = place.append(messages);
        let failed_before = place.failing.swap(result.is_err(), Ordering::Relaxed);
        if let Err(error) = result
            && !failed_before
        {
            // Scaling goes on, and the messages are in Rayfit's own log too, so once is enough.
            tracing::warn!(
                %error, file = %place.session.join(FILE).display(),
                "drivers do not print what is scaled, because Ray's log cannot be written; set \
                 autoscalerOptions.securityContext.runAsUser to the user of the head's container"
            );
        }
    }
}

impl LogFile {
    fn append(&self, messages: &[Message]) -> std::io::Result<()> {
        // Opened each time, because session_latest is another folder once Ray has begun anew in the
        // head.
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.session.join(FILE))?;
        #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970")]
        let seconds = self.clock.wall() as i64;
        let lines: String = messages
            .iter()
            .map(|message| message.line(&id(), &self.host, std::process::id(), seconds) + "\n")
            .collect();
        file.write_all(lines.as_bytes())
    }
}

/// An identifier of 36 hexadecimal digits, as Ray's events have it.
fn id() -> String {
    format!("{:032x}{:04x}", fastrand::u128(..), fastrand::u16(..))
}
