//! The `rayfit` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    rayfit::cli::main()
}
