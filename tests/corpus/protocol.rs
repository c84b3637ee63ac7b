//! What the corpus test has to know of a protocol: one module of this test each.

use redrive::protocol::{Decoder, DecoderOptions};

use crate::{
    items::Item,
    recording::Recording,
    told::{Outcome, Told},
};

/// A protocol: its decoder, and an oracle that shares no code with it.
pub trait Protocol {
    /// Its name in the manifest.
    const NAME: &'static str;
    /// The fewest recordings that are believed to be all.
    const AT_LEAST: usize;
    /// What is checked.
    type Decoder: Decoder + Clone;
    /// What the oracle remembers from item to item.
    type Oracle: Default;

    /// The bodies of a recording: of some, the recorder kept several in one file.
    fn bodies(recording: Recording) -> Vec<Recording> {
        vec![recording]
    }

    /// How a recording is decoded.
    fn options(recording: &Recording) -> DecoderOptions;

    /// A decoder.
    fn decoder(options: DecoderOptions) -> Self::Decoder;

    /// The oracle reads an item: for what the recordings hold, computed in the plainest way.
    fn add(oracle: &mut Self::Oracle, item: &Item);

    /// What the items so far amount to.
    fn outcome(oracle: &Self::Oracle) -> &Outcome;

    /// The contract's word for a finish reason of the recordings.
    fn word(native: &str) -> Option<&'static str>;

    /// Compares what was told of a whole recording with what its manifest says; whether its last event
    /// is `unterminated`.
    fn against_the_manifest(recording: &Recording, whole: &[Told], unterminated: bool);
}
