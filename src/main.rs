//! The `rayfit` binary.

use std::process::ExitCode;

/// Reading an object into a tree, and dropping it, is mostly small allocations: a third of the time
/// of a review with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    rayfit::cli::main()
}
