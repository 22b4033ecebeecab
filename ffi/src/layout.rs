//! Layout of the header's structs: what C programs, other languages and the core rely on, asserted.

use core::mem::offset_of;

use kvfolio::layout::{
    Axis, ElementCode, Order, PageLayout, PageLayoutSpec, PartLayout, RopeState, Rotation, RowAddress, ScaleMode,
    Tensor, TensorFormat,
};
use kvfolio::{
    CloseMode, Direction, EventKind, GroupNeed, IndexKind, MediaSpan, Move, PageState, Policy, PublishMode, Resource,
    RowDelta, RowQuery, WindowKeep,
};

use crate::eviction::*;
use crate::formats::*;
use crate::io::{KVF_IO_LOAD, KVF_IO_STORE};
use crate::ptr::Versioned;
use crate::retain::{KVF_MOVE_COLD, KVF_MOVE_HOT};
use crate::types::*;

/// Asserts that a record is the core's type bit for bit, so that buffers of it can be lent to the core.
macro_rules! same_layout {
    ($($name:ident = $core:ident { $($field:ident = $core_field:ident),* };)*) => {$(
        const _: () = {
            assert!(size_of::<$name>() == size_of::<$core>() && align_of::<$name>() == align_of::<$core>());
            $(assert!(offset_of!($name, $field) == offset_of!($core, $core_field));)*
        };
    )*};
}

/// Marks structs as such and asserts their layout: size, and offsets of all fields, where pointers have 64 bits. One that
/// `= T` follows has the fields of the core's T, by the same names.
macro_rules! layout {
    ($($name:ident $(= $core:ident)? $required:ident $size:literal { $($field:ident $offset:literal),* };)*) => {$(
        // SAFETY: repr(C), begins with struct_size, and has only numbers and raw pointers.
        unsafe impl Versioned for $name {
            const REQUIRED: usize = offset_of!($name, $required);
        }
        layout!(@ $name $(= $core)? $size { struct_size 0, $($field $offset),* });
    )*};
    (@ $name:ident = $core:ident $size:literal { $($field:ident $offset:literal),* }) => {
        layout!(@ $name $size { $($field $offset),* });
        same_layout! { $name = $core { $($field = $field),* }; }
    };
    (@ $name:ident $size:literal { $($field:ident $offset:literal),* }) => {
        #[cfg(target_pointer_width = "64")]
        const _: () = {
            assert!(size_of::<$name>() == $size);
            $(assert!(offset_of!($name, $field) == $offset);)*
        };
    };
}

layout! {
    kvf_pool_config policy 12 { pages 4, policy 8 };
    kvf_group_config sealed_pool 40 {
        kind 4, page_tokens 8, pool 12, sealed_pool 16, window 20, sinks 24, window_keep 28, flags 32, ring_tokens 36
    };
    kvf_config tickets 112 {
        abi_version 4, pools 8, groups 16, n_pools 24, n_groups 28, sequences 32, tickets 36, transfers 40, namespaces 44,
        table_chunks 48, plan_sequences 52, plan_tokens 56, plan_copies 60, key_parts 64, events 68, leases 72, quotas 76,
        classes 80, index 84, index_nodes 88, publish 92, flags 96, reserved 100, seed 104
    };
    kvf_namespace_key tenant 72 { reserved 4, tenant 8, model 40, adapter 48, adapter_generation 56, format 64 };
    kvf_shortage group 32 { resource 4, group 8, need 12, have 16, reclaimable 20, pending 24, most 28 };
    kvf_open_params eviction_class 40 { eviction_class 4, ns 8, user 16, spans 24, n_spans 32, reserved 36 };
    kvf_seq_info written 48 {
        published 4, verified 8, len 12, written 16, known 20, ns 24, version 32, user 40
    };
    kvf_prompt spans 40 { n_tokens 4, tokens 8, spans 16, n_spans 24, reserved 28, ns 32 };
    kvf_plan_report scrubs 24 { sequences 4, tokens 8, copies 12, scrubs 16, evicted 20 };
    kvf_delta_report reserved 24 { rows 4, entries 8, reserved 12, version 16 };
    kvf_ring_report end 16 { sinks 4, first 8, end 12 };
    kvf_stats tickets 120 {
        sequences 4, tickets 8, transfers 12, free_chunks 16, free_key_parts 20, indexed_pages 24, reserved 28, events 32,
        waiting_events 40, queried_tokens 48, hit_tokens 56, committed_tokens 64, published_pages 72, duplicate_pages 80,
        evicted_pages 88, copied_pages 96, plans 104, tick 112
    };
    kvf_pool_stats pending 32 { pages 4, used 8, cached 12, free_pages 16, pending 20, peak_used 24, utilisation 28 };
    kvf_page_info indexed 16 { state 4, indexed 8, refs 12 };
    kvf_violation index 12 { rule 4, index 8 };
    kvf_page_layout_spec v 144 {
        page_tokens 4, layers 8, kv_heads 12, k_dim 16, v_dim 20, rope_dim 24, align 28, order 32, rope 36, rotation 40,
        rotation_size 44, rotation_parts 48, flags 52, rotation_seed 56, generation 64, k 72, v 96, rope_part 120
    };
    kvf_page_layout = PageLayout rope_part 496 {
        version 4, id 8, page_bytes 16, layer_bytes 24, generation 32, rotation_seed 40, page_tokens 48, layers 52,
        kv_heads 56, align 60, order 64, rope 68, rotation 72, rotation_size 76, rotation_parts 80, flags 84, k 88,
        v 224, rope_part 360
    };
    kvf_layout_sizes static_scale_bytes 56 {
        lossy 4, page_bytes 8, padding_bytes 16, token_bytes 24, token_divisor 32, token_elements 40,
        static_scale_bytes 48
    };
    kvf_memory_group window 48 {
        kind 4, layout 8, exact 16, window 24, sinks 28, chunk 32, ring 36, recent 40, reserved 44
    };
    kvf_memory_report sequences 64 {
        reserved 4, row_bytes 8, page_bytes 16, pages 24, row_pages 32, sequences 40, static_bytes 48, spare_bytes 56
    };
    kvf_stream features 56 {
        page_tokens 4, seen 8, live 12, rows 16, columns 20, channels 24, reserved 28, valid 32, positions 40, features 48
    };
    kvf_compaction freed 20 { rows 4, columns 8, freed 12, first_written 16 };
    kvf_protected n_pins 24 { sinks 4, recent 8, n_pins 12, pins 16 };
    kvf_h2o flags 16 { reduce 4, flags 8, decay 12 };
    kvf_observation lse 32 { kind 4, queries 8, heads 12, values 16, lse 24 };
    kvf_mlp reserved 32 { version 4, features 8, hidden 12, weights 16, n_weights 24, reserved 28 };
    kvf_feature_inputs value_norms 40 { reserved 4, sum 8, last 16, key_norms 24, value_norms 32 };
}
layout!(@ kvf_media_span = MediaSpan 40 { start 0, length 4, digest 8 });
layout!(@ kvf_plan_item 24 { seq 0, tokens 8, count 16, reserved 20 });
layout!(@ kvf_accept 16 { accepted 0, verified 4, tokens 8 });
layout!(@ kvf_group_need = GroupNeed 16 { need 0, have 4, reclaimable 8, pending 12 });
layout!(@ kvf_page_copy 20 { group 0, source 4, target 8, tokens 12, seals 16 });
layout!(@ kvf_page_ref 8 { pool 0, page 4 });
layout!(@ kvf_row_query 16 { seq 0, since 8 });
layout!(@ kvf_row_delta = RowDelta 12 { row 0, start 4, count 8 });
layout!(@ kvf_tensor_format = TensorFormat 24 { element 0, axis 4, group 8, scale 12, flags 16, reserved 20 });
layout!(@ kvf_part_layout = PartLayout 136 {
    format 0, dim 24, block_tokens 28, groups 32, group_bytes 36, scale_bytes 40, zero_bytes 44, static_scales 48,
    flags 52, codes 56, scales 64, zeros 72, codes_bytes 80, scales_bytes 88, zeros_bytes 96, codes_head 104,
    codes_block 112, params_head 120, params_block 128
});
layout!(@ kvf_row_address = RowAddress 24 { codes 0, scales 8, zeros 16 });
layout!(@ kvf_event 40 { number 0, key 8, parent_key 16, page 24, namespace_slot 28, group 32, kind 36 });

same_layout! {
    kvf_row_query = RowQuery { seq = sequence, since = since };
}

layout!(@ kvf_slot_move 12 { from 0, to 4, count 8 });
layout!(@ kvf_pin 8 { start 0, end 4 });

/// Asserts that the constants are the core's numbers.
macro_rules! same_numbers {
    ($($name:ident = $core:path;)*) => { const _: () = { $(assert!($name == $core as u32);)* }; };
}

same_numbers! {
    KVF_POLICY_LRU = Policy::Lru;
    KVF_POLICY_FIFO = Policy::Fifo;
    KVF_POLICY_LFU = Policy::Lfu;
    KVF_WINDOW_CACHED = WindowKeep::Cached;
    KVF_WINDOW_EXACT = WindowKeep::Exact;
    KVF_INDEX_TREE = IndexKind::Tree;
    KVF_INDEX_FLAT = IndexKind::Flat;
    KVF_INDEX_NONE = IndexKind::None;
    KVF_PUBLISH_IMMEDIATE = PublishMode::Immediate;
    KVF_PUBLISH_DEFERRED = PublishMode::Deferred;
    KVF_RESOURCE_PAGES = Resource::Pages;
    KVF_RESOURCE_TABLE_CHUNKS = Resource::TableChunks;
    KVF_RESOURCE_SEQUENCES = Resource::Sequences;
    KVF_RESOURCE_TICKETS = Resource::Tickets;
    KVF_RESOURCE_TRANSFERS = Resource::Transfers;
    KVF_RESOURCE_NAMESPACES = Resource::Namespaces;
    KVF_RESOURCE_PLAN_SEQUENCES = Resource::PlanSequences;
    KVF_RESOURCE_PLAN_TOKENS = Resource::PlanTokens;
    KVF_RESOURCE_PLAN_COPIES = Resource::PlanCopies;
    KVF_RESOURCE_KEY_PARTS = Resource::KeyParts;
    KVF_RESOURCE_LEASES = Resource::Leases;
    KVF_RESOURCE_QUOTAS = Resource::Quotas;
    KVF_RESOURCE_QUOTA = Resource::Quota;
    KVF_CLOSE_KEEP = CloseMode::Keep;
    KVF_CLOSE_DISCARD = CloseMode::Discard;
    KVF_MOVE_COLD = Move::Cold;
    KVF_MOVE_HOT = Move::Hot;
    KVF_IO_STORE = Direction::Store;
    KVF_IO_LOAD = Direction::Load;
    KVF_EVENT_STORED = EventKind::Stored;
    KVF_EVENT_REMOVED = EventKind::Removed;
    KVF_EVENT_CLEARED = EventKind::Cleared;
    KVF_PAGE_FREE = PageState::Free;
    KVF_PAGE_CACHED = PageState::Cached;
    KVF_PAGE_USED = PageState::Used;
    KVF_TENSOR_K = Tensor::K;
    KVF_TENSOR_V = Tensor::V;
    KVF_TENSOR_ROPE = Tensor::Rope;
}

/// The same for constants that are numbers in the core too.
macro_rules! same_codes {
    ($($name:ident = $core:expr;)*) => { const _: () = { $(assert!($name == $core);)* }; };
}

same_codes! {
    KVF_ELEMENT_F32 = ElementCode::F32.get();
    KVF_ELEMENT_F16 = ElementCode::F16.get();
    KVF_ELEMENT_BF16 = ElementCode::BF16.get();
    KVF_ELEMENT_INT8 = ElementCode::INT8.get();
    KVF_ELEMENT_INT4 = ElementCode::INT4.get();
    KVF_ELEMENT_INT2 = ElementCode::INT2.get();
    KVF_ELEMENT_INT8_SYMMETRIC = ElementCode::INT8_SYMMETRIC.get();
    KVF_ELEMENT_FP8_E4M3FN = ElementCode::FP8_E4M3FN.get();
    KVF_ELEMENT_FP8_E4M3FNUZ = ElementCode::FP8_E4M3FNUZ.get();
    KVF_ELEMENT_FP8_E5M2 = ElementCode::FP8_E5M2.get();
    KVF_ELEMENT_Q8_0 = ElementCode::Q8_0.get();
    KVF_ELEMENT_Q4_0 = ElementCode::Q4_0.get();
    KVF_ELEMENT_NVFP4 = ElementCode::NVFP4.get();
    KVF_ELEMENT_MXFP4 = ElementCode::MXFP4.get();
    KVF_AXIS_NONE = Axis::NONE.get();
    KVF_AXIS_TOKEN = Axis::TOKEN.get();
    KVF_AXIS_CHANNEL = Axis::CHANNEL.get();
    KVF_SCALE_NONE = ScaleMode::NONE.get();
    KVF_SCALE_TENSOR = ScaleMode::TENSOR.get();
    KVF_SCALE_HEAD = ScaleMode::HEAD.get();
    KVF_SCALE_TOKEN_HEAD = ScaleMode::TOKEN_HEAD.get();
    KVF_ORDER_HEADS = Order::HEADS.get();
    KVF_ORDER_TOKENS = Order::TOKENS.get();
    KVF_ROPE_NONE = RopeState::NONE.get();
    KVF_ROPE_PRE = RopeState::PRE.get();
    KVF_ROPE_POST = RopeState::POST.get();
    KVF_ROTATION_NONE = Rotation::NONE.get();
    KVF_ROTATION_HADAMARD = Rotation::HADAMARD.get();
    KVF_FORMAT_POWER_OF_TWO = TensorFormat::POWER_OF_TWO;
    KVF_FORMAT_DYNAMIC = TensorFormat::DYNAMIC;
    KVF_ROTATE_K = PageLayoutSpec::ROTATE_K;
    KVF_ROTATE_V = PageLayoutSpec::ROTATE_V;
    KVF_LAYOUT_MLA = PageLayoutSpec::MLA;
    KVF_LAYOUT_REROTATED = PageLayoutSpec::REROTATED;
    KVF_LAYOUT_LOSSY = PageLayout::LOSSY;
    KVF_PART_ALIAS = PartLayout::ALIAS;
}

/// What a library without token eviction has no core for.
#[cfg(feature = "evict")]
mod evict {
    use core::mem::offset_of;

    use kvfolio::evict::{EvictError, FEATURES, Mlp, Pin, Placement, Pool, PositionMode, Reduce, Removal, SlotMove};

    use crate::compaction::*;
    use crate::eviction::*;
    use crate::scores::*;
    use crate::stream::*;

    same_layout! {
        kvf_slot_move = SlotMove { from = from, to = to, count = count };
        kvf_pin = Pin { start = start, end = end };
    }
    same_numbers! {
        KVF_PLACE_BEHIND = Placement::Behind;
        KVF_PLACE_REUSE = Placement::Reuse;
        KVF_POSITION_ABSOLUTE = PositionMode::Absolute;
        KVF_POSITION_RANK = PositionMode::CacheRelative;
        KVF_REMOVE_HOLE = Removal::Hole;
        KVF_REMOVE_REPLACE = Removal::Replace;
        KVF_REMOVE_COMPACT = Removal::Compact;
        KVF_REDUCE_MEAN = Reduce::Mean;
        KVF_REDUCE_MAX = Reduce::Max;
        KVF_REDUCE_SUM = Reduce::Sum;
        KVF_SMOOTH_AVERAGE = Pool::Average;
        KVF_SMOOTH_MAX = Pool::Max;
    }
    same_codes! {
        KVF_FEATURES = FEATURES;
        KVF_MLP_VERSION = Mlp::VERSION;
        KVF_EVICT_SHAPE = EvictError::Shape.number();
        KVF_EVICT_STREAM = EvictError::Stream.number();
        KVF_EVICT_FULL = EvictError::Full.number();
        KVF_EVICT_POSITION = EvictError::Position.number();
        KVF_EVICT_RECENT = EvictError::Recent.number();
        KVF_EVICT_PINS = EvictError::Pins.number();
        KVF_EVICT_BUDGET = EvictError::Budget { protected: 0 }.number();
        KVF_EVICT_OBSERVATION = EvictError::Observation.number();
        KVF_EVICT_PARAMETER = EvictError::Parameter.number();
        KVF_EVICT_GROUP_OF_TOKENS = EvictError::GroupOfTokens.number();
        KVF_EVICT_KEYS = EvictError::Keys.number();
        KVF_EVICT_LAYOUT = EvictError::Layout.number();
    }
}
