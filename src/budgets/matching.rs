//! Which budgets an attempt takes part of.

use std::{collections::HashMap, sync::Arc};

use super::Budgets;
use crate::limits::BudgetId;

/// The budgets of one way an attempt can go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// In the configuration's order.
    pub budgets: Box<[BudgetId]>,
    /// Whom it stands in line with: the first of the budgets that is shared fairly between the values
    /// of a label, and the client's value of that label (empty where it has none).
    pub flow: Option<(BudgetId, Box<str>)>,
}

/// What selectors look at.
#[derive(Clone, Copy, Debug)]
pub struct Occasion<'a> {
    /// The provider's name.
    pub provider: &'a str,
    /// The credential's name, where the provider has any.
    pub credential: Option<&'a str>,
    /// `provider/model`.
    pub target: &'a str,
    /// The route's name.
    pub route: &'a str,
    /// The labels of the start.
    pub labels: &'a HashMap<String, String>,
}

impl Budgets {
    /// The budgets whose selectors all match.
    pub fn matching(&self, _occasion: &Occasion<'_>) -> Arc<Matched> {
        Arc::default()
    }
}
