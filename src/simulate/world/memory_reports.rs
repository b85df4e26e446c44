//! Progress of the reports of the memory in use.

/// The progress of the dashboard agents' reports.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MemoryReports {
    /// Whether the next report is among the events to come.
    pub(in crate::simulate::world) is_due: bool,
    /// Whether a node was nearly full by the last report.
    pub(in crate::simulate::world) is_nearly_full: bool,
}
