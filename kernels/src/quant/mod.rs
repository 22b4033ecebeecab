//! The kernels over quantised pages, whose bytes a [`PageLayout`](kvfolio::layout::PageLayout) describes.
//!
//! Invariant: attention reads exactly the values that the codec decodes, in the order of the exact kernels. So its result
//! is bit for bit that of [`attention`](crate::cpu::attention_raw) over the decoded values.
//!
//! A row of a table may span two pools: columns from `begin` to `end` of its [`RawSplit`] are pages of the quantised pool,
//! all others of the exact one.
//!
//! ```text
//!   columns   0 .. begin       begin .. end      end ..
//!             exact (sinks)    quantised         exact (recent tokens)
//! ```

mod kind;
mod part;

#[cfg(target_arch = "x86_64")]
mod avx2;
// Chooses between those and the codecs.
mod rows;

mod plain;

mod view;

mod append;
mod attention;
mod moves;
mod read;
mod seal;

pub use append::append_quant_raw;
pub use attention::{RawSplit, attention_quant_raw, attention_quant_scratch};
pub use moves::move_quant_rows_raw;
pub use plain::{RawRows, RowReport, decode_rows_raw, encode_rows_raw};
pub use read::{copy_quant_raw, gather_quant_raw};
pub use seal::{Seal, seal_raw};
pub use view::{RawQuant, encode_scratch};
