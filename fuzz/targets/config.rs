//! Any text as a configuration: a sound one or readable errors, within bounds.

use std::{env::VarError, io, path::Path};

use redrive::config::{Config, Environment};

/// The most errors that are told of one file.
const MAX_ERRORS: usize = 100;

const SECRET: &str = "never-to-be-shown";

/// Every secret is there.
struct Secrets;

impl Environment for Secrets {
    fn variable(&self, _: &str) -> Result<String, VarError> {
        Ok(SECRET.to_owned())
    }

    fn file(&self, _: &Path, _: usize) -> io::Result<Vec<u8>> {
        Ok(SECRET.into())
    }
}

/// The text of the file.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Config::parse(text, Path::new("fuzz.yaml"), &Secrets) {
        Ok(config) => {
            assert!(!config.routes.is_empty(), "no route");
            let mut routes = config.routes.values();
            assert!(routes.all(|route| !route.targets.is_empty()), "no target");
            assert!(!format!("{config:?}").contains(SECRET), "a secret shows");
        }
        Err(errors) => {
            let told = errors.to_string();
            let count = told.lines().filter(|line| line.starts_with("fuzz.yaml"));
            let count = count.count();
            assert!((1..=MAX_ERRORS + 1).contains(&count), "{count} errors");
        }
    }
}
