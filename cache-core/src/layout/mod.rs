//! Page layout: what each byte of a page of keys and values means.
//!
//! The core hands out page ids and never touches a page. This module says how the bytes of one are arranged, so that
//! engines, kernels and tools in any language agree: a [`PageLayoutSpec`] states what is wanted, [`PageLayout::new`]
//! refuses what would be unsound and works out every offset, and the result is one plain struct.
//!
//! # One page
//! A page holds P tokens of *all layers* of its group, layers outermost, so that a copy, a transfer or an eviction is one
//! run of bytes. An engine with one tensor per layer makes the layout with `layers = 1` and keeps one base address per
//! layer: the page table stays the same.
//!
//! ```text
//! page    | layer 0 | layer 1 | ...                             page_bytes = layers * layer_bytes
//! layer   | K codes | K scales | K zeros | V codes | V scales | V zeros |
//! layer   | latent codes | latent scales | latent zeros | rope |            MLA: V is the latent part again
//! codes   [head][block][group] or, tokens outermost, [block][head][group]
//! ```
//!
//! Sections begin at multiples of `align`; empty ones take no bytes. A *block* is what is addressed as one: one token where
//! groups lie along channels, G tokens where they lie along tokens. A *group* is what shares a scale: G consecutive codes.
//! So element (token t, channel c) is code `c % G` of group `c / G` of block `t` along channels, and code `t % G` of group
//! `c` of block `t / G` along tokens; one loop decodes both. No group crosses a page, a head or a layer.
//!
//! Kernels that take plain strides find them here: `page_bytes` from page to page, `codes_block` from token to token,
//! `codes_head` from head to head, from a base at page 0 plus the layer plus `codes` of the part.
//!
//! # Identity
//! A page is only ever read under the layout that wrote it. [`PageLayout::id`] is a hash of every field, so equal shapes
//! with another meaning (E4M3FN and E4M3FNUZ, keys before and after RoPE, rotated or not) have different ids: compare ids,
//! not sizes. Put the id into the `format` of the namespace key.
//!
//! All arithmetic is on integers.

mod address;
mod codes;
mod error;
mod format;
mod measure;
mod page;
mod pod;
mod section;
mod sound;
mod spec;

pub use address::{ElementAddress, RowAddress, Tensor};
pub use codes::{Axis, ElementCode, Order, RopeState, Rotation, ScaleMode};
pub use error::LayoutError;
pub use format::TensorFormat;
pub use measure::Ratio;
pub use page::{PageLayout, PartLayout};
pub use section::{Section, SectionKind, Sections};
pub use spec::PageLayoutSpec;
