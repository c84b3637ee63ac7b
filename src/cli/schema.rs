//! `redrive schema`: the JSON Schema of the configuration file.

use std::io::{self, Write};

use clap::Args;

/// Print the JSON Schema of the configuration file.
///
/// Editors that know JSON Schema check and complete a configuration with it. With the YAML language
/// server, for example, save it as redrive.schema.json and begin the file with
/// `# yaml-language-server: $schema=redrive.schema.json`. `redrive check` knows more: durations and
/// sizes out of range, names that do not exist, and secrets that cannot be read.
#[derive(Args, Clone, Debug)]
pub struct SchemaArgs {}

/// Prints the schema; returns the exit code.
///
/// # Errors
/// If `out` cannot be written to.
pub fn run(_: &SchemaArgs, out: &mut impl Write) -> io::Result<u8> {
    serde_json::to_writer_pretty(&mut *out, &crate::config::schema())?;
    writeln!(out)?;
    Ok(0)
}
