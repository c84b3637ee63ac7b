//! How messages stand on the wire.

use std::{fmt, marker::PhantomData};

use prost::Message;
use tonic::codec::BufferSettings;
use tonic_prost::ProstCodec;

/// What an RPC's two buffers begin with, in bytes. tonic's own 8 KiB each way are taken when the RPC
/// opens and held until it ends; a token takes about fifty bytes, and larger messages let the buffer
/// grow.
const BUFFER_BYTES: usize = 1 << 10;

/// From here on encoded messages are handed to the transport without waiting for more; tonic's value.
const YIELD_BYTES: usize = 32 << 10;

/// Protocol Buffers, in small buffers.
pub struct Codec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> fmt::Debug for Codec<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Codec")
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = <ProstCodec<T, U> as tonic::codec::Codec>::Encoder;
    type Decoder = <ProstCodec<T, U> as tonic::codec::Codec>::Decoder;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(BufferSettings::new(BUFFER_BYTES, YIELD_BYTES))
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(BufferSettings::new(BUFFER_BYTES, YIELD_BYTES))
    }
}
