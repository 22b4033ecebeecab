//! Golden page layouts: `tests/vectors/layout.json`, which `tests/c/pages.c` repeats.
#![allow(missing_docs)]

use kvfolio::layout::*;
use serde_json::Value;

fn number(value: &Value, field: &str) -> u32 {
    value.get(field).map_or(0, |n| u32::try_from(n.as_u64().unwrap()).unwrap())
}

/// The code with the name that a field has; 0 where there is none.
macro_rules! code {
    ($type:ident, $value:expr, $field:literal) => {
        $value.get($field).map_or($type::default(), |name| {
            let name = name.as_str().unwrap();
            *$type::ALL.iter().find(|code| code.name() == name).unwrap()
        })
    };
}

fn format(value: Option<&Value>) -> TensorFormat {
    let Some(value) = value else { return TensorFormat::default() };
    TensorFormat {
        element: code!(ElementCode, value, "element"),
        axis: code!(Axis, value, "axis"),
        group: number(value, "group"),
        scale: code!(ScaleMode, value, "scale"),
        flags: number(value, "flags"),
        reserved: 0,
    }
}

fn spec(value: &Value) -> PageLayoutSpec {
    PageLayoutSpec {
        page_tokens: number(value, "page_tokens"),
        layers: number(value, "layers"),
        kv_heads: number(value, "kv_heads"),
        k_dim: number(value, "k_dim"),
        v_dim: number(value, "v_dim"),
        rope_dim: number(value, "rope_dim"),
        rope: code!(RopeState, value, "rope"),
        flags: number(value, "flags"),
        k: format(value.get("k")),
        v: format(value.get("v")),
        rope_part: format(value.get("rope_part")),
        ..PageLayoutSpec::default()
    }
}

fn tensor(value: &Value) -> Tensor {
    match value.as_str() {
        Some("k") => Tensor::K,
        Some("v") => Tensor::V,
        Some("rope") => Tensor::Rope,
        _ => panic!("{value}: no part"),
    }
}

fn numbers(values: &[Value]) -> Vec<u64> {
    values.iter().map(|value| value.as_u64().unwrap()).collect()
}

#[test]
fn layouts_are_those_of_the_vectors() {
    let vectors: Value = serde_json::from_str(include_str!("../vectors/layout.json")).unwrap();
    let in_c = include_str!("../c/pages.c");
    for vector in vectors["layouts"].as_array().unwrap() {
        let name = vector["name"].as_str().unwrap();
        let layout = PageLayout::new(&spec(&vector["spec"])).unwrap();
        let id = vector["id"].as_str().unwrap();
        assert_eq!(std::format!("{:016x}", layout.id), id, "{name}");
        assert!(in_c.contains(&std::format!("0x{id}ull")), "{name}: pages.c has another id");
        assert_eq!((Some(layout.page_bytes), Some(layout.layer_bytes)), {
            (vector["page_bytes"].as_u64(), vector["layer_bytes"].as_u64())
        });
        let expected = vector["sections"].as_array().unwrap();
        let sections: Vec<_> = layout.sections().filter(|section| section.layer == 0).collect();
        assert_eq!(sections.len(), expected.len(), "{name}");
        for (section, expected) in sections.iter().zip(expected) {
            let kind = match expected[1].as_str() {
                Some("codes") => SectionKind::Codes,
                Some("scales") => SectionKind::Scales,
                _ => SectionKind::Zeros,
            };
            assert_eq!((section.tensor, section.kind), (tensor(&expected[0]), kind), "{name}");
            assert_eq!([section.offset, section.bytes], *numbers(&expected.as_array().unwrap()[2..]), "{name}");
        }
        for element in vector["elements"].as_array().unwrap() {
            let layer = u32::try_from(element[0].as_u64().unwrap()).unwrap();
            let rest = numbers(&element.as_array().unwrap()[2..]);
            let small = |n: usize| u32::try_from(rest[n]).unwrap();
            let at = layout.element(layer, tensor(&element[1]), small(0), small(1), small(2)).unwrap();
            assert_eq!([at.byte, at.bit.into(), at.scale, at.zero], rest[3..], "{name} {element}");
        }
    }
}
