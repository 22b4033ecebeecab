//! The structs of the header about token eviction.

/// The slots of one row of pages: of a sequence, and of one layer or KV head or all that share a table. Slot s is offset
/// s % P of column s / P. All zero but for arrays and their sizes = nothing there yet. Every call reads the struct, calls that
/// take it without "const" write `seen`, `live` and `rows`, and nothing of it is kept between calls.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_stream {
    /// sizeof(kvf_stream)
    pub struct_size: u32,
    /// P, tokens per page: 1, 2, 4, ... 64.
    pub page_tokens: u32,
    /// Position of the token that comes next. Only append and truncate change it.
    pub seen: u32,
    /// Tokens that are kept.
    pub live: u32,
    /// Slots in use: live ones and holes.
    pub rows: u32,
    /// Columns that the arrays have room for.
    pub columns: u32,
    /// Numbers that each slot has in `features`. 0 = none.
    pub channels: u32,
    /// 0
    pub reserved: u32,
    /// [columns]: bit o of word c says that offset o of column c holds a live token. Bits from `rows` on are 0.
    pub valid: *mut u64,
    /// [columns * P]: position of the token of each slot. Without meaning where none is live.
    pub positions: *mut u32,
    /// [channels][columns * P]: numbers that stay with their tokens when these move, such as scores. Appended tokens begin
    /// with 0.
    pub features: *mut f32,
}

/// `count` rows of bytes move from slot `from` of the row to slot `to`, which is lower. Neither range crosses a page. Record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_slot_move {
    /// First source slot.
    pub from: u32,
    /// First target slot.
    pub to: u32,
    /// Slots.
    pub count: u32,
}

/// What a compaction does.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_compaction {
    /// sizeof(kvf_compaction), set by the caller
    pub struct_size: u32,
    /// Slots in use afterwards.
    pub rows: u32,
    /// Columns in use afterwards.
    pub columns: u32,
    /// Columns, behind those, that are no longer needed.
    pub freed: u32,
    /// First column that is written: copy pages from there to `columns` first where others share them. Equal to `columns`
    /// where nothing moves.
    pub first_written: u32,
}

/// Positions `start` to `end` - 1 that are never evicted. Record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_pin {
    /// The first.
    pub start: u32,
    /// Behind the last.
    pub end: u32,
}

/// What no score can evict.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_protected {
    /// sizeof(kvf_protected)
    pub struct_size: u32,
    /// First positions of the sequence.
    pub sinks: u32,
    /// Newest positions, at least 1.
    pub recent: u32,
    /// Number of pins.
    pub n_pins: u32,
    /// [n_pins]: ranges of positions, not empty, ascending, not overlapping.
    pub pins: *const kvf_pin,
}

/// The mean of the query heads of a KV head.
pub const KVF_REDUCE_MEAN: u32 = 0;
/// The greatest of them.
pub const KVF_REDUCE_MAX: u32 = 1;
/// Their sum.
pub const KVF_REDUCE_SUM: u32 = 2;
/// Flag: a token's own query does not count for it.
pub const KVF_H2O_SKIP_OWN: u32 = 1;
/// Flag: each query is weighed by the tokens that it chose among, and kvf_evict_h2o_order gives the mean over the queries that
/// saw the token: old tokens have no advantage. Without decay only.
pub const KVF_H2O_UNBIASED: u32 = 2;

/// How H2O counts. All zero = as its reference implementation.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_h2o {
    /// sizeof(kvf_h2o)
    pub struct_size: u32,
    /// KVF_REDUCE_*
    pub reduce: u32,
    /// KVF_H2O_SKIP_OWN | KVF_H2O_UNBIASED
    pub flags: u32,
    /// Scores are multiplied by it once per query: above 0, at most 1. 0 = 1, nothing is forgotten.
    pub decay: f32,
}

/// Probabilities: values[queries][heads][rows].
pub const KVF_OBSERVE_PROBABILITIES: u32 = 1;
/// Logits: values[queries][heads][rows], and lse[queries][heads].
pub const KVF_OBSERVE_LOGITS: u32 = 2;
/// Probabilities, reduced over heads and summed over `queries` queries: values[rows].
pub const KVF_OBSERVE_COLUMNS: u32 = 3;
/// Scores of the caller's own: values[rows].
pub const KVF_OBSERVE_SCORES: u32 = 4;

/// What the engine saw of one step's attention. The queries are those of the newest tokens, in order; the last one is that of
/// position seen - 1. What is not live or not visible to a query has probability 0, or a logit of minus infinity.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_observation {
    /// sizeof(kvf_observation)
    pub struct_size: u32,
    /// KVF_OBSERVE_*
    pub kind: u32,
    /// Queries. Unused with scores.
    pub queries: u32,
    /// Query heads of this KV head; of all KV heads where they share a kept set. Unused with columns and scores.
    pub heads: u32,
    /// In slot order.
    pub values: *const f32,
    /// Logits: logarithm of the sum of exponentials that the softmax of a row divides by. Else unused.
    pub lse: *const f32,
}

/// Version of features and weights of the learned policy.
pub const KVF_MLP_VERSION: u32 = 1;
/// Features of a token: ln(1 + age); attention received, summed, and per query that saw the token; attention of the last
/// query; |k|; |v|; rank among live tokens over their number; 1 for position 0, else 0.
pub const KVF_FEATURES: u32 = 8;

/// A small network that scores tokens: w2 . hardswish(W1 x + b1) + b2, where x is (feature - mean) / deviation.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_mlp {
    /// sizeof(kvf_mlp)
    pub struct_size: u32,
    /// KVF_MLP_VERSION
    pub version: u32,
    /// F: KVF_FEATURES
    pub features: u32,
    /// H, hidden units: 1 to 32.
    pub hidden: u32,
    /// means[F], deviations[F], W1[H][F], b1[H], w2[H], b2, one behind the other. Finite; deviations above 0.
    pub weights: *const f32,
    /// Elements of `weights`: 2 F + H (F + 2) + 1.
    pub n_weights: u32,
    /// 0
    pub reserved: u32,
}

/// What features are made of, each [rows].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_feature_inputs {
    /// sizeof(kvf_feature_inputs)
    pub struct_size: u32,
    /// 0
    pub reserved: u32,
    /// Attention received, summed over all queries: scores of H2O.
    pub sum: *const f32,
    /// Attention of the last query: scores of TOVA.
    pub last: *const f32,
    /// Lengths of keys.
    pub key_norms: *const f32,
    /// Lengths of values.
    pub value_norms: *const f32,
}
