//! What a prompt is made of, in one pass over the JSON of its body.

use std::fmt;

use bpe_openai::Tokenizer;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{Key, MAX_TOKENIZED, media::Media};

/// The marks around a name, where a provider shows JSON to its model with spaces between: `, "` and `": "`.
const MARKS_OF_A_NAME: u64 = 3;

/// The marks around a value.
const MARKS_OF_A_VALUE: u64 = 1;

/// A number with a fraction: 17 digits in threes, a point, an exponent.
const FRACTION: u64 = 10;

/// What a body holds.
#[derive(Debug, Default)]
pub(super) struct Prompt {
    /// Tokens of all text that a tokenizer counted, names and marks included.
    pub(super) tokens: u64,
    /// Bytes of text that it did not, since there was too much.
    pub(super) untokenized: usize,
    pub(super) media: Media,
    pub(super) tools: u64,
    /// Tools that the provider defines.
    pub(super) built_in_tools: u64,
    /// Bytes of text that it did.
    tokenized: usize,
}

impl Prompt {
    /// `None` if the body is not JSON, or nested too deep (128 levels). Without a tokenizer no text is
    /// counted.
    pub(super) fn read(body: &[u8], tokenizer: Option<&Tokenizer>) -> Option<Self> {
        let mut prompt = Self::default();
        let mut json = serde_json::Deserializer::from_slice(body);
        let body = Node {
            prompt: &mut prompt,
            tokenizer,
            place: Place::default(),
        };
        body.deserialize(&mut json).ok()?;
        json.end().ok()?;
        Some(prompt)
    }
}

/// The names that matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Name {
    /// None: the body itself.
    #[default]
    Body,
    /// Holds a source of media as `data`, `bytes` or `url`.
    Source,
    /// Data of a source.
    Data,
    /// Where a source is found.
    Url,
    /// A source or its address.
    ImageUrl,
    /// Data, wherever it stands.
    FileData,
    /// Data or a list of it.
    Images,
    /// Something that the provider has or fetches.
    Reference,
    /// What the application made up: a call's arguments, a schema.
    Foreign,
    /// A call's arguments; in the body itself the messages.
    Input,
    Tools,
    Type,
    Other,
}

impl Name {
    fn of(key: &str) -> Self {
        match key {
            "source" | "inline_data" | "inlineData" | "input_audio" => Self::Source,
            "data" | "bytes" => Self::Data,
            "url" => Self::Url,
            "image_url" => Self::ImageUrl,
            "file_data" => Self::FileData,
            "images" => Self::Images,
            "file_id" | "file_url" | "file_uri" | "fileUri" => Self::Reference,
            "args" | "arguments" | "parameters" | "properties" | "input_schema" | "inputSchema"
            | "schema" | "json_schema" | "response" | "json" | "metadata" => Self::Foreign,
            "input" => Self::Input,
            "tools" => Self::Tools,
            "type" => Self::Type,
            _ => Self::Other,
        }
    }
}

/// Where a value stands.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The name that the object has in which it stands.
    parent: Name,
    /// Its own; an element's is that of the list.
    name: Name,
    /// Inside what the application made up, where names mean nothing: a text there that looks like an image
    /// is still text to the model.
    foreign: bool,
}

impl Place {
    fn member(self, key: &str) -> Self {
        let name = Name::of(key);
        let foreign = name == Name::Foreign || (name == Name::Input && self.name != Name::Body);
        Self {
            parent: self.name,
            name,
            foreign: self.foreign || foreign,
        }
    }

    /// Data, or an address of it.
    fn is_media(self) -> bool {
        let named = match self.name {
            Name::ImageUrl | Name::FileData | Name::Images => true,
            Name::Data => self.parent == Name::Source,
            Name::Url => matches!(self.parent, Name::Source | Name::ImageUrl),
            _ => false,
        };
        named && !self.foreign
    }

    /// Something that is not in the body, unless it is data.
    fn is_reference(self) -> bool {
        let address = matches!(self.name, Name::ImageUrl | Name::Url) && self.is_media();
        address || (self.name == Name::Reference && !self.foreign)
    }
}

/// Reads one value.
struct Node<'a> {
    prompt: &'a mut Prompt,
    tokenizer: Option<&'a Tokenizer>,
    place: Place,
}

impl Node<'_> {
    fn within(&mut self, place: Place) -> Node<'_> {
        Node {
            prompt: self.prompt,
            tokenizer: self.tokenizer,
            place,
        }
    }

    fn add(&mut self, tokens: u64) {
        self.prompt.tokens = self.prompt.tokens.saturating_add(tokens);
    }

    fn text(&mut self, text: &str) {
        let Some(tokenizer) = self.tokenizer else {
            return;
        };
        let prompt = &mut *self.prompt;
        if text.len() <= MAX_TOKENIZED - prompt.tokenized {
            prompt.tokenized += text.len();
            let tokens = tokenizer.count(text) as u64;
            self.add(tokens);
        } else {
            prompt.untokenized = prompt.untokenized.saturating_add(text.len());
        }
    }

    fn typed(&mut self, kind: &str) {
        if self.place.foreign {
            return;
        }
        match (self.place.parent, kind) {
            (Name::Tools, "function" | "custom") => {}
            (Name::Tools, _) => self.prompt.built_in_tools += 1,
            // How a source is given, not what it is: Anthropic's `file` may be an image.
            (Name::Source, _) => {}
            (_, "document" | "file" | "input_file") => self.prompt.media.add_document(),
            _ => {}
        }
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_str<E>(mut self, text: &str) -> Result<(), E> {
        self.add(MARKS_OF_A_VALUE);
        if self.place.is_media() && self.prompt.media.add(text) {
            return Ok(());
        }
        if self.place.is_reference() {
            self.prompt.media.add_reference();
        }
        if self.place.name == Name::Type {
            self.typed(text);
        }
        self.text(text);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        self.add(MARKS_OF_A_VALUE);
        while let Some(Key(key)) = members.next_key()? {
            self.add(MARKS_OF_A_NAME);
            self.text(&key);
            let place = self.place.member(&key);
            members.next_value_seed(self.within(place))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        self.add(MARKS_OF_A_VALUE);
        let place = self.place;
        while elements.next_element_seed(self.within(place))?.is_some() {
            let tool = place.name == Name::Tools && !place.foreign;
            self.prompt.tools += u64::from(tool);
        }
        Ok(())
    }

    fn visit_u64<E>(mut self, number: u64) -> Result<(), E> {
        let digits = number.checked_ilog10().unwrap_or(0) + 1;
        self.add(MARKS_OF_A_VALUE + u64::from(digits.div_ceil(3)));
        Ok(())
    }

    fn visit_i64<E: Error>(mut self, number: i64) -> Result<(), E> {
        self.add(1);
        self.visit_u64(number.unsigned_abs())
    }

    fn visit_f64<E>(mut self, _: f64) -> Result<(), E> {
        self.add(MARKS_OF_A_VALUE + FRACTION);
        Ok(())
    }

    fn visit_bool<E>(mut self, _: bool) -> Result<(), E> {
        self.add(MARKS_OF_A_VALUE + 1);
        Ok(())
    }

    fn visit_unit<E>(mut self) -> Result<(), E> {
        self.add(MARKS_OF_A_VALUE + 1);
        Ok(())
    }
}
