//! What a request says of tools.

/// What a request says of tools, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// The names of the tools that are offered. `None` where that is not known, as for a body in the
    /// provider's own format: then every name is taken for one, and tools count as offered.
    pub names: Option<Vec<String>>,
    /// Whether a call is demanded.
    pub choice: Choice,
}

/// Whether a request demands a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// It does not.
    #[default]
    Free,
    /// Of any tool.
    Required,
    /// Of this one.
    Named(String),
}
