//! JSON Schemas (draft 2020-12) of the documents.
//!
//! Derived from the structs that are serialised, so they cannot differ from
//! the output in fields; the descriptions are those structs' doc comments.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use super::json::Report;
use super::json_advise;
use super::json_bench;
use super::json_check;
use super::json_diff;
use super::json_doctor::Doctor;
use super::json_dump;
use super::json_explain::Explained;
use super::json_ps;
use super::json_shrink;
use super::json_sites;
use super::json_stat;
use super::json_thread;
use super::json_tune;
use super::json_validate::Validation;
use super::row::CacheRow;

/// Makes the schema of a document.
type Make = fn() -> Schema;

/// Documents by the middle part of their `slabctl.NAME/1`, and `cache` and
/// `diff-row` for a line of their JSON lines.
const DOCUMENTS: &[(&str, Make)] = &[
    ("report", of::<Report>),
    ("cache", of::<CacheRow>),
    ("diff", of::<json_diff::Document>),
    ("diff-row", of::<json_diff::Row>),
    ("advise", of::<json_advise::Document>),
    ("check", of::<json_check::Document>),
    ("sites", of::<json_sites::Document>),
    ("shrink", of::<json_shrink::Document>),
    ("bench", of::<json_bench::Document>),
    ("bench-thread", of::<json_thread::Document>),
    ("bench-threads", of::<json_thread::List>),
    ("stat", of::<json_stat::Document>),
    ("tune", of::<json_tune::Document>),
    ("dump", of::<json_dump::Document>),
    ("validate", of::<Validation>),
    ("ps", of::<json_ps::Document>),
    ("doctor", of::<Doctor>),
    ("explain", of::<Explained>),
];

/// Names that [`schema`] knows.
pub(crate) fn names() -> Vec<&'static str> {
    DOCUMENTS.iter().map(|(name, _)| *name).collect()
}

/// The schema of document `name`; `None` when there is no such document.
pub(crate) fn schema(name: &str) -> Option<Value> {
    let (_, make) = DOCUMENTS.iter().find(|(known, _)| *known == name)?;
    let mut schema = make();
    // Only here and not on the structs: the id of a schema inside another one
    // changes what its references mean.
    let id = format!("slabctl.{name}/1");
    schema.insert("$id".to_owned(), Value::from(&*id));
    schema.insert("title".to_owned(), Value::from(id));
    Some(schema.to_value())
}

fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(RecursiveTransform(unwrap_description))
        .into_generator()
        .into_root_schema_for::<T>()
}

/// Takes the line ends of the source out of a description; paragraphs stay.
fn unwrap_description(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        let paragraphs: Vec<_> = text.split("\n\n").map(|p| p.replace('\n', " ")).collect();
        *text = paragraphs.join("\n\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::check;

    #[test]
    fn every_name_has_a_schema_with_its_id() {
        for name in names() {
            let schema = schema(name).unwrap();
            assert_eq!(schema["$id"], format!("slabctl.{name}/1"));
            assert_eq!(schema["title"], schema["$id"]);
        }
        assert_eq!(schema("slabctl.report/1"), None);
        assert_eq!(schema(""), None);
    }

    #[test]
    fn every_field_is_described_and_required() {
        for name in names() {
            let schema = schema(name).unwrap();
            assert_eq!(check::undescribed(&schema), Vec::<String>::new());
        }
    }
}
