//! Strategy `Ray` against recorded answers of Ray's own code (`tests/parity/`).

mod decisions;
mod idle_end;
mod rounds;
