//! Counts brackets, so that JSON which runs over several lines is read to its end.

/// How deep in brackets the JSON read so far is. Knows strings, not whether the JSON is valid.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Nesting {
    depth: usize,
}

impl Nesting {
    /// `true` while a bracket is open.
    pub(super) fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// Reads one more line. `false` if this cannot be JSON: a string with a line end in it, or a
    /// bracket too many.
    pub(super) fn scan(&mut self, line: &[u8]) -> bool {
        let (mut in_string, mut escaped) = (false, false);
        for byte in line {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => self.depth += 1,
                b'}' | b']' if !in_string => match self.depth.checked_sub(1) {
                    Some(depth) => self.depth = depth,
                    None => return false,
                },
                _ => {}
            }
        }
        !in_string
    }
}
