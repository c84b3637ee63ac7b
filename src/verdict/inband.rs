use super::*;
pub fn classify(_json: &[u8]) -> Failure {
    Failure::new(Class::Unclassified, Origin::Provider, Stage::Stream, "")
}
pub fn bad_finish(_n: &str) -> Failure {
    Failure::new(Class::ProviderInternal, Origin::Provider, Stage::Stream, "")
}
