//! A small JSON Schema validator for tests: the keywords our schemas use.
//!
//! It is stricter than the standard in two ways: a keyword it does not know
//! and a field the schema does not name are errors, so that neither a schema
//! nor a document can go beyond what is checked.

use serde_json::{Map, Value};

/// Everything in `document` that contradicts `schema`, with its place.
pub(crate) fn errors(schema: &Value, document: &Value) -> Vec<String> {
    let mut walker = Walker {
        root: schema,
        errors: Vec::new(),
    };
    walker.check(schema, document, "$");
    walker.errors
}

/// Places in `schema` of fields without a description or not required.
pub(crate) fn undescribed(schema: &Value) -> Vec<String> {
    let mut places = Vec::new();
    let no_definitions = Map::new();
    let definitions = schema["$defs"].as_object().unwrap_or(&no_definitions);
    for object in std::iter::once(schema).chain(definitions.values()) {
        let Some(properties) = object["properties"].as_object() else {
            continue;
        };
        let required = object["required"].as_array();
        for (name, property) in properties {
            let always = required.is_some_and(|r| r.iter().any(|n| n == name));
            if !always || !property["description"].is_string() {
                places.push(name.clone());
            }
        }
    }
    places
}

struct Walker<'a> {
    root: &'a Value,
    errors: Vec<String>,
}

impl Walker<'_> {
    fn fail(&mut self, place: &str, why: &str) {
        self.errors.push(format!("{place}: {why}"));
    }

    fn check(&mut self, schema: &Value, value: &Value, place: &str) {
        let Some(schema) = schema.as_object() else {
            if schema != &Value::Bool(true) {
                self.fail(place, "is allowed no value");
            }
            return;
        };
        for (keyword, rule) in schema {
            self.keyword(keyword, rule, value, place);
        }
        if let Some(object) = value.as_object() {
            self.object(schema, object, place);
        }
    }

    fn keyword(&mut self, keyword: &str, rule: &Value, value: &Value, place: &str) {
        let number = |v: &Value| v.as_f64().unwrap_or(f64::NAN);
        let length = value.as_array().map(|a| a.len() as u64);
        let holds = match keyword {
            // An id further in would change what `#/$defs` refers to.
            "$schema" | "$id" => place == "$",
            // Notes, and what `object` and references look at.
            "$defs"
            | "title"
            | "description"
            | "properties"
            | "additionalProperties"
            | "required" => true,
            "format" => format_holds(rule, value),
            "type" => match rule {
                Value::Array(types) => types.iter().any(|t| is_type(t, value)),
                one => is_type(one, value),
            },
            "const" => rule == value,
            "enum" => rule.as_array().is_some_and(|list| list.contains(value)),
            "minimum" => !value.is_number() || number(value) >= number(rule),
            "maximum" => !value.is_number() || number(value) <= number(rule),
            "minItems" => length.is_none_or(|n| Some(n) >= rule.as_u64()),
            "maxItems" => length.is_none_or(|n| Some(n) <= rule.as_u64()),
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.check(rule, item, &format!("{place}[{i}]"));
                }
                true
            }
            "anyOf" => rule.as_array().is_some_and(|list| {
                list.iter().any(|one| {
                    let mut trial = Walker {
                        root: self.root,
                        errors: Vec::new(),
                    };
                    trial.check(one, value, place);
                    trial.errors.is_empty()
                })
            }),
            "$ref" => {
                let pointer = rule.as_str().and_then(|r| r.strip_prefix('#'));
                let root = self.root;
                let target = pointer.and_then(|p| root.pointer(p));
                if let Some(target) = target {
                    self.check(target, value, place);
                }
                target.is_some()
            }
            _ => {
                self.fail(place, &format!("keyword {keyword} is not known here"));
                true
            }
        };
        if !holds {
            self.fail(place, &format!("{value} breaks {keyword}: {rule}"));
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, object: &Map<String, Value>, place: &str) {
        if ["$ref", "anyOf"].iter().any(|k| schema.contains_key(*k)) {
            return;
        }
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                self.fail(place, &format!("{name} is missing"));
            }
        }
        for (name, value) in object {
            let own = schema.get("properties").and_then(|p| p.get(name));
            match own.or_else(|| schema.get("additionalProperties")) {
                Some(rule) => self.check(rule, value, &format!("{place}.{name}")),
                None => self.fail(place, &format!("{name} is not in the schema")),
            }
        }
    }
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap_or_default() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn format_holds(rule: &Value, value: &Value) -> bool {
    match (rule.as_str().unwrap_or_default(), value) {
        ("date-time", Value::String(text)) => text.parse::<jiff::Timestamp>().is_ok(),
        ("uint16", Value::Number(n)) => n.as_u64().is_some_and(|n| u16::try_from(n).is_ok()),
        ("uint32", Value::Number(n)) => n.as_u64().is_some_and(|n| u32::try_from(n).is_ok()),
        ("uint64", Value::Number(n)) => n.is_u64(),
        // Wider than 64 bits is read back as a float, which is no integer here.
        ("int128", Value::Number(n)) => n.is_i64() || n.is_u64(),
        ("int64", Value::Number(n)) => n.is_i64(),
        ("date-time" | "uint16" | "uint32" | "uint64" | "int64" | "int128" | "double", _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_kind_of_error_is_found() {
        let schema = json!({
            "type": "object",
            "required": ["n"],
            "properties": {
                "n": {"type": "integer", "minimum": 0, "format": "uint32"},
                "kind": {"enum": ["a", "b"]},
                "list": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/part"}},
                "maybe": {"anyOf": [{"$ref": "#/$defs/part"}, {"type": "null"}]},
                "at": {"type": ["string", "null"], "format": "date-time"},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "$defs": {"part": {
                "type": "object", "required": ["x"], "properties": {"x": {"const": 1}},
            }},
        });
        let found = |document: Value| errors(&schema, &document).len();
        assert_eq!(
            found(json!({
                "n": 1, "kind": "a", "list": [{"x": 1}], "maybe": null, "map": {"k": "v"},
                "at": "2026-01-31T12:00:00Z",
            })),
            0
        );
        for broken in [
            json!({}),
            json!({"n": 1.5}),
            json!({"n": -1}),
            json!({"n": null}),
            json!({"n": 4_294_967_296_u64}),
            json!({"n": 1, "other": 1}),
            json!({"n": 1, "kind": "c"}),
            json!({"n": 1, "list": [{}]}),
            json!({"n": 1, "list": [{"x": 1}, {"x": 1}, {"x": 1}]}),
            json!({"n": 1, "maybe": {"x": 2}}),
            json!({"n": 1, "at": "yesterday"}),
            json!({"n": 1, "map": {"k": 1}}),
        ] {
            assert_ne!(found(broken.clone()), 0, "{broken}");
        }
        assert_ne!(errors(&json!({"oneOf": []}), &json!(1)).len(), 0);
        let inner_id = json!({"type": "array", "items": {"$id": "x", "type": "null"}});
        assert_ne!(errors(&inner_id, &json!([null])).len(), 0);
    }
}
