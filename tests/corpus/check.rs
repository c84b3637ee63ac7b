//! The checks of one recording.

use redrive::protocol::{
    Decoder, DecoderOptions, Terminal,
    sse::{Item as SseItem, Splitter},
};

use crate::{
    EVERY_BYTE_UP_TO,
    items::{self, Item, Kind},
    protocol::Protocol,
    recording::Recording,
    told::{Outcome, Told},
};

/// What was run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    pub recordings: usize,
    pub events: usize,
    pub splits: usize,
    pub cuts: usize,
    pub oracle: usize,
}

impl Count {
    /// The sum of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            recordings: self.recordings + other.recordings,
            events: self.events + other.events,
            splits: self.splits + other.splits,
            cuts: self.cuts + other.cuts,
            oracle: self.oracle + other.oracle,
        }
    }
}

/// A recording with its decoding, item by item.
struct Subject<'r, P: Protocol> {
    recording: &'r Recording,
    items: Vec<Item>,
    options: DecoderOptions,
    /// All that is told of the whole recording.
    whole: Vec<Told>,
    /// How much of `whole` is told once so many items are complete.
    marks: Vec<usize>,
    /// The decoder before each item, and after the last.
    decoders: Vec<P::Decoder>,
    /// Where the terminal evidence is complete, if the response is: after an unclean and a clean end.
    evidence: Option<[usize; 2]>,
}

/// Checks a recording in every way.
pub fn check<P: Protocol>(recording: &Recording) -> Count {
    let mut subject = Subject::<P>::new(recording);
    let mut count = Count {
        recordings: 1,
        events: subject.items.len(),
        ..Count::default()
    };
    count.oracle = subject.against_the_oracle();
    subject.against_the_manifest();
    subject.byte_by_byte();
    count.splits = subject.splits_of_events() + subject.splits_of_the_file();
    count.cuts = subject.cuts();
    count
}

impl<'r, P: Protocol> Subject<'r, P> {
    fn new(recording: &'r Recording) -> Self {
        let items = items::items(&recording.bytes);
        let options = P::options(recording);
        let mut whole = Vec::new();
        let mut decoder = P::decoder(options);
        feed(&mut decoder, &recording.bytes, &mut whole);
        end(&mut decoder, true, &mut whole);

        let mut subject = Self {
            recording,
            items,
            options,
            whole,
            marks: vec![0],
            decoders: vec![P::decoder(options)],
            evidence: None,
        };
        subject.decode_item_by_item();
        subject
    }

    fn decode_item_by_item(&mut self) {
        let mut told = Vec::new();
        for number in 0..self.items.len() {
            let mut decoder = self.decoders[number].clone();
            feed(&mut decoder, self.bytes_of(number), &mut told);
            if self.items[number].end > self.recording.bytes.len() {
                end(&mut decoder, true, &mut told);
            }
            self.marks.push(told.len());
            self.decoders.push(decoder);
        }
        self.same(&told, self.whole.len(), "item by item");
    }

    /// The bytes of an item: from the end of the one before to its own.
    fn bytes_of(&self, number: usize) -> &'r [u8] {
        &self.recording.bytes[self.start_of(number)..self.end_of(number)]
    }

    fn start_of(&self, number: usize) -> usize {
        number
            .checked_sub(1)
            .map_or(0, |before| self.end_of(before))
    }

    fn end_of(&self, number: usize) -> usize {
        self.items[number].end.min(self.recording.bytes.len())
    }

    /// After every item, what was told amounts to what the oracle reads.
    fn against_the_oracle(&mut self) -> usize {
        let (mut told, mut oracle) = (Outcome::default(), P::Oracle::default());
        for (number, item) in self.items.iter().enumerate() {
            self.whole[self.marks[number]..self.marks[number + 1]]
                .iter()
                .for_each(|event| told.add(event));
            P::add(&mut oracle, item);
            let expected = P::outcome(&oracle);
            assert_eq!(&told, expected, "{}: item {number}", self.recording.file);

            if self.evidence.is_none() && self.is_complete(expected) {
                self.evidence = Some([item.end, item.content_end]);
            }
        }
        let looks_complete = looks_complete(&self.whole);
        let is_complete = self.is_complete(P::outcome(&oracle));
        assert_eq!(
            looks_complete, is_complete,
            "{}: complete",
            self.recording.file
        );
        self.items.len()
    }

    /// `true` once the outcome may be taken as complete.
    fn is_complete(&self, outcome: &Outcome) -> bool {
        let done_completes = self.options.terminal == Terminal::DoneSentinel;
        outcome.error.is_none() && (outcome.finish.is_some() || (done_completes && outcome.done))
    }

    fn against_the_manifest(&self) {
        let file = &self.recording.file;
        let mut splitter = Splitter::default();
        let mut input = self.recording.bytes.as_slice();
        let mut events = 0;
        while let Some(item) = splitter.next(&mut input) {
            events += usize::from(matches!(item, Ok(SseItem::Event { .. })));
        }
        // Of an unterminated `[DONE]` the manifest has its own opinion, told by `done_sentinel`.
        let unterminated = self.items.last().is_some_and(|item| item.end == usize::MAX);
        let counted = usize::from(unterminated && self.recording.done_sentinel == Some(true));
        assert_eq!(events + counted, self.recording.events, "{file}: events");

        for told in &self.whole {
            if let Told::Finish(reason, native) = told {
                let word = P::word(native);
                assert_eq!(Some(reason.as_str()), word, "{file}: {native}");
            }
        }
        P::against_the_manifest(self.recording, &self.whole, unterminated);
    }

    fn byte_by_byte(&self) {
        let mut told = Vec::new();
        let mut decoder = P::decoder(self.options);
        for byte in self.recording.bytes.chunks(1) {
            feed(&mut decoder, byte, &mut told);
        }
        end(&mut decoder, true, &mut told);
        self.same(&told, self.whole.len(), "byte by byte");
    }

    fn splits_of_events(&self) -> usize {
        let mut splits = 0;
        let mut told = Vec::new();
        for number in 0..self.items.len() {
            let bytes = self.bytes_of(number);
            let expected = &self.whole[self.marks[number]..self.marks[number + 1]];
            for at in 1..bytes.len() {
                let (head, tail) = bytes.split_at(at);
                told.clear();
                let mut decoder = self.decoders[number].clone();
                feed(&mut decoder, head, &mut told);
                feed(&mut decoder, tail, &mut told);
                if self.items[number].end > self.recording.bytes.len() {
                    end(&mut decoder, true, &mut told);
                }
                assert!(
                    told == expected,
                    "{}: item {number} split at {at}: {told:#?} instead of {expected:#?}",
                    self.recording.file
                );
                splits += 1;
            }
        }
        splits
    }

    fn splits_of_the_file(&self) -> usize {
        let bytes = &self.recording.bytes;
        if bytes.len() > EVERY_BYTE_UP_TO {
            return 0;
        }
        let mut told = Vec::new();
        for at in 1..bytes.len() {
            let (head, tail) = bytes.split_at(at);
            told.clear();
            let mut decoder = P::decoder(self.options);
            feed(&mut decoder, head, &mut told);
            feed(&mut decoder, tail, &mut told);
            end(&mut decoder, true, &mut told);
            self.same(&told, self.whole.len(), "split");
        }
        bytes.len().saturating_sub(1)
    }

    /// Cuts the recording after so many bytes, with an unclean and with a clean end.
    fn cuts(&self) -> usize {
        let length = self.recording.bytes.len();
        let mut places: Vec<usize> = if length <= EVERY_BYTE_UP_TO {
            (0..length).collect()
        } else {
            let around = |place: usize| place.saturating_sub(2)..=place + 2;
            (0..self.items.len())
                .flat_map(|number| {
                    around(self.end_of(number)).chain(around(self.items[number].content_end))
                })
                .filter(|place| *place < length)
                .collect()
        };
        places.sort_unstable();
        places.dedup();
        for place in &places {
            self.cut(*place);
        }
        2 * places.len()
    }

    fn cut(&self, place: usize) {
        let complete = self.items.partition_point(|item| item.end <= place);
        let decoder = &self.decoders[complete];
        let rest = &self.recording.bytes[self.start_of(complete)..place];
        for clean in [false, true] {
            let mut told = Vec::new();
            let mut decoder = decoder.clone();
            feed(&mut decoder, rest, &mut told);
            end(&mut decoder, clean, &mut told);

            let last = self
                .items
                .get(complete)
                .is_some_and(|item| clean && shows(item, place));
            let expected = self.marks[complete]..self.marks[complete + usize::from(last)];
            assert_eq!(
                told, self.whole[expected],
                "{}: cut at {place}, clean: {clean}",
                self.recording.file
            );
            let before = &self.whole[..self.marks[complete]];
            if looks_complete(before.iter().chain(&told)) {
                let evidence = self.evidence.map(|evidence| evidence[usize::from(clean)]);
                assert!(
                    evidence.is_some_and(|evidence| place >= evidence),
                    "{}: looks complete at {place}, before its evidence",
                    self.recording.file
                );
            }
        }
    }

    fn same(&self, told: &[Told], length: usize, how: &str) {
        assert!(
            told == &self.whole[..length],
            "{}: {how}: {told:#?} instead of {:#?}",
            self.recording.file,
            self.whole
        );
    }
}

/// `true` if a clean end after so many bytes lets an unterminated item count.
fn shows(item: &Item, place: usize) -> bool {
    match item.kind {
        Kind::Comment => place > item.start,
        _ => place >= item.content_end,
    }
}

fn looks_complete<'t>(told: impl IntoIterator<Item = &'t Told>) -> bool {
    let (mut complete, mut failed) = (false, false);
    for told in told {
        complete |= matches!(told, Told::Finish(..) | Told::End(true));
        failed |= matches!(
            told,
            Told::Error(_) | Told::BadFinish(_) | Told::Undecodable(_)
        );
    }
    complete && !failed
}

fn feed(decoder: &mut impl Decoder, bytes: &[u8], told: &mut Vec<Told>) {
    decoder.feed(bytes, &mut |event| told.push(event.into()));
}

fn end(decoder: &mut impl Decoder, clean: bool, told: &mut Vec<Told>) {
    decoder.end(clean, &mut |event| told.push(event.into()));
}
