//! `slabctl schema [NAME]`: the JSON Schema of a machine-readable document.
//!
//! Source of truth: the structs in `output`, by way of their derived schemas.

use std::io::Write;

use crate::output::{json, schema};

/// Writes the schema of document `name`, or the known names, one a line, when
/// none is given.
///
/// Fails when there is no document of that name (nothing is written then) or
/// when `out` cannot be written to.
pub(crate) fn run(name: Option<&str>, out: &mut impl Write) -> anyhow::Result<()> {
    let Some(name) = name else {
        for known in schema::names() {
            writeln!(out, "{known}")?;
        }
        return Ok(());
    };
    let Some(document) = schema::schema(name) else {
        let known = schema::names().join(", ");
        anyhow::bail!("schema: {name:?}: no such document; known are {known}");
    };
    json::write(out, &document)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(name: Option<&str>) -> anyhow::Result<String> {
        let mut out = Vec::new();
        run(name, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn every_listed_name_has_a_schema() {
        let list = output(None).unwrap();
        assert!(list.lines().any(|line| line == "report"));
        for name in list.lines() {
            let text = output(Some(name)).unwrap();
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(
                value["$schema"],
                "https://json-schema.org/draft/2020-12/schema"
            );
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
        let error = output(Some("report\n")).unwrap_err().to_string();
        assert!(error.contains("report, cache"), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}
