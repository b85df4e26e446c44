//! Room for what waits: idle nodes go before their idle timeout where demand that waits could run in their room
//! ([`make_room`], for pods that are [`unplaced`]).

pub(crate) mod make_room;
mod unplaced;
