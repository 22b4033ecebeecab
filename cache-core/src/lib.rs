//! KV-cache manager for LLM inference: page allocation, prefix sharing and page tables, as a part that an engine embeds.
//!
//! # What it does
//! An engine keeps keys and values of tokens in pages of device memory. This crate decides which pages: it finds how much of
//! a prompt is cached already ([`Cache::match_prefix`]), gives sequences the pages for what they are about to compute
//! ([`Cache::plan_add`]), says what to copy first and where each token goes ([`Cache::copies`],
//! [`Cache::export_slots`], [`Cache::export_dense`]), and publishes finished pages so that later prompts find them. The cache
//! never touches a key or a value.
//!
//! # The layers, in the order of the data path
//! - [`config`](Config): what is fixed at init. Every array length follows from it.
//! - `index`: the token tree; tokens in, nodes out. It knows no sequence.
//! - `pages`: states, references, eviction order of pages. It knows no token.
//! - `table`: rows of page ids. It knows neither.
//! - `sequence`: what a sequence, ticket or transfer keeps alive, and its cursors.
//! - `plan`: one step of the engine over many sequences, all or nothing.
//! - `export`: tables, slots and deltas, written into the caller's buffers.
//! - [`Cache`]: wires these together; each operation is one file.
//!
//! Beside the data path, and linked only where they are used:
//! - [`layout`]: what each byte of a page means. It knows no page by number.
//! - [`planner`]: how many bytes tokens, sequences and pools take.
//! - `evict` (feature `evict`): which tokens stay where there is no room for all. It knows slots and scores, and no cache.
//! - `quant` (features `quant` and `quant-int`): codecs for keys and values, pure functions over the caller's slices.
//!
//! # Rules
//! - No heap, no clock, no lock, no callback, no float but in `quant` and `evict`, no global. Memory is lent
//!   ([`CacheStorage`]), time is an argument.
//! - A call that fails changes nothing; [`Cache::digest`] shows it. Commit cannot fail.
//! - The same calls give the same ids, plans, events and digest on every target.
//! - A hit is confirmed by comparing tokens. A hash may propose a page, never decide.
//!
//! # Example
//! ```
//! use kvfolio::{Accept, Cache, Config, GroupConfig, OpenParams, PoolConfig, Prompt, StorageCounts};
//!
//! # #[cfg(feature = "alloc")] {
//! let pools = [PoolConfig { pages: 64, ..PoolConfig::default() }];
//! let groups = [GroupConfig { page_tokens: 4, ..GroupConfig::FULL }];
//! let config = Config { pools: &pools, groups: &groups, sequences: 8, tickets: 8, ..Config::new() };
//! let mut storage = kvfolio::OwnedStorage::new(&config)?;
//! let mut cache = Cache::new(&config, storage.lend())?;
//!
//! let prompt = [7, 8, 9, 10, 11, 12];
//! let first = cache.open(&OpenParams::default())?;
//! cache.plan_begin(1)?;
//! cache.plan_add(first, 6, Some(&prompt))?;
//! cache.plan_finish()?;
//! let (mut slots, mut positions) = ([0; 6], [0; 6]);
//! cache.export_slots(kvfolio::GroupId::new(0), &mut slots, &mut positions)?;
//! assert_eq!(slots, [4, 5, 6, 7, 8, 9]); // pages 1 and 2
//! // ... the engine computes, writes keys and values to these slots ...
//! cache.plan_commit(&[Accept::all(6)])?;
//!
//! // Another request with the same beginning finds the first full page.
//! let request = Prompt { tokens: &prompt, ..Prompt::default() };
//! let (ticket, hit) = cache.match_prefix(&request, 5, None)?;
//! assert_eq!(hit.tokens, 4);
//! let second = cache.open_ticket(ticket, &OpenParams::default())?;
//! # let _ = second;
//! # }
//! # Ok::<(), kvfolio::Error>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::arithmetic_side_effects))]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(not(feature = "index"))]
mod absent;
mod cache;
mod check;
mod config;
mod digest;
mod error;
mod events;
#[cfg(feature = "evict")]
pub mod evict;
mod export;
mod fork;
mod group;
mod ids;
mod index;
mod keychain;
mod keys;
pub mod layout;
mod limits;
mod matching;
mod mem;
mod namespace;
mod pages;
mod plan;
pub mod planner;
mod publish;
#[cfg(feature = "quant-int")]
pub mod quant;
mod quota;
#[doc(hidden)]
pub mod records;
mod release;
mod remove;
mod retain;
mod seal_schedule;
mod sequence;
#[cfg(feature = "spin")]
mod shared;
mod stats;
mod storage;
mod table;
mod transfer;
mod unindex;
mod width;

pub use cache::Cache;
pub use check::{Rule, Violation};
pub use config::{
    CHUNK_ENTRIES, Config, ConfigError, GroupConfig, GroupKind, IndexKind, MAX_CLASSES, MAX_GROUPS, MAX_HANDLES,
    MAX_PAGES, MAX_POOLS, Policy, PoolConfig, PublishMode, WindowKeep,
};
pub use error::{Error, Outcome, Resource, Shortage};
pub use events::{Event, EventKind};
pub use export::{CsrReport, DeltaReport, RingReport, RowDelta, RowQuery};
pub use ids::{GroupId, LeaseId, NamespaceId, PageId, PoolId, SequenceId, Tick, TicketId, TokenId, TransferId};
pub use index::MediaSpan;
pub use keychain::KeyChain;
#[cfg(feature = "sha256")]
pub use keychain::Sha256KeyChain;
pub use matching::{Hit, OpenParams, Prompt};
pub use namespace::NamespaceKey;
pub use plan::{Accept, GroupNeed, PageCopy, PlanReport};
pub use release::CloseMode;
pub use retain::Move;
pub use seal_schedule::SealSchedule;
#[cfg(feature = "spin")]
pub use shared::Shared;
pub use stats::{Counters, PageInfo, PageState, PoolStats, SequenceInfo, Stats};
#[cfg(feature = "alloc")]
pub use storage::OwnedStorage;
pub use storage::{CacheStorage, StorageCounts};
pub use table::SealedColumns;
pub use transfer::{Direction, Source};
