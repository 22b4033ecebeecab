//! `../vectors/quant.json`, which other languages read as well.

use kvfolio::quant::*;
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../vectors/quant.json")).expect("JSON")
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("no list {name}"))
}

fn numbers(value: &Value, name: &str) -> Vec<f32> {
    list(value, name).iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

fn codes(value: &Value) -> Vec<u8> {
    list(value, "codes").iter().map(|x| x.as_u64().unwrap() as u8).collect()
}

fn bytes(value: &Value) -> Vec<u8> {
    let hex = value["bytes"].as_str().unwrap();
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

fn hex(value: &Value, name: &str) -> u16 {
    u16::from_str_radix(value[name].as_str().unwrap(), 16).unwrap()
}

fn bits(value: &Value) -> IntBits {
    [IntBits::B8, IntBits::B4, IntBits::B2].into_iter().find(|&b| b as u64 == value["bits"].as_u64().unwrap()).unwrap()
}

#[test]
fn int() {
    for vector in list(&vectors(), "int") {
        let x = numbers(vector, "x");
        let format = IntFormat::new(bits(vector), x.len() as u32, x.len() as u32).unwrap();
        let (mut packed, mut scales, mut zeros) = (vec![0; format.bits().bytes(x.len())], [0], [0]);
        let into = int::GroupsMut { codes: &mut packed, scales: &mut scales, zeros: &mut zeros };
        assert!(int::encode(format, &x, NonFinite::Reject, into).unwrap().is_clean());
        let mut unpacked = vec![0; x.len()];
        pack::unpack(format.bits(), &packed, &mut unpacked).unwrap();
        assert_eq!((zeros[0], scales[0]), (hex(vector, "zero"), hex(vector, "scale")), "{vector}");
        assert_eq!(unpacked, codes(vector), "{vector}");
    }
}

#[test]
fn packing() {
    for vector in list(&vectors(), "pack") {
        let (codes, want) = (codes(vector), bytes(vector));
        let (mut packed, mut unpacked) = (vec![0xaa; want.len()], vec![0xaa; codes.len()]);
        pack::pack(bits(vector), &codes, &mut packed).unwrap();
        pack::unpack(bits(vector), &packed, &mut unpacked).unwrap();
        assert_eq!((packed, unpacked), (want, codes));
    }
}

#[test]
fn fp8_codes() {
    for vector in list(&vectors(), "fp8") {
        let kind = match vector["kind"].as_str().unwrap() {
            "e4m3fn" => Fp8Kind::E4m3Fn,
            "e5m2" => Fp8Kind::E5m2,
            _ => Fp8Kind::E4m3Fnuz,
        };
        let x = match &vector["x"] {
            Value::String(name) if name == "nan" => f32::from_bits(0x7fc0_0000),
            Value::String(name) if name == "-nan" => f32::from_bits(0xffc0_0000),
            Value::String(name) => name.parse().unwrap(),
            number => number.as_f64().unwrap() as f32,
        };
        assert_eq!(u16::from(kind.encode(x)), hex(vector, "code"), "{vector}");
    }
}

#[test]
fn rotation() {
    for vector in list(&vectors(), "hadamard") {
        let mut x = numbers(vector, "x");
        let dim = x.len() as u32;
        Rotation::of(dim, 256).unwrap().apply(&mut x, dim as usize, 0, 0).unwrap();
        let norm = (1.0 / f64::from(dim).sqrt()) as f32;
        let want: Vec<f32> = numbers(vector, "times_root").iter().map(|x| x * norm).collect();
        assert_eq!(x, want);
    }
}

/// With layer and head 0 the signs are those of the generator from the seed.
#[test]
fn signs() {
    let words: Vec<u64> = list(&vectors(), "splitmix64_seed_0")
        .iter()
        .map(|word| u64::from_str_radix(word.as_str().unwrap(), 16).unwrap())
        .collect();
    // Blocks of 1: nothing but the signs.
    let mut x = [1.0_f32; 192];
    Rotation::of(192, 1).unwrap().with_signs(0).apply(&mut x, 192, 0, 0).unwrap();
    for (i, x) in x.iter().enumerate() {
        assert_eq!(x.is_sign_negative(), words[i / 64] >> (i % 64) & 1 == 1, "{i}");
    }
}

#[test]
fn q4_0() {
    for vector in list(&vectors(), "q4_0") {
        let mut got = [0; ggml::Q4_0_BYTES];
        assert!(ggml::q4_0_encode(&numbers(vector, "x"), NonFinite::Reject, &mut got).unwrap().is_clean());
        assert_eq!(got[..], bytes(vector));
    }
}

/// The order of nibbles alone: byte j holds j and j + half.
#[test]
fn split_half() {
    let vector = &vectors()["split_half"];
    let codes = codes(vector);
    for (j, byte) in bytes(vector).into_iter().enumerate() {
        assert_eq!((byte & 15, byte >> 4), (codes[j], codes[j + 8]));
    }
    // q4_0 is packed so: an element of the second half is in a high nibble.
    let mut x = [0.0; 32];
    (x[0], x[16]) = (-8.0, 3.0);
    let mut block = [0; ggml::Q4_0_BYTES];
    assert!(ggml::q4_0_encode(&x, NonFinite::Reject, &mut block).unwrap().is_clean());
    assert_eq!(block[2], 11 << 4);
}

#[test]
fn q8_0() {
    for vector in list(&vectors(), "q8_0") {
        let mut got = [0; ggml::Q8_0_BYTES];
        assert!(ggml::q8_0_encode(&numbers(vector, "x"), NonFinite::Reject, &mut got).unwrap().is_clean());
        assert_eq!(got[..], bytes(vector));
    }
}

#[test]
fn mxfp4() {
    for vector in list(&vectors(), "mxfp4") {
        let (mut codes, mut scales) = ([0; 16], [0]);
        let report = fp4::mxfp4_encode(&numbers(vector, "x"), NonFinite::Reject, &mut codes, &mut scales);
        assert!(report.unwrap().is_clean());
        assert_eq!(u64::from(scales[0]), vector["scale"].as_u64().unwrap());
        assert_eq!(codes[..], bytes(vector));
    }
}
