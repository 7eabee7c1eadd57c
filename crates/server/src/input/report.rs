//! Everything that is wrong with one request.

use holdfast_wire::{Code, ProblemItem};

use crate::problem::Problem;

/// Most errors of one request that are told. The rest would only make the answer long.
const ERRORS_MAX: usize = 100;

/// What is wrong with one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The kind.
    pub(crate) code: Code,
    /// For people.
    pub(crate) detail: String,
}

impl Fault {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located {
    /// A JSON pointer, or `/query/<name>`, or `/path/<name>`.
    pub(crate) pointer: String,
    /// What.
    pub(crate) fault: Fault,
}

impl Located {
    pub(crate) fn new(pointer: impl Into<String>, code: Code, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), fault: Fault::new(code, detail) }
    }

    pub(crate) fn into_item(self) -> ProblemItem {
        ProblemItem {
            pointer: self.pointer,
            code: self.fault.code.as_str().into(),
            detail: self.fault.detail,
            requested: None,
            available: None,
            line: None,
            column: None,
            fault: None,
        }
    }
}

/// The errors found so far, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    found: Vec<Located>,
}

impl Report {
    pub(crate) fn add(&mut self, located: Located) {
        if self.found.len() < ERRORS_MAX {
            self.found.push(located);
        }
    }

    /// Adds the error, if it is one; its value otherwise.
    pub(crate) fn take<T>(&mut self, pointer: impl FnOnce() -> String, read: Result<T, Fault>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(fault) => {
                self.add(Located { pointer: pointer(), fault });
                None
            }
        }
    }

    /// The value if nothing is wrong. A reader that gives nothing has reported why.
    pub(crate) fn into_result<T>(self, value: Option<T>) -> Result<T, Problem> {
        match (self.found.is_empty(), value) {
            (true, Some(value)) => Ok(value),
            (true, None) => Err(Problem::internal("a reader gave up without a reason")),
            (false, _) => Err(Problem::invalid(self.found)),
        }
    }
}
