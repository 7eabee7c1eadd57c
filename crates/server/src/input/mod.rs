//! Strict input: what a client sent becomes the core's own types here, or a list of everything that is
//! wrong with it, each with its pointer.

pub(crate) mod assortment;
pub(crate) mod campaigns;
pub(crate) mod cases;
pub(crate) mod cursor;
pub(crate) mod field;
pub(crate) mod json;
pub(crate) mod keys;
pub(crate) mod metadata;
pub(crate) mod orders;
pub(crate) mod payments;
pub(crate) mod pools;
pub(crate) mod position;
pub(crate) mod query;
pub(crate) mod reader;
pub(crate) mod reconciliations;
pub(crate) mod report;
pub(crate) mod sinks;
pub(crate) mod stock_file;
pub(crate) mod time;

#[cfg(test)]
mod wire_tests;

use json::Json;
use reader::{Object, Place};
use report::Report;

use crate::problem::Problem;

/// Reads a whole body as one object; every error of it in one problem.
pub(crate) fn read<T>(
    bytes: &[u8],
    shape: impl FnOnce(&mut Object<'_, '_>) -> Option<T>,
) -> Result<T, Problem> {
    let json = json::parse(bytes).map_err(Problem::of_fault)?;
    let mut report = Report::default();
    let read = read_json(&json, &mut report, shape);
    report.into_result(read)
}

fn read_json<T>(
    json: &Json<'_>,
    report: &mut Report,
    shape: impl FnOnce(&mut Object<'_, '_>) -> Option<T>,
) -> Option<T> {
    let mut object = Object::new(json, Place::ROOT, report)?;
    let read = shape(&mut object);
    object.finish();
    read
}
