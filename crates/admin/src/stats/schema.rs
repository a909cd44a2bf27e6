//! The JSON schema of `show info json` and `show stat json`.

const FIELDS: &str = r##""field":{"$ref":"#/definitions/field"},"processNum":{"$ref":"#/definitions/processNum"},"tags":{"$ref":"#/definitions/tags"}"##;
const VALUE: &str = r##"{"$ref":"#/definitions/typedValue"}"##;

/// The schema, as one line.
pub fn text() -> String {
    let int = |name: &str, min: &str, max: &str| {
        format!(
            r#""{name}Value":{{"properties":{{"type":{{"type":"string","enum":["{name}"]}},"value":{{"type":"integer","minimum":{min},"maximum":{max}}}}},"required":["type","value"]}}"#
        )
    };
    let values = ["s32", "s64", "u32", "u64", "str"]
        .map(|v| format!(r##"{{"$ref":"#/definitions/typedValue/definitions/{v}Value"}}"##))
        .join(",");
    // Integers beyond 53 bits are not exact in every reader of JSON.
    const EXACT: &str = "9007199254740991";
    let kinds = [
        int("s32", "-2147483648", "2147483647"),
        int("s64", "-9007199254740991", EXACT),
        int("u32", "0", "4294967295"),
        int("u64", "0", EXACT),
        r#""strValue":{"properties":{"type":{"type":"string","enum":["str"]},"value":{"type":"string"}},"required":["type","value"]}"#.into(),
        // Nothing is of this kind; it stands there for whoever compares schemas.
        r#""unknownValue":{"properties":{"type":{"type":"integer","minimum":0},"value":{"type":"string","enum":["unknown"]}},"required":["type","value"]}"#.into(),
    ]
    .join(",");
    format!(
        r##"{{"$schema":"http://json-schema.org/draft-04/schema#","oneOf":[{{"title":"Info","type":"array","items":{{"title":"InfoItem","type":"object","properties":{{{FIELDS},"value":{VALUE}}},"required":["field","processNum","tags","value"]}}}},{{"title":"Stat","type":"array","items":{{"title":"InfoItem","type":"object","properties":{{"objType":{{"enum":["Frontend","Backend","Listener","Server","Unknown"]}},"proxyId":{{"type":"integer","minimum":0}},"id":{{"type":"integer","minimum":0}},{FIELDS},"typedValue":{VALUE}}},"required":["objType","proxyId","id","field","processNum","tags","value"]}}}},{{"title":"Error","type":"object","properties":{{"errorStr":{{"type":"string"}}}},"required":["errorStr"]}}],"definitions":{{"field":{{"type":"object","pos":{{"type":"integer","minimum":0}},"name":{{"type":"string"}},"required":["pos","name"]}},"processNum":{{"type":"integer","minimum":1}},"tags":{{"type":"object","origin":{{"type":"string","enum":["Metric","Status","Key","Config","Product","Unknown"]}},"nature":{{"type":"string","enum":["Gauge","Limit","Min","Max","Rate","Counter","Duration","Age","Time","Name","Output","Avg", "Unknown"]}},"scope":{{"type":"string","enum":["Cluster","Process","Service","System","Unknown"]}},"required":["origin","nature","scope"]}},"typedValue":{{"type":"object","oneOf":[{values}],"definitions":{{{kinds}}}}}}}}}
"##
    )
}
