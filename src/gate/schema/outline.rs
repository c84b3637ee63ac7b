//! The outline of a JSON Schema: what a validator does with it, without the values that it compares with.
//!
//! Schemas come from whoever describes a tool. Before one is compiled it is read here, as far as calls can reach
//! it, and is refused where it is no schema, where it leans on what is not looked at, or where compiling it would
//! take more than [`MAX_COMPILE_STEPS`].

use std::{
    collections::{BTreeMap, BTreeSet},
    ptr,
};

use corvus_json_schema::Dialect;
use serde_json::{Map, Value};

use super::pattern::Pattern;

/// Work that compiling a schema may take, in comparisons of short names. Some are the square of a list's length.
const MAX_COMPILE_STEPS: u64 = 1 << 22;

/// Schemas in one schema. Compiled, each takes one or two kilobytes.
const MAX_NODES: usize = 4_096;

/// Bytes of the places (JSON Pointers) of all values of a schema together: the compiled schema keeps them.
const MAX_PLACES: u64 = 4 << 20;

/// Schemas that apply to a value because another does, those that apply because of these, and so on. Deeper than
/// this there is no end.
const MAX_HEIGHT: usize = 64;

/// All schemas that apply to a value because another does, summed over all schemas.
const MAX_UNFOLDED: u64 = 1 << 16;

/// Expressions in one schema.
const MAX_PATTERNS: u32 = 64;

/// The names of JSON's types.
const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// A schema, as far as arguments can reach it. The first node is its root.
pub(super) struct Outline {
    pub(super) nodes: Vec<Node>,
    /// The addresses of the schemas with expressions.
    pub(super) with_patterns: BTreeSet<usize>,
}

/// One schema of it, and the others that it applies, by their places in [`Outline::nodes`].
#[derive(Default)]
pub(super) struct Node {
    /// The bytes of its place.
    pub(super) place: usize,
    /// Steps for each value that it is applied to.
    pub(super) price: u64,
    /// Members that are looked for by their names in each object.
    pub(super) lookups: u64,
    /// It reads texts: their length, or to compare them.
    pub(super) reads_text: bool,
    /// The expression that texts must match.
    pub(super) text: Option<Pattern>,
    /// It compares all items with each other.
    pub(super) unique: bool,
    /// Expressions that the names of members are matched with.
    pub(super) names: Vec<Pattern>,
    /// Applied to the same value.
    pub(super) here: Vec<usize>,
    /// Applied to the member of that name.
    pub(super) members: BTreeMap<String, usize>,
    /// May be applied to any member.
    pub(super) every_member: Vec<usize>,
    /// Applied to the name of every member.
    pub(super) member_names: Vec<usize>,
    /// Applied to the item at that place.
    pub(super) items: Vec<usize>,
    /// May be applied to any item.
    pub(super) every_item: Vec<usize>,
    /// The values of its `enum`.
    choices: u64,
    /// Branches of which a validator looks for a member that tells them apart.
    unions: Vec<Vec<usize>>,
}

struct Reader<'s> {
    root: &'s Value,
    dialect: Dialect,
    nodes: Vec<Node>,
    /// The node of each value, by its address: `root` is not moved.
    known: BTreeMap<usize, usize>,
    /// What is still to be read, in the order of the nodes.
    unread: Vec<(&'s Value, usize)>,
    patterns: u32,
    with_patterns: BTreeSet<usize>,
}

impl Outline {
    /// Reads the outline of `root`, in `dialect` unless it says otherwise; `None` if it is not looked at.
    pub(super) fn of(root: &Value, dialect: Dialect) -> Option<Self> {
        let mut places = MAX_PLACES;
        survey(root, dialect, None, 0, &mut places)?;
        let mut reader = Reader {
            root,
            dialect,
            nodes: Vec::new(),
            known: BTreeMap::new(),
            unread: Vec::new(),
            patterns: 0,
            with_patterns: BTreeSet::new(),
        };
        reader.node(root, 0)?;
        while let Some(&(schema, place)) = reader.unread.get(reader.nodes.len()) {
            let node = reader.read(schema, place)?;
            reader.nodes.push(node);
        }
        let outline = Self {
            nodes: reader.nodes,
            with_patterns: reader.with_patterns,
        };
        let sizes = outline.sizes()?;
        (outline.compile_steps(&sizes)? <= MAX_COMPILE_STEPS).then_some(outline)
    }

    /// How many schemas apply where each one does, it and its members among them.
    fn sizes(&self) -> Option<Vec<u64>> {
        let mut sizes = vec![None; self.nodes.len()];
        let mut sum = 0u64;
        for node in 0..self.nodes.len() {
            sum = sum.checked_add(self.size(node, MAX_HEIGHT, &mut sizes)?.0)?;
        }
        (sum <= MAX_UNFOLDED).then_some(())?;
        sizes.into_iter().map(|size| Some(size?.0)).collect()
    }

    /// The size of a node, and its height, if there is an end to it.
    fn size(
        &self,
        node: usize,
        height: usize,
        sizes: &mut [Option<(u64, usize)>],
    ) -> Option<(u64, usize)> {
        if let Some(&Some(known)) = sizes.get(node) {
            return (known.1 <= height).then_some(known);
        }
        let below = height.checked_sub(1)?;
        let this = self.nodes.get(node)?;
        let mut size = 1 + this.members.len() as u64;
        let mut highest = 0;
        for &child in &this.here {
            let (more, high) = self.size(child, below, sizes)?;
            size = size.saturating_add(more);
            highest = highest.max(high);
        }
        let found = (size, highest + 1);
        *sizes.get_mut(node)? = Some(found);
        Some(found)
    }

    /// What compiling takes beyond reading every value once.
    fn compile_steps(&self, sizes: &[u64]) -> Option<u64> {
        let mut steps = 0u64;
        for (node, &size) in self.nodes.iter().zip(sizes) {
            // Required names are compared with each other.
            steps = steps.saturating_add(node.lookups.saturating_mul(node.lookups));
            if !node.here.is_empty() {
                // What applies together is laid together, up to 256 names.
                let together = size.min(256);
                steps = steps.saturating_add(together * together);
            }
            for pattern in &node.names {
                for name in node.members.keys() {
                    steps = steps.saturating_add(pattern.steps(name.len()));
                }
            }
            for union in &node.unions {
                let mut spread = 0u64;
                for &branch in union {
                    let branch = self.nodes.get(self.referred(branch))?;
                    for &member in branch.members.values() {
                        spread = spread.saturating_add(1 + self.choices(self.referred(member))?);
                        steps = steps.saturating_add(1);
                    }
                    (steps <= MAX_COMPILE_STEPS).then_some(())?;
                }
                steps = steps.saturating_add(spread.saturating_mul(spread));
            }
            (steps <= MAX_COMPILE_STEPS).then_some(())?;
        }
        Some(steps)
    }

    /// Where a chain of references leads.
    fn referred(&self, mut node: usize) -> usize {
        for _ in 0..MAX_HEIGHT {
            match self.nodes.get(node) {
                Some(Node {
                    here,
                    members,
                    choices: 0,
                    ..
                }) if members.is_empty() => match here.as_slice() {
                    &[next] => node = next,
                    _ => break,
                },
                _ => break,
            }
        }
        node
    }

    fn choices(&self, node: usize) -> Option<u64> {
        let node = self.nodes.get(node)?;
        let mut choices = node.choices;
        for &child in &node.here {
            choices = choices.saturating_add(self.nodes.get(self.referred(child))?.choices);
        }
        Some(choices)
    }
}

impl<'s> Reader<'s> {
    /// The node of a schema that stands at a place of so many bytes.
    fn node(&mut self, schema: &'s Value, place: usize) -> Option<usize> {
        if !matches!(schema, Value::Bool(_) | Value::Object(_)) {
            return None;
        }
        let next = self.unread.len();
        let node = *self
            .known
            .entry(ptr::from_ref(schema).addr())
            .or_insert(next);
        if node == next {
            (next < MAX_NODES).then_some(())?;
            self.unread.push((schema, place));
        }
        Some(node)
    }

    fn read(&mut self, schema: &'s Value, place: usize) -> Option<Node> {
        let mut node = Node {
            place,
            price: 1,
            ..Node::default()
        };
        let Value::Object(keywords) = schema else {
            return Some(node);
        };
        node.price += keywords.len() as u64;
        if self.dialect <= Dialect::Draft7
            && let Some(reference) = keywords.get("$ref")
        {
            // There it stands for all that is beside it.
            node.here.push(self.reference(reference)?);
            return Some(node);
        }
        for (keyword, value) in keywords {
            let place = place + length(keyword);
            self.apply(&mut node, keyword, value, place)?;
        }
        if node.text.is_some() || !node.names.is_empty() {
            self.with_patterns.insert(ptr::from_ref(schema).addr());
        }
        Some(node)
    }

    /// Adds one keyword, whose value stands at `place`. `None` if it is not as the dialects have it.
    fn apply(
        &mut self,
        node: &mut Node,
        keyword: &str,
        value: &'s Value,
        place: usize,
    ) -> Option<()> {
        match keyword {
            // OpenAPI's word for a further type: JSON Schema would refuse what it permits.
            "nullable" if value.as_bool() != Some(false) => return None,
            "$ref" => node.here.push(self.reference(value)?),
            "type" => types(value)?,
            "enum" => {
                let values = value.as_array().filter(|values| !values.is_empty())?;
                node.choices = values.len() as u64;
                node.price += values.iter().map(heft).sum::<u64>();
                node.reads_text = true;
            }
            "const" => {
                node.choices += 1;
                node.price += heft(value);
                node.reads_text = true;
            }
            "multipleOf" => {
                value.as_f64().filter(|&divisor| divisor > 0.0)?;
            }
            "minimum" | "maximum" => {
                value.as_number()?;
            }
            "exclusiveMinimum" | "exclusiveMaximum" => match self.dialect {
                Dialect::Draft4 => value.is_boolean().then_some(())?,
                _ => value.is_number().then_some(())?,
            },
            "minLength" | "maxLength" => {
                count(value)?;
                node.reads_text = true;
            }
            "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minContains"
            | "maxContains" => count(value)?,
            "uniqueItems" => node.unique = value.as_bool()?,
            "pattern" => node.text = Some(self.pattern(value.as_str()?)?),
            "required" => node.lookups += names(value)?,
            "dependentRequired" => {
                for names_of in value.as_object()?.values() {
                    node.lookups += 1 + names(names_of)?;
                }
            }
            "dependencies" => {
                for (name, value) in value.as_object()? {
                    node.lookups += 1;
                    match value.is_array() {
                        true => node.lookups += names(value)?,
                        false => node.here.push(self.node(value, place + length(name))?),
                    }
                }
            }
            "dependentSchemas" => {
                let schemas = value.as_object()?;
                node.lookups += schemas.len() as u64;
                for (name, schema) in schemas {
                    node.here.push(self.node(schema, place + length(name))?);
                }
            }
            "properties" => {
                for (name, schema) in value.as_object()? {
                    let schema = self.node(schema, place + length(name))?;
                    node.members.insert(name.clone(), schema);
                }
            }
            "patternProperties" => {
                for (pattern, schema) in value.as_object()? {
                    node.names.push(self.pattern(pattern)?);
                    node.every_member
                        .push(self.node(schema, place + length(pattern))?);
                }
            }
            "additionalProperties" | "unevaluatedProperties" => {
                node.every_member.push(self.node(value, place)?);
            }
            "propertyNames" => node.member_names.push(self.node(value, place)?),
            "allOf" => node.here.extend(self.list(value, place)?),
            "anyOf" | "oneOf" => {
                let branches = self.list(value, place)?;
                node.here.extend(&branches);
                node.unions.push(branches);
            }
            "not" | "if" | "then" | "else" => node.here.push(self.node(value, place)?),
            "prefixItems" => node.items.extend(self.list(value, place)?),
            "items" if value.is_array() && self.dialect < Dialect::Draft202012 => {
                node.items.extend(self.list(value, place)?);
            }
            "items" | "additionalItems" | "unevaluatedItems" | "contains" => {
                node.every_item.push(self.node(value, place)?);
            }
            // The rest describes, or is not known.
            _ => {}
        }
        Some(())
    }

    fn list(&mut self, value: &'s Value, place: usize) -> Option<Vec<usize>> {
        let schemas = value.as_array().filter(|schemas| !schemas.is_empty())?;
        let places = schemas
            .iter()
            .map(|schema| self.node(schema, place + INDEX_BYTES));
        places.collect()
    }

    /// A reference within the schema. Others lead to schemas that are not here, or go by other names than places.
    fn reference(&mut self, value: &Value) -> Option<usize> {
        let fragment = percent_decoded(value.as_str()?.strip_prefix('#')?)?;
        let schema = self.root.pointer(&fragment)?;
        self.node(schema, fragment.len())
    }

    fn pattern(&mut self, text: &str) -> Option<Pattern> {
        self.patterns += 1;
        (self.patterns <= MAX_PATTERNS).then(|| Pattern::read(text))?
    }
}

/// Bytes of an index in a place, at most: a schema has less than a million values.
const INDEX_BYTES: usize = 7;

/// Bytes of a name in a place. Two characters may be written as two each.
fn length(name: &str) -> usize {
    1 + name.len() + name.bytes().filter(|byte| b"~/".contains(byte)).count()
}

/// Goes through all values of a schema, also those that nothing refers to. A name for a part of it, or another
/// dialect inside of it, would make references lead elsewhere.
fn survey(
    value: &Value,
    dialect: Dialect,
    key: Option<&str>,
    place: usize,
    left: &mut u64,
) -> Option<()> {
    *left = left.checked_sub(place as u64)?;
    match value {
        Value::Object(members) => {
            let is_root = place == 0;
            for (name, member) in members {
                survey(member, dialect, Some(name), place + length(name), left)?;
            }
            (is_root || !renames(members, dialect)).then_some(())
        }
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| survey(item, dialect, None, place + INDEX_BYTES, left)),
        Value::String(_) => (!matches!(key, Some("$dynamicRef" | "$recursiveRef"))).then_some(()),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(()),
    }
}

fn renames(members: &Map<String, Value>, dialect: Dialect) -> bool {
    let is_text = |name| members.get(name).is_some_and(Value::is_string);
    is_text("$id") || is_text("$schema") || (dialect == Dialect::Draft4 && is_text("id"))
}

fn types(value: &Value) -> Option<()> {
    let is_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    let all = match value {
        Value::Array(types) => !types.is_empty() && types.iter().all(is_type),
        one => is_type(one),
    };
    all.then_some(())
}

/// A whole number that is not negative. `1.0` is one.
fn count(value: &Value) -> Option<()> {
    let number = value.as_f64()?;
    (number >= 0.0 && number.fract() == 0.0).then_some(())
}

/// How many names there are, if they are nothing else.
fn names(value: &Value) -> Option<u64> {
    let names = value.as_array()?;
    let all = names.iter().all(Value::is_string);
    all.then_some(names.len() as u64)
}

/// Steps for a comparison with `value`. Members are looked for in each other's order.
fn heft(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text.len() as u64 / 64,
        Value::Array(items) => 1 + items.iter().map(heft).sum::<u64>(),
        Value::Object(members) => {
            let members_heft: u64 = members.values().map(heft).sum();
            (1 + members_heft) * (1 + members.len() as u64 / 16)
        }
    }
}

/// The text of a URI's fragment; `None` if it is not one.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        rest = after;
        let digits = str::from_utf8(digits).ok()?;
        // No sign may stand there.
        digits
            .bytes()
            .all(|digit| digit.is_ascii_hexdigit())
            .then_some(())?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}
