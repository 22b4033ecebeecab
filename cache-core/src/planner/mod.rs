//! Memory planner: how many bytes tokens, sequences and pools take, before anything is allocated.
//!
//! A model is a list of [`GroupMemory`]: layers with one page layout that keep the same tokens. Layers with other formats, or
//! with a window, are another group. Everything is a whole number of bytes in 64 bits; what does not fit is an error.
//!
//! Two numbers are told for a sequence, and they differ on purpose:
//! - *row bytes* are those of the tokens that it keeps: what a formula on paper gives;
//! - *page bytes* are those of the pages that it holds at most while it grows: what must be there.
//!
//! ```text
//! full      tokens  [#################]         rows = T                 pages = ceil(T / P)
//! window    tokens  [##]......[#######]         rows = s + w + chunk - 1
//! residual  tokens  [qqqqqqqqqqqq][###]         pages of two pools: sealed (quantised) and open (exact)
//! ```
//!
//! A pool takes [`pool_bytes`], from the first byte of page 1 to the last byte of its last page, metadata of the format
//! included. Page 0 is never written: an engine whose base address is that of page 0 need not have memory there.

mod error;
mod fit;
mod group;
mod residual;

pub use error::PlannerError;
pub use fit::{Fit, SequenceMemory, fit, pages_in, pool_bytes, row_bytes_of, sequence_memory, table_bytes};
pub use group::{GroupMemory, PageCount};
pub use residual::{Residual, Split};
