//! Which regular expressions of a schema are run, and what they cost.
//!
//! The engine of `pattern` goes back and tries again. It remembers the places where it has failed, so that a match
//! takes time in proportion to expression and text, but not everywhere: not with backreferences, not inside a
//! counted repetition and not inside a third loop. What it looks ahead for it reads again from each place where it
//! looks. An expression that leans on one of these is not run; with it the whole schema is not looked at.

use std::{iter::Peekable, str::Chars};

/// The longest expression that is run, in bytes. Those of tools are a tenth of it.
const MAX_BYTES: usize = 512;

/// Groups in one expression. With 32, and two are added, the engine starts a thread to read it.
const MAX_GROUPS: u32 = 30;

/// The largest count of a repetition.
const MAX_COUNT: u32 = 1_000;

/// Loops inside of each other of which the engine remembers failures.
const MAX_LOOPS: u32 = 2;

/// The last code point.
const LAST_CHARACTER: u32 = 0x10_FFFF;

/// The size of one expression, and that times its ways, at most.
const MAX_SIZE: u32 = 2_048;
const MAX_COST: u32 = 32_768;

/// Steps for each character before the engine begins to remember where it failed.
const BEFORE_MEMORY: u64 = 16;

/// Characters that the engine reads in one step of a repetition of one.
const AT_ONCE: u32 = 8;

/// An expression that is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Steps for one character of a text.
    cost: u32,
    /// It may read a text from every place of it.
    everywhere: bool,
    /// Its `\w`, `\d` or `\b` know ASCII only, where those of other engines know all of Unicode.
    is_ascii: bool,
}

/// A piece of an expression.
#[derive(Clone, Copy)]
struct Part {
    /// Its atoms, those of counted repetitions as often as they are counted.
    size: u32,
    /// In how many ways it can be gone through; `u32::MAX` where nothing bounds it.
    choices: u32,
    /// In how many of them the engine may go without remembering it.
    ways: u32,
    /// The loops inside of each other.
    loops: u32,
    /// How many repetitions in it may be long.
    long: u32,
    /// It may match nothing. Of what may be there once the engine then counts how often it is.
    nullable: bool,
}

struct Reader<'p> {
    rest: Peekable<Chars<'p>>,
    groups: u32,
    /// So far it matches at the start of a text or not at all.
    anchored: bool,
    is_ascii: bool,
}

/// How often a part is repeated.
struct Count {
    least: u32,
    /// `None`: without end.
    most: Option<u32>,
}

impl Pattern {
    /// Reads an expression as ECMA-262 has it; `None` if it is not to be run. One that is not valid may pass here:
    /// it is refused where the schema is compiled.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let mut reader = Reader {
            rest: text.chars().peekable(),
            groups: 0,
            anchored: true,
            is_ascii: false,
        };
        let part = reader.alternatives(true)?;
        // Of each loop it is remembered whether it has matched nothing so far.
        let cost = part.size.checked_mul(part.ways)? << part.loops;
        let whole = reader.rest.next().is_none();
        let has_size = part.size <= MAX_SIZE && cost <= MAX_COST;
        (whole && has_size).then_some(Self {
            cost: cost.max(1),
            // What repeats once and from one place only, reads on from where it has come to.
            everywhere: part.long > 1 || (part.long == 1 && !reader.anchored),
            is_ascii: reader.is_ascii,
        })
    }

    /// Whether all engines say the same of `text`. A tool that is called has one of its own.
    pub(super) fn is_certain_of(self, text: &str) -> bool {
        !self.is_ascii || text.is_ascii()
    }

    /// The most steps that a match against a text of `bytes` takes. A long repetition may be tried from each place.
    pub(super) fn steps(self, bytes: usize) -> u64 {
        let bytes = bytes as u64 + 1;
        let times = match self.everywhere {
            true => bytes / u64::from(AT_ONCE) + 1,
            false => 1,
        };
        let each = u64::from(self.cost).saturating_mul(times);
        each.saturating_add(BEFORE_MEMORY).saturating_mul(bytes)
    }
}

impl Part {
    const NOTHING: Self = Self {
        size: 0,
        choices: 1,
        ways: 1,
        loops: 0,
        long: 0,
        nullable: true,
    };

    /// What matches a place and no character.
    const ASSERTION: Self = Self {
        size: 1,
        ..Self::NOTHING
    };

    const ATOM: Self = Self {
        nullable: false,
        ..Self::ASSERTION
    };

    /// This, and then `next`.
    fn then(self, next: Self) -> Option<Self> {
        Some(Self {
            size: self.size.checked_add(next.size)?,
            choices: self.choices.saturating_mul(next.choices),
            ways: self.ways.checked_mul(next.ways)?,
            loops: self.loops.max(next.loops),
            long: self.long.saturating_add(next.long),
            nullable: self.nullable && next.nullable,
        })
    }

    /// This, or `other`.
    fn or(self, other: Self) -> Option<Self> {
        Some(Self {
            size: self.size.checked_add(other.size)?.checked_add(1)?,
            choices: self.choices.saturating_add(other.choices),
            ways: self.ways.checked_add(other.ways)? - 1,
            loops: self.loops.max(other.loops),
            long: self.long.saturating_add(other.long),
            nullable: self.nullable || other.nullable,
        })
    }

    /// One character, so often. Of these the engine remembers every failure.
    fn repeated_atom(self, count: &Count) -> Option<Self> {
        let most = count.most.unwrap_or(count.least).max(1);
        let choices = count.most.map(|most| most - count.least + 1);
        Some(Self {
            size: self.size.checked_mul(most)?,
            choices: choices.unwrap_or(u32::MAX),
            long: count.most.is_none_or(|most| most >= AT_ONCE).into(),
            nullable: self.nullable || count.least == 0,
            ..self
        })
    }

    /// A group, so often.
    fn repeated_group(self, count: &Count) -> Option<Self> {
        match (count.least, count.most) {
            (0, Some(1)) if !self.nullable => Some(Self {
                choices: self.choices.saturating_add(1),
                nullable: true,
                ..self
            }),
            (0 | 1, None) if self.loops < MAX_LOOPS => Some(Self {
                choices: u32::MAX,
                loops: self.loops + 1,
                long: u32::MAX,
                nullable: self.nullable || count.least == 0,
                ..self
            }),
            (_, None) => None,
            (least, Some(most)) => {
                // Each number of times, and each way of each time.
                let mut ways = 0u32;
                for times in least..=most {
                    ways = ways.checked_add(self.choices.checked_pow(times)?)?;
                }
                Some(Self {
                    size: self.size.checked_mul(most.max(1))?,
                    choices: ways,
                    ways,
                    loops: self.loops,
                    long: self.long.saturating_mul(most),
                    nullable: self.nullable || least == 0,
                })
            }
        }
    }
}

impl Reader<'_> {
    /// Up to the end of the group, or of the expression.
    fn alternatives(&mut self, outermost: bool) -> Option<Part> {
        let mut all: Option<Part> = None;
        loop {
            let one = self.sequence(outermost)?;
            all = Some(match all {
                Some(before) => before.or(one)?,
                None => one,
            });
            if self.rest.next_if_eq(&'|').is_none() {
                return all;
            }
        }
    }

    fn sequence(&mut self, outermost: bool) -> Option<Part> {
        let mut all = Part::NOTHING;
        // At the start of the text it is looked ahead once.
        let mut at_start = outermost && self.rest.peek() == Some(&'^');
        self.anchored &= at_start || !outermost;
        while let Some(&next) = self.rest.peek() {
            if matches!(next, '|' | ')') {
                break;
            }
            self.rest.next();
            let is_group = next == '(';
            let looks_ahead = is_group && at_start && self.looks_ahead();
            at_start &= looks_ahead || next == '^';
            let part = match next {
                '(' if looks_ahead => self.inside()?,
                '(' => self.group()?,
                '[' => self.class()?,
                '\\' => self.escape()?,
                '^' | '$' => Part::ASSERTION,
                _ => Part::ATOM,
            };
            let part = match self.count()? {
                None => part,
                Some(_) if looks_ahead => return None,
                Some(count) if is_group => part.repeated_group(&count)?,
                Some(count) => part.repeated_atom(&count)?,
            };
            all = all.then(part)?;
        }
        Some(all)
    }

    /// After `(`: whether the text is looked ahead in, and then what follows is what for.
    fn looks_ahead(&mut self) -> bool {
        let mut ahead = self.rest.clone();
        let found = ahead.next() == Some('?') && matches!(ahead.next(), Some('=' | '!'));
        if found {
            self.rest = ahead;
        }
        found
    }

    /// After `(`. A plain group or a named one; others are not run.
    fn group(&mut self) -> Option<Part> {
        if self.rest.next_if_eq(&'?').is_some() {
            match self.rest.next()? {
                ':' => {}
                '<' if !matches!(self.rest.peek(), Some('=' | '!')) => {
                    while self.rest.next()? != '>' {}
                }
                _ => return None,
            }
        }
        self.inside()
    }

    /// What stands in a group, and its end.
    fn inside(&mut self) -> Option<Part> {
        self.groups += 1;
        if self.groups > MAX_GROUPS {
            return None;
        }
        let inside = self.alternatives(false)?;
        self.rest.next_if_eq(&')').map(|_| inside)
    }

    /// After `[`.
    fn class(&mut self) -> Option<Part> {
        let mut size = 1;
        loop {
            match self.rest.next()? {
                // Nothing is in it: the engine counts how often it is not there.
                ']' if size == 1 => return None,
                ']' => return Some(Part { size, ..Part::ATOM }),
                '\\' => size += self.escape()?.size,
                _ => size += 1,
            }
        }
    }

    /// After a backslash.
    fn escape(&mut self) -> Option<Part> {
        let escaped = self.rest.next()?;
        self.is_ascii |= matches!(escaped, 'w' | 'W' | 'd' | 'D' | 'b' | 'B');
        match escaped {
            // What a group has matched: `\1`, `\k<name>`.
            '1'..='9' | 'k' => None,
            'b' | 'B' => Some(Part::ASSERTION),
            // The tables of Unicode are large.
            'p' | 'P' => self.braces(|name| name.starts_with(char::is_alphabetic), 4),
            'u' => self.braces(
                |code| u32::from_str_radix(code, 16).is_ok_and(|code| code <= LAST_CHARACTER),
                1,
            ),
            _ => Some(Part::ATOM),
        }
    }

    /// What stands in braces behind an escape and is no count, if anything does. What is not as expected is read
    /// as a count in the older grammar.
    fn braces(&mut self, expected: impl Fn(&str) -> bool, size: u32) -> Option<Part> {
        if self.rest.next_if_eq(&'{').is_some() {
            let inside: String = self.rest.by_ref().take_while(|&next| next != '}').collect();
            if !expected(&inside) {
                return None;
            }
        }
        Some(Part { size, ..Part::ATOM })
    }

    /// A quantifier, if one stands here. A brace that is none stands for itself in the older grammar.
    fn count(&mut self) -> Option<Option<Count>> {
        let count = match self.rest.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                self.rest.next();
                let inside: String = self.rest.by_ref().take_while(|&next| next != '}').collect();
                let (least, most) = match inside.split_once(',') {
                    None => (inside.as_str(), Some(inside.as_str())),
                    Some((least, "")) => (least, None),
                    Some((least, most)) => (least, Some(most)),
                };
                let least: u32 = least.parse().ok()?;
                let most: Option<u32> = most.map(str::parse).transpose().ok()?;
                let largest = most.unwrap_or(least);
                if largest > MAX_COUNT || least > largest {
                    return None;
                }
                // The lazy form of it, below, begins where the brace ended.
                self.rest.next_if_eq(&'?');
                return Some(Some(Count { least, most }));
            }
            _ => return Some(None),
        };
        self.rest.next();
        self.rest.next_if_eq(&'?');
        let (least, most) = count;
        Some(Some(Count { least, most }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(text: &str) -> Option<u32> {
        Pattern::read(text).map(|pattern| pattern.cost)
    }

    #[test]
    fn what_schemas_of_tools_have_is_run() {
        for text in [
            "",
            "^a",
            r"^[a-z][a-z0-9_-]{0,63}$",
            r"^\d{4}-\d{2}-\d{2}$",
            r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
            r"^((25[0-5]|2[0-4]\d|[01]?\d\d?)\.){3}(25[0-5]|2[0-4]\d|[01]?\d\d?)$",
            r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$",
            r"^([a-z0-9]+)(-[a-z0-9]+)*$",
            r"^(?<scheme>https?):\/\/[^\s/$.?#].[^\s]*$",
            "(?:a?)?(ab*)?(?:^|a)?",
            r"^[\p{L}\p{N}_-]{1,64}$",
            r"^\p{L}[\u{1F600}-\u{1F64F}]*\u0041$",
            "^(a|b|c)$",
            r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
            r"^(?=.*[a-z])(?=.*\d).{8,}$|^x$",
            "^[{}(]+$",
        ] {
            assert!(cost(text).is_some(), "{text}");
        }
    }

    #[test]
    fn what_the_engine_does_not_bound_is_not_run() {
        let long = "a".repeat(MAX_BYTES + 1);
        let groups = "()".repeat(MAX_GROUPS as usize + 1);
        for text in [
            r"^(?:(a+)\1*)+$",
            r"(?<n>a)\k<n>",
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "(?<!a)",
            "(?i:a)",
            "^a(?=b)",
            "(^(?=a))",
            "^(?:(?=a)b)*",
            "a|(?=b)",
            "^((?=a)",
            "(?:a?){100}",
            "(?:a*){3}",
            "(a{0,100}){8}",
            "(((a*)*)*)*",
            "(?:(?:(?:a?){10}){10}){10}",
            "(?:aa){2,}",
            "(a*)?",
            "(?:(a*)|b)?",
            "(?:^|a*)?",
            "[]{0,9}",
            "^(?=a)*",
            "a{1001}",
            "[a-z]{1000}[a-z]{1000}[a-z]{1000}",
            "a{2,1}",
            "a{b}",
            r"\u{9999999}",
            r"\p{9}",
            "(a",
            "a)",
            "[a",
            "\\",
            &long,
            &groups,
        ] {
            assert_eq!(Pattern::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_match_costs_by_expression_and_text_and_more_with_a_repetition() {
        let steps = |text: &str, bytes| Pattern::read(text).unwrap().steps(bytes);
        let before = |bytes| BEFORE_MEMORY * bytes;
        assert_eq!(steps("abc", 99), before(100) + 300);
        assert_eq!(steps("a*", 99), before(100) + 100 * 13);
        assert_eq!(steps("(-[0-9]{2}){3}", 7), before(8) + 27 * 8);
        assert_eq!(steps("^(((ab)*c)*)$", 7), before(8) + 5 * 4 * 8 * 2);
        assert_eq!(steps("^(((ab)*c)*)$", 99), before(100) + 5 * 4 * 100 * 13);
        assert_eq!(steps("^a*$", 99), before(100) + 3 * 100);
        assert_eq!(steps("^a*b*$|^c$", 99), before(100) + 8 * 100 * 13);
        assert_eq!(steps("^a*$|c", 99), before(100) + 5 * 100 * 13);
        assert_eq!(cost("(?:[ab]?){3}"), Some(9 * 8));
    }
}
