//! The configuration file: strict parsing, checking and resolving.
//!
//! A file goes through three forms. The `tree` is what YAML says, with positions. The `raw` form is what
//! our format says: every key, its kind of value, its bounds and its default. The `model` is what the
//! sidecar runs on: every name looked up, every secret read. Each step collects everything that is wrong
//! instead of ending at the first error, and each error names file, line, column and key path.
//!
//! Files and environment variables are read through [`Environment`] only.

mod environment;
mod error;
mod hint;
mod model;
mod path;
mod pattern;
mod raw;
mod reader;
mod resolve;
mod tree;
mod value;
mod warnings;

use std::path::Path;

pub use self::{
    environment::{Environment, Process},
    error::{ConfigError, ConfigErrors},
    model::*,
};
use self::{
    error::Collector,
    resolve::{Resolver, Secrets},
    tree::{MAX_FILE_BYTES, Node, Position},
};
pub(crate) use self::{pattern::matches, value::in_words};

impl Config {
    /// Reads and resolves the file at `path`.
    ///
    /// # Errors
    /// Everything that is wrong with it, or why it could not be read.
    pub fn load(path: &Path, environment: &impl Environment) -> Result<Config, ConfigErrors> {
        let text = read(path, environment)?;
        Config::parse(&text, path, environment)
    }

    /// Like [`Config::load`], but reads no secret and no certificate: each credential is a placeholder.
    /// For checking a file elsewhere than where it is used.
    ///
    /// # Errors
    /// Everything else that is wrong with it, or why it could not be read.
    pub fn load_without_secrets(
        path: &Path,
        environment: &impl Environment,
    ) -> Result<Config, ConfigErrors> {
        let text = read(path, environment)?;
        parse(&text, path, Secrets::Unread)
    }

    /// Resolves `text` as the content of the file `path`, which is not read: it is named in errors, and
    /// what the text refers to is relative to its folder.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(
        text: &str,
        path: &Path,
        environment: &impl Environment,
    ) -> Result<Config, ConfigErrors> {
        parse(text, path, Secrets::Read(environment))
    }
}

/// The JSON Schema of the file.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(raw::File).to_value()
}

fn read(path: &Path, environment: &impl Environment) -> Result<String, ConfigErrors> {
    let file = path.display().to_string();
    let bytes = environment
        .file(path, MAX_FILE_BYTES)
        .map_err(|error| ConfigErrors::whole(&file, None, format!("cannot be read: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let end = error.utf8_error().valid_up_to();
        let at = Position::after(error.as_bytes().get(..end).unwrap_or_default());
        ConfigErrors::whole(&file, Some(at), "not UTF-8 text")
    })
}

fn parse(text: &str, path: &Path, secrets: Secrets<'_>) -> Result<Config, ConfigErrors> {
    let file = path.display().to_string();
    let mut errors = Collector::default();
    let mut tree = Node::parse(text, &file)?;
    tree.refuse_duplicates(&path::Path::default(), &mut errors);
    let config = reader::read(&mut tree, &mut errors).and_then(|raw: raw::File| {
        let base = path.parent().unwrap_or(Path::new(""));
        Resolver::new(&tree, &mut errors, secrets, base).resolve(raw)
    });
    match config {
        Some(config) if errors.is_empty() => Ok(config),
        _ => Err(errors.into_errors(&file)),
    }
}
