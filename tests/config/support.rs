//! A scripted environment, and short ways to parse.

use std::{collections::HashMap, env::VarError, io, path::Path};

use redrive::config::{Config, ConfigErrors, Environment};

/// Files and variables from memory.
#[derive(Default)]
pub struct Scripted {
    pub files: HashMap<String, Vec<u8>>,
    pub variables: HashMap<String, String>,
}

impl Scripted {
    pub fn file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Scripted {
        self.files.insert(path.to_owned(), content.into());
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Scripted {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }
}

impl Environment for Scripted {
    fn variable(&self, name: &str) -> Result<String, VarError> {
        self.variables
            .get(name)
            .cloned()
            .ok_or(VarError::NotPresent)
    }

    fn file(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let content = self.files.get(&path.display().to_string());
        let content = content.ok_or(io::Error::from(io::ErrorKind::NotFound))?;
        assert!(content.len() <= limit, "no test file is that large");
        Ok(content.clone())
    }
}

/// The environment that the files in these tests refer to.
pub fn environment() -> Scripted {
    Scripted::default().variable("OPENAI_API_KEY", "sk-test")
}

pub fn parse(text: &str) -> Result<Config, ConfigErrors> {
    Config::parse(text, Path::new("redrive.yaml"), &environment())
}

/// The whole error text of a file that is refused.
pub fn refusal(text: &str) -> String {
    match parse(text) {
        Ok(_) => panic!("taken although it should be refused:\n{text}"),
        Err(errors) => errors.to_string(),
    }
}

/// The smallest file that is taken.
pub const MINIMAL: &str = "\
providers:
  openai: {base_url: 'https://api.openai.com/v1'}
routes:
  default: {targets: [{provider: openai, model: m}]}
";

/// The smallest file, with more at its end.
pub fn minimal_and(more: &str) -> String {
    format!("{MINIMAL}{more}")
}
