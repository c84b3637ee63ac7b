use super::*;
pub fn classify(_e: crate::protocol::DecodeError) -> Failure {
    Failure::new(Class::Corrupt, Origin::Provider, Stage::Stream, "")
}
