//! Removal of nodes.
//!
//! - [`enforce`]: nodes above a maximum go before packing, and idle ones after it; beside that,
//!   what Ray enforces with it: nodes up to a minimum are launched
//! - [`deadline`]: the time in which nodes above a maximum may finish their work
//! - [`keep`]: the time for which small idle pods stay, by the gaps between bursts
//! - [`give_way`] and [`make_room`], with [`unplaced`]: idle nodes that go sooner because demand needs
//!   their room
//! - [`give_up`]: pods and launches that are given up, because they do not come, or because a placement
//!   group did not become whole
//! - [`idle_end`]: the whole cluster ends, because nobody uses it
//!
//! The hosts of one replica are removed together or not at all. Nodes that leave against the
//! planner's will, those that stop already and those of groups that are gone are marked where they
//! are read, in `nodes`; pods whose Ray node has stopped are deleted in `conclude`.
//!
//! In: nodes with the demand that was placed on them, and what is remembered of them. Out: the fate
//! of each node. Invariant: a node goes at once or
//! not at all, and has one cause.

pub(crate) mod deadline;
pub(crate) mod enforce;
pub(crate) mod give_up;
pub(crate) mod give_way;
pub(crate) mod idle_end;
pub(crate) mod keep;
pub(crate) mod make_room;
mod unplaced;
