//! What is wrong with a configuration: everything that was found, in order of position.

use std::fmt;

use super::{
    path::Path,
    tree::{Node, Position},
};

/// Errors told about one file at most; further ones are not looked for. Fixed.
pub(super) const MAX_ERRORS: usize = 100;

/// Everything that is wrong with one configuration file.
///
/// Displays one error a line, `FILE:LINE:COLUMN: key.path: message`, each followed by its hints. Never
/// holds the value of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    file: String,
    errors: Vec<ConfigError>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Line and column, from 1; `None` if the file could not be read at all.
    pub position: Option<(usize, usize)>,
    /// The key path; empty for the file as a whole.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What may help.
    pub hints: Vec<String>,
}

impl ConfigErrors {
    /// An error that concerns the file as a whole.
    pub(super) fn whole(
        file: &str,
        position: Option<Position>,
        message: impl Into<String>,
    ) -> ConfigErrors {
        ConfigErrors {
            file: file.to_owned(),
            errors: vec![ConfigError {
                position: position.map(|at| (at.line, at.column)),
                key: String::new(),
                message: message.into(),
                hints: Vec::new(),
            }],
        }
    }

    /// The file, as it was named.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The errors, in order of position; at least one.
    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.errors.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            f.write_str(&self.file)?;
            if let Some((line, column)) = error.position {
                write!(f, ":{line}:{column}")?;
            }
            f.write_str(": ")?;
            if !error.key.is_empty() {
                write!(f, "{}: ", error.key)?;
            }
            f.write_str(&error.message)?;
            for hint in &error.hints {
                write!(f, "\n  hint: {hint}")?;
            }
        }
        Ok(())
    }
}

/// Collects errors while the rest of the file is still looked at.
#[derive(Debug, Default)]
pub(super) struct Collector {
    found: Vec<(Path, ConfigError)>,
}

impl Collector {
    /// Something is wrong at `position`.
    pub(super) fn push(
        &mut self,
        position: Position,
        path: &Path,
        message: impl Into<String>,
        hints: Vec<String>,
    ) {
        if self.found.len() < MAX_ERRORS {
            self.found.push((
                path.clone(),
                ConfigError {
                    position: Some((position.line, position.column)),
                    key: path.to_string(),
                    message: message.into(),
                    hints,
                },
            ));
        }
    }

    /// The value at `path` is wrong.
    pub(super) fn refuse(&mut self, tree: &Node, path: &Path, message: impl Into<String>) {
        self.refuse_with(tree, path, message, Vec::new());
    }

    /// The value at `path` is wrong, and something may help. Not told of a value that was refused
    /// already: what stands in its place now is a placeholder.
    pub(super) fn refuse_with(
        &mut self,
        tree: &Node,
        path: &Path,
        message: impl Into<String>,
        hints: Vec<String>,
    ) {
        if !tree.is_refused(path) {
            self.push(tree.locate(path), path, message, hints);
        }
    }

    /// Nothing stands at `path` although something must; told only if nothing is wrong in its place or
    /// beside it, because what is missing may be what was misspelt.
    pub(super) fn missing(&mut self, tree: &Node, path: &Path, message: impl Into<String>) {
        let parent = path.parent();
        let explained =
            |(at, _): &(Path, _)| at.is_within(path) || at.parent() == parent && *at != parent;
        if !self.found.iter().any(explained) {
            self.refuse(tree, path, message);
        }
    }

    /// Whether anything is wrong with the value at `path` or inside it.
    pub(super) fn any_within(&self, path: &Path) -> bool {
        self.found.iter().any(|(at, _)| at.is_within(path))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MAX_ERRORS
    }

    /// All of them, in order of position.
    pub(super) fn into_errors(self, file: &str) -> ConfigErrors {
        let mut errors: Vec<ConfigError> = self.found.into_iter().map(|(_, error)| error).collect();
        errors.sort_by_key(|error| error.position);
        ConfigErrors {
            file: file.to_owned(),
            errors,
        }
    }
}
