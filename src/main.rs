//! The `rayfit` binary.

fn main() {}
