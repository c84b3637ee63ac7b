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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_file_up_to_its_limit_and_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(Process.file(&path, 5).unwrap(), b"12345");
        let error = Process.file(&path, 4).unwrap_err();
        assert_eq!(error.to_string(), "larger than 4 bytes");
    }

    #[test]
    fn tells_a_variable_that_is_not_set() {
        let name = "REDRIVE_TEST_OF_A_VARIABLE_THAT_IS_NOT_SET";
        assert_eq!(Process.variable(name), Err(env::VarError::NotPresent));
    }
}
