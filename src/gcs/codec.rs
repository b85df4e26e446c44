//! Encoding and decoding messages. Answers are checked before they are decoded.

use std::marker::PhantomData;

use prost::Message;
use prost::bytes::Buf as _;
use tokio::runtime::{Handle, RuntimeFlavor};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstCodec, ProstEncoder};

use super::wire::bounds::{self, GcsAnswer};

/// The size, in bytes, from which on decoding takes so long that other tasks must not wait for it.
const LARGE: usize = 256 << 10;

/// Protobuf messages, the answers within bounds.
pub(super) struct Bounded<Q, A>(pub(super) PhantomData<(Q, A)>);

impl<Q, A> Codec for Bounded<Q, A>
where
    Q: Message + Send + 'static,
    A: Message + GcsAnswer + Default + Send + 'static,
{
    type Encode = Q;
    type Decode = A;
    type Encoder = ProstEncoder<Q>;
    type Decoder = Self;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<Q, A>::raw_encoder(BufferSettings::default())
    }

    fn decoder(&mut self) -> Self::Decoder {
        Self(PhantomData)
    }
}

impl<Q, A: Message + GcsAnswer + Default> Decoder for Bounded<Q, A> {
    type Item = A;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<A>, Status> {
        aside(bytes.remaining() > LARGE, || {
            let answer = bytes.copy_to_bytes(bytes.remaining());
            bounds::check::<A>(&answer).map_err(|excess| Status::from_error(Box::new(excess)))?;
            let decoded = A::decode(answer);
            decoded
                .map(Some)
                .map_err(|error| Status::internal(error.to_string()))
        })
    }
}

/// Runs work that may take long so that other tasks continue.
pub(crate) fn aside<T>(may_take_long: bool, work: impl FnOnce() -> T) -> T {
    // block_in_place panics on a runtime of a single thread, on which some commands and tests run.
    let runtime = Handle::try_current().ok().filter(|_| may_take_long);
    if runtime.is_some_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread) {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}
