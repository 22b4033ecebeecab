//! Numbers on the wire.

/// First byte of a varint escape.
const ESCAPE: u8 = 0xF0;

/// Either direction of the codec.
pub(super) trait Wire {
    /// Passes one number of `0..=max` whose values below `base` (1..=240) take one byte.
    fn num(&mut self, value: u64, base: u8, max: u64) -> u64;

    fn u8(&mut self, value: &mut u8, base: u8) {
        *value = self.num(u64::from(*value), base, u64::from(u8::MAX)) as u8;
    }

    fn u16(&mut self, value: &mut u16, base: u8) {
        *value = self.num(u64::from(*value), base, u64::from(u16::MAX)) as u16;
    }

    fn u32(&mut self, value: &mut u32, base: u8, max: u32) {
        *value = self.num(u64::from(*value), base, u64::from(max)) as u32;
    }

    fn flag(&mut self, value: &mut bool, base: u8) {
        *value = self.num(u64::from(*value), base, 1) == 1;
    }

    /// Passes a list's length and makes it that long.
    fn list<T: Clone>(&mut self, list: &mut Vec<T>, base: u8, max: u64, least: usize, blank: T) {
        let extra = list.len().saturating_sub(least) as u64;
        let len = self.num(extra, base, max) as usize + least;
        list.resize(len, blank);
    }
}

/// Sets fields from bytes.
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) const fn new(bytes: &'b [u8]) -> Self {
        Self { bytes }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((&byte, rest)) => {
                self.bytes = rest;
                byte
            }
            None => 0,
        }
    }
}

impl Wire for Reader<'_> {
    fn num(&mut self, _: u64, base: u8, max: u64) -> u64 {
        let byte = self.byte();
        if byte < ESCAPE {
            return u64::from(byte % base).min(max);
        }
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte();
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value.min(max)
    }
}

/// Collects fields into bytes.
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn new(version: u8) -> Self {
        Self { bytes: vec![version] }
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

impl Wire for Writer {
    fn num(&mut self, value: u64, base: u8, _: u64) -> u64 {
        if value < u64::from(base) {
            self.byte(value as u8);
            return value;
        }
        self.byte(ESCAPE);
        let mut rest = value;
        while rest >= 0x80 {
            self.byte(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.byte(rest as u8);
        value
    }
}
