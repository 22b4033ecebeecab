//! Numbers and tables for people.

/// 1234567 as "1,234,567".
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes, exactly and, where there are many, in binary units.
pub(crate) fn bytes(number: u64) -> String {
    let unit = match number {
        0..=0xf_ffff => return format!("{} B", grouped(number)),
        0x10_0000..=0x3fff_ffff => (20, "MiB"),
        _ => (30, "GiB"),
    };
    format!("{} B ({:.2} {})", grouped(number), number as f64 / (1_u64 << unit.0) as f64, unit.1)
}

/// How many times one number is another.
pub(crate) fn ratio(a: u64, b: u64) -> String {
    format!("{:.3}x", a as f64 / b.max(1) as f64)
}

/// Names and values, one line each, with the values in one column.
pub(crate) fn table(lines: &[(String, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 2;
    lines.iter().map(|(name, value)| format!("{name:<width$}{value}\n")).collect()
}
