//! What the heads of a model paid attention to over a text, as `kvf-evict --record` writes it.
//!
//! Little endian: `KVFATTN1`, then u32 layers, KV heads, query heads of each, tokens T; then for each KV head of each layer, f32
//! lengths of keys `[T]`, of values `[T]`, and for each query t the attention of its heads to tokens `0..=t`, summed, in f16.

use std::fs;
use std::path::Path;

use half::f16;

const MAGIC: &[u8; 8] = b"KVFATTN1";

/// Attention over one text.
pub(super) struct Recording {
    pub(super) layers: usize,
    pub(super) kv_heads: usize,
    /// Query heads of each KV head.
    pub(super) group: usize,
    pub(super) tokens: usize,
    bytes: Vec<u8>,
}

/// One KV head of one layer.
pub(super) struct Head<'a> {
    /// Query heads.
    pub(super) group: usize,
    pub(super) key_norms: Vec<f32>,
    pub(super) value_norms: Vec<f32>,
    rows: &'a [u8],
}

impl Recording {
    const HEADER: usize = MAGIC.len() + 4 * 4;

    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let fault = |text: String| format!("{}: {text}", path.display());
        let bytes = fs::read(path).map_err(|error| fault(error.to_string()))?;
        if !bytes.starts_with(MAGIC) || bytes.len() < Self::HEADER {
            return Err(fault("no recording of attention".to_owned()));
        }
        let word = |at: usize| {
            let at = MAGIC.len() + 4 * at;
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
        };
        let [layers, kv_heads, group, tokens] = [word(0), word(1), word(2), word(3)];
        let in_range = [layers, kv_heads, group].iter().all(|n| (1..=1 << 10).contains(n));
        if !in_range || !(1..=1 << 20).contains(&tokens) {
            return Err(fault(format!("{layers} layers, {kv_heads} heads, {group} query heads, {tokens} tokens")));
        }
        let recording = Self { layers, kv_heads, group, tokens, bytes };
        let wanted = Self::HEADER + recording.layers * recording.kv_heads * recording.bytes_of_head();
        if recording.bytes.len() != wanted {
            return Err(fault(format!("{} bytes, not {wanted}", recording.bytes.len())));
        }
        Ok(recording)
    }

    const fn bytes_of_head(&self) -> usize {
        8 * self.tokens + self.tokens * (self.tokens + 1)
    }

    pub(super) fn head(&self, layer: usize, head: usize) -> Head<'_> {
        let size = self.bytes_of_head();
        let bytes = &self.bytes[Self::HEADER + (layer * self.kv_heads + head) * size..][..size];
        let (norms, rows) = bytes.split_at(8 * self.tokens);
        let floats: Vec<f32> = norms.as_chunks().0.iter().map(|&word| f32::from_le_bytes(word)).collect();
        let (key_norms, value_norms) = floats.split_at(self.tokens);
        Head { group: self.group, key_norms: key_norms.to_vec(), value_norms: value_norms.to_vec(), rows }
    }
}

impl Head<'_> {
    /// What query `t` paid attention to: positions `0..=t`.
    pub(super) fn row(&self, t: usize) -> impl Iterator<Item = f32> {
        let row = &self.rows[t * (t + 1)..][..2 * (t + 1)];
        row.as_chunks().0.iter().map(|&word| f16::from_le_bytes(word).to_f32())
    }
}
