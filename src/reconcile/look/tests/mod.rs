//! Each step, and each way in which a look ends early.

mod ends;
mod rounds;
mod support;
