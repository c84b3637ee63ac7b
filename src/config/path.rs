//! Where a value stands in the configuration: `routes.default.targets[1].provider`.

use std::fmt;

use super::hint;

/// One step from a value to one inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Into a map.
    Key(String),
    /// Into a list, counted from 0.
    Index(usize),
}

/// The steps from the root of the file to a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Path(Vec<Step>);

impl Path {
    /// The path of an entry of the map at this path.
    pub(super) fn key(&self, key: &str) -> Path {
        self.then(Step::Key(key.to_owned()))
    }

    /// The path of an element of the list at this path.
    pub(super) fn index(&self, index: usize) -> Path {
        self.then(Step::Index(index))
    }

    fn then(&self, step: Step) -> Path {
        let mut steps = self.0.clone();
        steps.push(step);
        Path(steps)
    }

    /// The path of what this value stands in; the root's own is the root.
    pub(super) fn parent(&self) -> Path {
        let mut steps = self.0.clone();
        steps.pop();
        Path(steps)
    }

    /// Whether this value is `other` or stands inside it.
    pub(super) fn is_within(&self, other: &Path) -> bool {
        self.0.starts_with(&other.0)
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.0
    }
}

impl From<Vec<Step>> for Path {
    fn from(steps: Vec<Step>) -> Path {
        Path(steps)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => {
                    if at > 0 {
                        f.write_str(".")?;
                    }
                    if is_plain(key) {
                        f.write_str(key)?;
                    } else {
                        f.write_str(&hint::shown(key))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether `key` needs no quotes to be told from the path around it.
fn is_plain(key: &str) -> bool {
    (1..=64).contains(&key.len())
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_like_the_file() {
        let path = Path::default()
            .key("routes")
            .key("my.route")
            .key("targets")
            .index(1)
            .key("model");
        assert_eq!(path.to_string(), r#"routes."my.route".targets[1].model"#);
    }
}
