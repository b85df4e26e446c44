//! The `rayfit` binary.

use std::process::ExitCode;

use rayfit::{cli, sidecar};

/// Reading an object into a tree, and dropping it, is mostly small allocations: a third of the time
/// of a review with the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if arguments
        .next()
        .is_some_and(|name| sidecar::is_shell(&name))
    {
        return sidecar::run(arguments);
    }
    cli::main()
}
