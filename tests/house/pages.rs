//! What pages say about the code, where a machine can tell.

use redrive::{
    protocol::Dialect,
    verdict::class::{Class, label, transient},
};

use crate::{assert_none, root};

/// Complaints about a page that has a row for each class: its label, and in the third column whether
/// the failure is transient.
fn complaints(page: &str, classes: &[Class]) -> Vec<String> {
    let row = |class: &Class| {
        let name = format!("| `{}` |", label(*class));
        page.lines().find(|line| line.starts_with(&name))
    };
    let complaint = |class: &Class| {
        let Some(row) = row(class) else {
            return Some(format!("no row for `{}`", label(*class)));
        };
        let said = row.split('|').nth(3).map(str::trim);
        let right = if transient(*class) { "yes" } else { "no" };
        (said != Some(right)).then(|| format!("`{}` is said to be {said:?}", label(*class)))
    };
    classes.iter().filter_map(complaint).collect()
}

#[test]
fn the_page_of_verdicts_has_every_class_and_knows_which_are_transient() {
    let page = std::fs::read_to_string(root().join("docs/verdicts.md")).unwrap();
    let classes: Vec<Class> = (1..)
        .map_while(|number| Class::try_from(number).ok())
        .collect();
    assert!(
        classes.contains(&Class::Unclassified),
        "all classes were looked at"
    );
    assert_none(&complaints(&page, &classes));
}

#[test]
fn the_page_of_the_configuration_has_every_dialect() {
    let page = std::fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let missing: Vec<_> = Dialect::ALL
        .into_iter()
        .filter(|dialect| !page.contains(&format!(" | `{}` | `max_", dialect.name())))
        .map(|dialect| format!("no row for `{}`", dialect.name()))
        .collect();
    assert_none(&missing);
}

#[test]
fn a_missing_class_and_a_wrong_word_are_found() {
    let page = "| class | typically | transient |\n| `stall` | silence | no | UNAVAILABLE |";
    assert_eq!(
        complaints(page, &[Class::Stall, Class::Auth]),
        ["`stall` is said to be Some(\"no\")", "no row for `auth`"]
    );
}
