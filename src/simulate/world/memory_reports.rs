//! How far the reports of the memory in use are.

/// How far the reports of the dashboard agents have come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MemoryReports {
    /// Whether the next report is among the events to come.
    pub(in crate::simulate::world) is_due: bool,
    /// Whether a node was nearly full by the last report.
    pub(in crate::simulate::world) is_nearly_full: bool,
}
