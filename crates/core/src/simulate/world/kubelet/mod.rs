//! The kubelets, and the kernels of their machines.
//!
//! They take pods that are bound, deleted or to be resized, and the memory that jobs use. They make the
//! pods run, end and change their sizes, and end processes for which there is no memory. Invariant: a pod
//! gets no less memory than is in use in it.

mod memory;
mod pods;
