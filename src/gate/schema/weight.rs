//! What checking arguments against a schema takes at most, counted before it is done.
//!
//! Schemas and arguments can be written so that a validator does not come to an end: branches in branches, members
//! that refer to where they stand, expressions that go back without end. Here the same way is gone, with nothing
//! compared, nothing stopped at the first fault and nothing remembered: no validator does more. Where it takes more
//! than [`MAX_STEPS`], it is not gone at all.

use corvus_json_schema::{ArrayView, Instance, ObjectView, View};
use serde_json::Value;

use super::outline::{Node, Outline};

/// Steps of one check, at most. One takes about as long as the comparison of two short names.
pub(super) const MAX_STEPS: u64 = 1 << 19;

/// Schemas inside of each other that one check is in at a time, at most: they stand on the stack.
const MAX_DEPTH: usize = 256;

/// From this on, numbers are not kept as they were written.
const INEXACT: f64 = 9_223_372_036_854_775_808.0;

/// Bytes of the words between two names in the path of a check.
const WORDS: usize = 32;

/// What a check takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    /// Its steps.
    pub(super) steps: u64,
    /// Bytes of the longest path that can be told of a fault.
    pub(super) longest: usize,
}

struct Walk<'o> {
    nodes: &'o [Node],
    left: u64,
    longest: usize,
}

impl Outline {
    /// What checking `arguments` takes; `None` if that is too much, or if they hold what cannot be checked.
    pub(super) fn weigh<'x>(&self, arguments: impl Instance<'x>) -> Option<Work> {
        let mut walk = Walk {
            nodes: &self.nodes,
            left: MAX_STEPS,
            longest: 0,
        };
        walk.survey(arguments)?;
        walk.apply(0, arguments, MAX_DEPTH, 0)?;
        Some(Work {
            steps: MAX_STEPS - walk.left,
            longest: walk.longest,
        })
    }
}

impl Walk<'_> {
    fn spend(&mut self, steps: u64) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }

    /// Goes through all values once, and says how many steps that takes. A number that is rounded may be refused for
    /// what it was rounded to.
    fn survey<'x>(&mut self, value: impl Instance<'x>) -> Option<u64> {
        self.spend(1)?;
        Some(match value.view() {
            View::Null | View::Bool(_) => 1,
            View::Number(number) => {
                let rounded = number.is_f64() && number.as_f64().is_none_or(|n| n.abs() >= INEXACT);
                (!rounded).then_some(1)?
            }
            View::String(text) => 1 + text.len() as u64 / 64,
            View::Array(items) => {
                let mut size = 1;
                for item in items.iter() {
                    size += self.survey(item)?;
                }
                size
            }
            View::Object(members) => {
                let mut size = 1;
                for (_, member) in members.iter() {
                    size += self.survey(member)?;
                }
                size * (1 + members.len() as u64 / 16)
            }
        })
    }

    /// Applies a schema to a value. `path`: the bytes of the way to here.
    fn apply<'x>(
        &mut self,
        node: usize,
        value: impl Instance<'x>,
        depth: usize,
        path: usize,
    ) -> Option<()> {
        let nodes = self.nodes;
        let node = nodes.get(node)?;
        let depth = depth.checked_sub(1)?;
        self.spend(node.price)?;
        self.longest = self.longest.max(path + node.place);
        match value.view() {
            View::Null | View::Bool(_) | View::Number(_) => {}
            View::String(text) => {
                if node.reads_text {
                    self.spend(text.len() as u64 / 16)?;
                }
                if let Some(pattern) = node.text {
                    pattern.is_certain_of(text).then_some(())?;
                    self.spend(pattern.steps(text.len()))?;
                }
            }
            View::Array(items) => self.items(node, items, depth, path)?,
            View::Object(members) => self.members(node, members, depth, path)?,
        }
        for &child in &node.here {
            self.child(node, child, value, depth, path)?;
        }
        Some(())
    }

    fn items<'x>(
        &mut self,
        node: &Node,
        items: impl ArrayView<'x>,
        depth: usize,
        path: usize,
    ) -> Option<()> {
        if node.unique {
            // Each with each, should their hashes be made to be equal.
            let mut size = 0;
            for item in items.iter() {
                size += self.survey(item)?;
            }
            self.spend(size.saturating_mul(items.len() as u64) / 2)?;
        }
        let applied = !(node.items.is_empty() && node.every_item.is_empty());
        for (index, item) in items.iter().enumerate().take_while(|_| applied) {
            self.spend(1)?;
            for &child in node.items.get(index).into_iter().chain(&node.every_item) {
                self.child(node, child, item, depth, path)?;
            }
        }
        Some(())
    }

    fn members<'x>(
        &mut self,
        node: &Node,
        members: impl ObjectView<'x>,
        depth: usize,
        path: usize,
    ) -> Option<()> {
        let each = 1 + members.len() as u64 / 16;
        self.spend(node.lookups.saturating_mul(each))?;
        for (name, member) in members.iter() {
            self.spend(1 + node.members.len() as u64 / 8)?;
            for pattern in &node.names {
                pattern.is_certain_of(name).then_some(())?;
                self.spend(pattern.steps(name.len()))?;
            }
            let path = path + name.len();
            let known = node.members.get(name);
            for &child in known.into_iter().chain(&node.every_member) {
                self.child(node, child, member, depth, path)?;
            }
            for &child in &node.member_names {
                self.child(node, child, &Value::from(name), depth, path)?;
            }
        }
        Some(())
    }

    /// Applies a schema that another one has brought.
    fn child<'x>(
        &mut self,
        parent: &Node,
        child: usize,
        value: impl Instance<'x>,
        depth: usize,
        path: usize,
    ) -> Option<()> {
        let place = self.nodes.get(child)?.place;
        let words = WORDS + place.saturating_sub(parent.place);
        self.apply(child, value, depth, path + words)
    }
}

#[cfg(test)]
mod tests {
    use corvus_json_schema::Dialect;
    use serde_json::json;

    use super::*;

    fn weigh(schema: &Value, arguments: &Value) -> Option<Work> {
        let outline = Outline::of(schema, Dialect::Draft202012).unwrap();
        outline.weigh(arguments)
    }

    /// An object within an object, and so on.
    fn tower(floors: usize) -> Value {
        (0..floors).fold(json!({}), |inner, _| json!({ "a": inner }))
    }

    #[test]
    fn steps_are_those_of_each_schema_for_each_value() {
        let schema = json!({
            "properties": {"a": {"type": "integer"}, "b": {"enum": [1, "x", [2, 3]]}},
            "required": ["a", "b"],
        });
        let at_least = |arguments: Value| weigh(&schema, &arguments).unwrap().steps;
        // One for the value, three for the schema, two for what is required.
        assert_eq!(at_least(json!({})), 6);
        // And for the member: itself, being looked for, and two for its schema.
        assert_eq!(at_least(json!({"a": 7})), 10);
        assert_eq!(at_least(json!({"c": 7})), 8);
        // One for the schema, one for its keyword, five for the values that are compared.
        assert_eq!(at_least(json!({"b": 7})), 15);
        // Longer texts take longer to read.
        assert_eq!(at_least(json!({"b": "x".repeat(320)})), 15 + 20);
    }

    #[test]
    fn what_branches_double_doubles_the_steps_and_ends_them() {
        let schema = json!({"anyOf": [
            {"properties": {"a": {"$ref": "#"}}},
            {"properties": {"a": {"$ref": "#"}}},
        ]});
        let steps = |floors| Some(weigh(&schema, &tower(floors))?.steps);
        let (ten, eleven, twelve) = (steps(10), steps(11), steps(12));
        let [ten, eleven, twelve] = [ten, eleven, twelve].map(Option::unwrap);
        assert!(
            eleven > ten * 2 - 100 && twelve > eleven * 2 - 100,
            "{ten} {eleven} {twelve}"
        );
        let last = (0..).find(|&floors| steps(floors).is_none()).unwrap();
        assert!((13..20).contains(&last), "{last}");
        assert_eq!(steps(60), None);
    }

    #[test]
    fn paths_that_could_be_told_are_measured() {
        let schema = json!({"properties": {"a": {"$ref": "#"}}});
        let longest = |floors| weigh(&schema, &tower(floors)).unwrap().longest;
        let one = longest(1);
        // The name, the words of two paths, and the place of the reference.
        assert_eq!(longest(2) - one, 1 + 2 * WORDS + "/properties/a".len());
    }

    #[test]
    fn schemas_inside_of_each_other_have_a_bound() {
        let schema = json!({"properties": {"a": {"$ref": "#"}}});
        assert!(weigh(&schema, &tower(127)).is_some());
        assert_eq!(weigh(&schema, &tower(128)), None);
    }
}
