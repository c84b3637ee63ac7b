//! What a configuration refers to outside of itself: files and environment variables.

use std::{
    env, fs,
    io::{self, Read as _},
    path::Path,
};

/// Where files and environment variables are read from: [`Process`], or something scripted in tests.
pub trait Environment {
    /// The value of an environment variable.
    ///
    /// # Errors
    /// If it is not set, or not Unicode.
    fn variable(&self, name: &str) -> Result<String, env::VarError>;

    /// The content of a file.
    ///
    /// # Errors
    /// If it cannot be read, or is longer than `limit` bytes.
    fn file(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>>;
}

/// The environment of this process.
#[derive(Clone, Copy, Debug)]
pub struct Process;

impl Environment for Process {
    fn variable(&self, name: &str) -> Result<String, env::VarError> {
        env::var(name)
    }

    fn file(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        let one_more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        fs::File::open(path)?
            .take(one_more)
            .read_to_end(&mut content)?;
        if content.len() > limit {
            let message = format!("larger than {limit} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(content)
    }
}
