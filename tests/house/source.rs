//! What a Rust source file mentions: its paths, resolved as far as the text alone allows, and its
//! words. Comments, strings and whatever stands under `#[cfg(test)]` are no mentions.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// The mentions of one file.
#[derive(Debug, Default)]
pub struct Source {
    /// Paths of two or more segments, and all paths of `use` declarations.
    pub paths: Vec<Mention>,
    /// Every identifier and keyword.
    pub words: Vec<(String, usize)>,
    /// Modules declared as `#[cfg(test)] mod name;`: their files are tests.
    pub test_modules: Vec<String>,
    /// What `use` brought into scope: the whole path by its last name.
    imports: BTreeMap<String, (Root, Vec<String>)>,
}

/// A path and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub struct Mention {
    /// What the first segment stands in.
    pub root: Root,
    /// The segments: below the crate for [`Root::Crate`], else as written.
    pub path: Vec<String>,
    /// Counted from 1.
    pub line: usize,
}

/// Where a path starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// At the root of this crate (`crate::`, or `self::` and `super::` resolved).
    Crate,
    /// At another crate, or at a name in scope.
    Outside,
}

/// Reads the file of the module `module` (segments below the crate).
pub fn read(text: &str, module: &[String]) -> Source {
    let tokens: TokenStream = text.parse().expect("the file is Rust");
    let mut source = Source::default();
    source.walk(tokens, &mut module.to_vec());
    source.spell_out();
    source
}

impl Source {
    fn walk(&mut self, tokens: TokenStream, module: &mut Vec<String>) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if is_cfg_test(&tokens[at..]) {
                at = self.skip_item(&tokens, at + 2);
            } else if let Some((name, body)) = inline_module(&tokens[at..]) {
                module.push(name);
                self.walk(body.stream(), module);
                module.pop();
                at += 3;
            } else if word(&tokens[at]).as_deref() == Some("use") {
                let end = position(&tokens, at, ';');
                self.use_tree(&tokens[at + 1..end], Vec::new(), module);
                at = end;
            } else if let TokenTree::Group(group) = &tokens[at] {
                self.walk(group.stream(), module);
                at += 1;
            } else if word(&tokens[at]).is_some() {
                at = self.expression_path(&tokens, at, module);
            } else {
                at += 1;
            }
        }
    }

    /// Steps over the item that starts at `at`, noting a module whose body is another file.
    fn skip_item(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let mut end = at;
        while end < tokens.len() && !ends_item(&tokens[end]) {
            if word(&tokens[end]).as_deref() == Some("mod")
                && tokens.get(end + 2).is_some_and(|next| is_punct(next, ';'))
            {
                self.test_modules.extend(word(&tokens[end + 1]));
            }
            end += 1;
        }
        end + 1
    }

    /// A path in code: `a::b::c`, from the word at `at` on.
    fn expression_path(&mut self, tokens: &[TokenTree], at: usize, module: &[String]) -> usize {
        let line = line(&tokens[at]);
        let mut path = Vec::new();
        let mut next = at;
        while let Some(segment) = tokens.get(next).and_then(word) {
            self.words.push((segment.clone(), line));
            path.push(segment);
            next += 1;
            if !is_separator(tokens, next) {
                break;
            }
            next += 2;
        }
        if path.len() > 1 && !continues_a_type(tokens, at) {
            self.push(path, line, module);
        }
        next
    }

    /// One level of `use a::{b, c::d as e};`, `prefix` being what stands before it.
    fn use_tree(&mut self, tokens: &[TokenTree], mut prefix: Vec<String>, module: &[String]) {
        let mut at = if is_separator(tokens, 0) { 2 } else { 0 };
        while let Some(token) = tokens.get(at) {
            if let TokenTree::Group(group) = token {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for branch in inner.split(|token| is_punct(token, ',')) {
                    self.use_tree(branch, prefix.clone(), module);
                }
                return;
            }
            let segment = word(token).unwrap_or_else(|| token.to_string());
            self.words.push((segment.clone(), line(token)));
            prefix.push(segment);
            if !is_separator(tokens, at + 1) {
                break;
            }
            at += 3;
        }
        if let Some(token) = tokens.get(at) {
            let renamed = tokens.get(at + 2).and_then(word);
            self.push(prefix, line(token), module);
            self.import(renamed);
        }
    }

    /// Notes what name the path just pushed has from here on.
    fn import(&mut self, renamed: Option<String>) {
        let Some(mention) = self.paths.last() else {
            return;
        };
        if let Some(name) = renamed.or_else(|| mention.path.last().cloned()) {
            self.imports
                .insert(name, (mention.root, mention.path.clone()));
        }
    }

    /// Puts the whole path in the place of a name that `use` brought into scope.
    fn spell_out(&mut self) {
        for mention in &mut self.paths {
            let Some((first, rest)) = mention.path.split_first() else {
                continue;
            };
            if mention.root == Root::Outside
                && let Some((root, path)) = self.imports.get(first)
                && !rest.is_empty()
            {
                mention.path = [path, rest].concat();
                mention.root = *root;
            }
        }
    }

    fn push(&mut self, path: Vec<String>, line: usize, module: &[String]) {
        let (root, mut path) = resolve(path, module);
        path.retain(|segment| segment != "self");
        self.paths.push(Mention { root, path, line });
    }
}

/// Undoes `crate`, `self` and `super` at the start of a path that stands in `module`.
fn resolve(path: Vec<String>, module: &[String]) -> (Root, Vec<String>) {
    let mut base = module.to_vec();
    let mut rest = path.as_slice();
    let mut root = Root::Outside;
    while let Some((first, tail)) = rest.split_first() {
        match first.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                base.pop();
            }
            _ => break,
        }
        root = Root::Crate;
        rest = tail;
    }
    match root {
        Root::Crate => (root, [&base, rest].concat()),
        Root::Outside => (root, path),
    }
}

fn is_cfg_test(tokens: &[TokenTree]) -> bool {
    match tokens {
        [hash, TokenTree::Group(group), ..] if is_punct(hash, '#') => {
            group.delimiter() == Delimiter::Bracket
                && group.stream().to_string().replace(' ', "") == "cfg(test)"
        }
        _ => false,
    }
}

fn inline_module(tokens: &[TokenTree]) -> Option<(String, &Group)> {
    match tokens {
        [first, name, TokenTree::Group(body), ..]
            if word(first).as_deref() == Some("mod") && body.delimiter() == Delimiter::Brace =>
        {
            Some((word(name)?, body))
        }
        _ => None,
    }
}

/// `true` at a `;` or at the braces of a body.
fn ends_item(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        other => is_punct(other, ';'),
    }
}

/// `true` if the word at `at` goes on after a turbofish or a qualified type: `Vec::<T>::new`.
fn continues_a_type(tokens: &[TokenTree], at: usize) -> bool {
    at >= 3 && is_separator(tokens, at - 2) && is_punct(&tokens[at - 3], '>')
}

fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |at: usize| tokens.get(at).is_some_and(|token| is_punct(token, ':'));
    colon(at) && colon(at + 1)
}

fn is_punct(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn position(tokens: &[TokenTree], from: usize, mark: char) -> usize {
    let found = tokens[from..]
        .iter()
        .position(|token| is_punct(token, mark));
    found.map_or(tokens.len(), |offset| from + offset)
}

fn word(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

fn line(token: &TokenTree) -> usize {
    token.span().start().line
}

#[cfg(test)]
mod tests {
    use super::{Root, read};

    fn paths(text: &str) -> Vec<(Root, String)> {
        let module = ["recovery".to_owned(), "state".to_owned()];
        let source = read(text, &module);
        source
            .paths
            .into_iter()
            .map(|mention| (mention.root, mention.path.join("::")))
            .collect()
    }

    fn inside(path: &str) -> (Root, String) {
        (Root::Crate, path.to_owned())
    }

    fn outside(path: &str) -> (Root, String) {
        (Root::Outside, path.to_owned())
    }

    #[test]
    fn a_use_tree_is_spread_into_its_paths() {
        assert_eq!(
            paths("use crate::{protocol::{self, Event as E}, verdict::*};\nuse std::fmt;"),
            [
                inside("protocol"),
                inside("protocol::Event"),
                inside("verdict::*"),
                outside("std::fmt")
            ]
        );
    }

    #[test]
    fn super_and_self_are_resolved_from_the_module_they_stand_in() {
        assert_eq!(
            paths("use super::timers; fn f() { super::super::server::go(); self::inner::g() }"),
            [
                inside("recovery::timers"),
                inside("server::go"),
                inside("recovery::state::inner::g")
            ]
        );
    }

    #[test]
    fn an_inline_module_is_one_level_deeper() {
        assert_eq!(
            paths("mod deep { use super::super::timers; }"),
            [inside("recovery::timers")]
        );
    }

    #[test]
    fn a_name_from_a_use_is_spelled_out_where_it_stands() {
        assert_eq!(
            paths(
                "use crate::protocol; use std::time::SystemTime as Wall; \
                   fn f(e: protocol::Event) { Wall::now() }"
            ),
            [
                inside("protocol"),
                outside("std::time::SystemTime"),
                inside("protocol::Event"),
                outside("std::time::SystemTime::now"),
            ]
        );
    }

    #[test]
    fn a_turbofish_does_not_start_a_new_path() {
        assert_eq!(paths("fn f() { Vec::<u8>::http::new(); }"), []);
    }

    #[test]
    fn comments_strings_and_tests_are_no_mentions() {
        let text = r#"
            //! `tokio::spawn` is for others.
            /// So is crate::server::run.
            const WHY: &str = "std::fs::read";
            #[cfg(test)]
            mod tests { use crate::server; fn f() { std::fs::read("x"); } }
            #[cfg(test)]
            mod scripts;
        "#;
        assert_eq!(paths(text), []);
        assert_eq!(read(text, &[]).test_modules, ["scripts"]);
    }

    #[test]
    fn macros_and_attributes_are_looked_into() {
        assert_eq!(
            paths("#[tracing::instrument] fn f() { vec![tokio::spawn(x)] }"),
            [outside("tracing::instrument"), outside("tokio::spawn")]
        );
    }
}
