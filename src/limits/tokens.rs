//! What an attempt takes of a budget of tokens, at most, before anybody knows what it really took.

/// An upper bound of the prompt's tokens, from the request's body as it is sent.
pub fn input(_model: &str, body: &[u8], bytes_per_token: u32) -> u64 {
    (body.len() as u64).div_ceil(u64::from(bytes_per_token.max(1)))
}

/// The largest bound of the output that the request states, in tokens; `None` if it states none.
pub fn output(_body: &[u8]) -> Option<u64> {
    None
}
