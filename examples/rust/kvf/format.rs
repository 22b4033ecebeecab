//! Formats as words: `f16`, `int4:g32`, `int2:channel:g32`, `fp8:token:g128`, `kivi2`.

use kvfolio::layout::{Axis, ElementCode, ScaleMode, TensorFormat};

use crate::catalog::unknown;

pub(crate) const HELP: &str = "\
a name, then options behind colons:
  f32 f16 bf16 q8_0 q4_0 nvfp4 mxfp4
  int8 int4 int2 int8s   :g16 to :g128 (without: the whole row), :channel for groups of tokens
  fp8 e4m3fnuz e5m2      :tensor (default), :head or :token, with :gN for groups of a row; :pow2
  kivi4 kivi2            keys int4 or int2:channel:g32, values :g32, recent tokens exact";

/// Formats of K and V.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) k: TensorFormat,
    pub(crate) v: TensorFormat,
    /// Whether recent tokens stay exact.
    pub(crate) residual: bool,
}

/// Reads the format of a page.
pub(crate) fn pair(text: &str) -> Result<Pair, String> {
    let element = match text {
        "kivi2" => ElementCode::INT2,
        "kivi4" => ElementCode::INT4,
        _ => {
            let format = tensor(text)?;
            return Ok(Pair { k: format, v: format, residual: false });
        }
    };
    let (k, v) = (TensorFormat::per_channel(element, 32), TensorFormat::per_token(element, 32));
    Ok(Pair { k, v, residual: true })
}

/// Reads the format of K or V.
pub(crate) fn tensor(text: &str) -> Result<TensorFormat, String> {
    let mut words = text.split(':');
    let name = words.next().unwrap_or("");
    let name = if name == "fp8" { "e4m3fn" } else { name };
    let element = ElementCode::ALL.iter().find(|element| element.name() == name).ok_or_else(|| {
        let known = ElementCode::ALL.iter().map(|element| element.name()).chain(["fp8", "kivi4", "kivi2"]);
        unknown("format", name, known.collect())
    })?;
    let integer =
        matches!(*element, ElementCode::INT8 | ElementCode::INT4 | ElementCode::INT2 | ElementCode::INT8_SYMMETRIC);
    let fp8 = matches!(*element, ElementCode::FP8_E4M3FN | ElementCode::FP8_E4M3FNUZ | ElementCode::FP8_E5M2);
    let mut format = match (integer, fp8) {
        (true, _) => TensorFormat::per_token(*element, 0),
        (_, true) => TensorFormat::fp8(*element, ScaleMode::TENSOR),
        _ => TensorFormat::of(*element),
    };
    for word in words {
        match word {
            "channel" => format.axis = Axis::CHANNEL,
            "tensor" => format.scale = ScaleMode::TENSOR,
            "head" => format.scale = ScaleMode::HEAD,
            "token" if fp8 => format.scale = ScaleMode::TOKEN_HEAD,
            "token" => format.axis = Axis::TOKEN,
            "pow2" => format.flags |= TensorFormat::POWER_OF_TWO,
            _ => {
                let size = word.strip_prefix('g').and_then(|digits| digits.parse().ok());
                let options = vec!["g16 to g128", "channel", "token", "head", "tensor", "pow2"];
                format.group = size.ok_or_else(|| unknown("option", word, options))?;
            }
        }
    }
    Ok(format)
}

/// The words for a format of a layout.
pub(crate) fn words(format: &TensorFormat) -> String {
    let mut text = format.element.name().to_owned();
    if format.axis == Axis::CHANNEL || format.scale.get() != 0 {
        let option = if format.scale.get() != 0 { format.scale.name() } else { format.axis.name() };
        text.push_str(&format!(":{option}"));
    }
    let has_own =
        matches!(format.element, ElementCode::Q8_0 | ElementCode::Q4_0 | ElementCode::NVFP4 | ElementCode::MXFP4);
    if format.group != 0 && !has_own {
        text.push_str(&format!(":g{}", format.group));
    }
    text
}

/// Reads a number of bytes: `123`, `16GiB`, `13.5GB`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        other => return Err(unknown("unit", other, vec!["KB", "MB", "GB", "KiB", "MiB", "GiB"])),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let scale = 10_u64.checked_pow(u32::try_from(part.len()).unwrap_or(u32::MAX));
    let digits = format!("{whole}{part}").parse::<u128>().ok();
    let value = digits.zip(scale).map(|(digits, scale)| digits * u128::from(factor) / u128::from(scale));
    value.and_then(|value| u64::try_from(value).ok()).ok_or_else(|| format!("\"{text}\" is no number of bytes"))
}
