//! The limits on the content of an answer.

use std::fmt;

/// The memory that an answer may take, by a generous estimate. 10,000 nodes with ten resources and
/// six labels each take 60 MiB.
pub(super) const MEMORY: usize = 96 << 20;

/// The same of an answer with tasks, of which a GCS keeps a hundred thousand. Only a person's command
/// asks for these.
pub(super) const RECORDED_MEMORY: usize = 768 << 20;

/// The longest name, label or text.
pub(super) const TEXT: usize = 4_096;

/// The most resources or labels of one node or request. (A placement group adds about six to each
/// node that it is on.)
pub(super) const ENTRIES: usize = 10_000;

/// The reason not to decode an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// More of something than any Ray cluster has.
    Many(Counted),
    /// A text that is too long, or more entries of one node or request than any has.
    Long,
    /// More memory than an answer may take.
    Memory,
    /// The answer is not a message of the requested kind.
    Malformed,
}

/// The kinds of things that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Ray nodes.
    Nodes,
    /// Kinds of tasks and actors.
    Requests,
    /// Placement groups.
    Gangs,
    /// Bundles, selectors and other parts of requests.
    Parts,
    /// Attempts of tasks, or actors.
    Tasks,
}

impl Counted {
    /// Everything that is counted.
    pub(super) const ALL: [Self; 5] = [
        Self::Nodes,
        Self::Requests,
        Self::Gangs,
        Self::Parts,
        Self::Tasks,
    ];

    /// The most of it that an answer may have.
    pub(super) fn most(self) -> usize {
        match self {
            Self::Nodes => 20_000,
            Self::Requests | Self::Gangs => 50_000,
            Self::Parts => 400_000,
            Self::Tasks => 200_000,
        }
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Many(counted) => {
                let what = match counted {
                    Counted::Nodes => "nodes",
                    Counted::Requests => "different requests",
                    Counted::Gangs => "placement groups",
                    Counted::Parts => "bundles and selectors",
                    Counted::Tasks => "tasks or actors",
                };
                write!(f, "it has more than {} {what}", counted.most())
            }
            Self::Long => write!(
                f,
                "a text in it is longer than {TEXT} bytes, or a node or request has more than \
                 {ENTRIES} resources or labels"
            ),
            Self::Memory => write!(f, "it would take more memory than an answer may"),
            Self::Malformed => write!(f, "it is not a message in Ray's format"),
        }
    }
}

impl std::error::Error for Excess {}
