//! The kernels in portable Rust.
//!
//! Each kernel has a raw form over [`RawPages`] and pointers, which checks all
//! sizes and ids and trusts only the addresses, and a safe form over slices.
//! Later modules use earlier ones only (`element` and `lanes` share one constant).

pub(crate) mod element;
mod exp;
mod isa;

mod mask;
mod pages;
// Uses both.
mod table;

mod append;
mod copy;
mod gather;
mod moves;

mod lanes;
mod query;
mod softmax;
// Uses the three.
mod tile;

mod attention;
mod contiguous;

// Rows with holes.
mod slots;
// What an engine learns about them.
mod scores;
// Both in one pass.
mod slot_attention;
// The same from keys alone.
mod bounds;
mod keys;

mod safe;
mod safe_slots;

pub use append::append_raw;
pub use attention::attention_raw;
pub use contiguous::{RawContiguous, attention_contiguous_raw};
pub use copy::{PageCopy, copy_pages_raw};
pub use element::{Dtype, convert_from_f32_raw, convert_to_f32_raw};
pub(crate) use element::{check_array, with_element};
pub use gather::{gather_raw, scatter_raw};
pub use isa::Isa;
pub(crate) use isa::per_isa;
pub(crate) use lanes::{LANES, Rows};
pub(crate) use mask::Mask;
pub use moves::{RowMove, move_rows_raw};
pub use pages::{Geometry, MAX_HEAD_DIM, MAX_HEADS, RawPages, Strides};
pub(crate) use pages::{page_id, slot_place};
pub(crate) use table::{Row, Run};
pub(crate) use tile::{Chunk, Heads, Source};

pub use bounds::{RawBounds, key_extremes_raw, page_bounds_raw};
pub use keys::{RawKeys, keys_raw};
pub use scores::{RawScores, Reduce};
pub use slot_attention::{attention_slots_raw, attention_slots_scratch};
pub use slots::RawSlots;

pub use query::{AttentionParams, RawQueries, RawWork, attention_scratch};
pub use safe::{
    Contiguous, Pages, PagesMut, Queries, append, attention, attention_contiguous, copy_pages, gather, scatter,
};
pub use safe_slots::{Keys, Scores, Slots, attention_slots, key_extremes, keys, move_rows, page_bounds};
pub use table::{RawTable, Table};
