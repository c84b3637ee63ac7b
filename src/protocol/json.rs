//! JSON, read and changed as text: every protocol but the binary ones is made of it.

pub(in crate::protocol) mod count;
pub(in crate::protocol) mod edit;
pub(in crate::protocol) mod error;
pub(in crate::protocol) mod raw;
pub(in crate::protocol) mod shape;
pub(in crate::protocol) mod text;
