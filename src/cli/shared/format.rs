//! The formats of output.

/// The format of an answer, for people or for programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum TextFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
pub(in crate::cli) enum ReportFormat {
    /// A table
    #[default]
    Text,
    /// Everything, for programs
    Json,
    /// One page, to read and to send
    Html,
}

/// The format of the catalogue of rules and defaults.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
pub(in crate::cli) enum CatalogueFormat {
    /// An aligned table
    #[default]
    Text,
    /// Everything, for programs
    Json,
    /// The documentation page, one section per rule
    Markdown,
}
