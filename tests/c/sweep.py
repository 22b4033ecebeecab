#!/usr/bin/env python3
"""Writes sweep_cases.h: hostile calls of every function in kvfolio.h.

The functions and their parameters are read from the header; ROWS below says what a good call is. Every
parameter is then made wrong in each way that its kind allows, one at a time. A function without a row, or a
row without a function, is an error.

    python3 tests/c/sweep.py include/kvfolio.h > sweep_cases.h
"""
import re
import sys

# What a call of each function needs: the plan's state, and a good value for each parameter that is not a
# buffer or an output. "*" marks a pointer that may be NULL. Values are C expressions over sweep.c's world `w`.
IDLE, BUILDING, FINISHED, SEALING = "IDLE", "BUILDING", "FINISHED", "SEALING"
PLAN_STATE, STALE, ARGUMENT, BUSY = "KVF_ERR_PLAN_STATE", "KVF_ERR_STALE", "KVF_ERR_ARGUMENT", "KVF_ERR_BUSY"
LAYOUT = "KVF_ERR_LAYOUT"
NULL, UNSUPPORTED, ALIGNMENT, SIZE = "KVF_ERR_NULL", "KVF_ERR_UNSUPPORTED", "KVF_ERR_ALIGNMENT", "KVF_ERR_SIZE"

SEQ = {"seq": "w.seq"}
NS = {"ns": "w.ns"}
# function: (state, values, {state: status in that state})
ROWS = {
    "kvf_version": None, "kvf_version_string": None, "kvf_abi_version": None,
    "kvf_status_name": None, "kvf_status_is_capacity": None, "kvf_status_text": None, "kvf_layout_reason_text": None,
    "kvf_config_check": (IDLE, {"cfg": "in", "field": "*out"}, {}),
    "kvf_cache_required_size": (IDLE, {"cfg": "in"}, {}),
    "kvf_cache_init": (IDLE, {"mem": "spare", "len": "spare_bytes", "cfg": "in", "cache": "out"}, {}),
    "kvf_cache_deinit": (IDLE, {}, {}),
    "kvf_cache_advance": (IDLE, {"tick": "10"}, {}),
    "kvf_cache_evict": (IDLE, {"pool": "0", "count": "1"}, {}),
    "kvf_namespace_open": (IDLE, {"key": "in"}, {}),
    "kvf_namespace_close": (IDLE, NS, {}),
    "kvf_namespace_set_quota": (IDLE, NS | {"pool": "0", "pages": "4"}, {}),
    "kvf_namespace_clear": (IDLE, NS, {BUILDING: BUSY, FINISHED: BUSY}),
    "kvf_namespace_clear_all": (IDLE, {}, {BUILDING: BUSY, FINISHED: BUSY}),
    "kvf_seq_open": (IDLE, {"params": "*in"}, {}),
    "kvf_seq_open_ticket": (IDLE, {"ticket": "w.ticket", "params": "*in"}, {}),
    "kvf_seq_close": (IDLE, SEQ | {"mode": "KVF_CLOSE_DISCARD"}, {}),
    "kvf_seq_fork": (IDLE, SEQ | {"at": "3", "children": "out[2]"}, {BUILDING: BUSY, FINISHED: BUSY}),
    "kvf_seq_truncate": (IDLE, SEQ | {"len": "5"}, {BUILDING: BUSY, FINISHED: BUSY}),
    "kvf_seq_remove_pages": (IDLE, SEQ | {"columns": "*in[0]"}, {BUILDING: BUSY, FINISHED: BUSY}),
    "kvf_seq_verify": (IDLE, SEQ | {"upto": "w.len"}, {}),
    "kvf_seq_add_spans": (IDLE, SEQ | {"spans": "in[1]"}, {}),
    "kvf_seq_append": (IDLE, SEQ | {"tokens": "in[2]", "report": "*out"}, {BUILDING: PLAN_STATE, FINISHED: PLAN_STATE}),
    "kvf_seq_append_batch": (IDLE, {"items": "in[1]", "report": "*out"}, {BUILDING: PLAN_STATE, FINISHED: PLAN_STATE}),
    "kvf_seq_info_read": (IDLE, SEQ, {}),
    "kvf_seq_pages": (IDLE, SEQ | {"group": "1"}, {}),
    "kvf_seq_sealed_columns": (SEALING, SEQ | {"group": "0"}, {}),
    "kvf_seq_cache_hit": (IDLE, {"a": "w.seq", "b": "w.other"}, {}),
    "kvf_seq_shared_tokens": (IDLE, {"a": "w.seq", "b": "w.other"}, {}),
    "kvf_prefix_lookup": (IDLE, {"prompt": "in", "limit": "8"}, {}),
    "kvf_prefix_match": (IDLE, {"prompt": "in", "limit": "8", "deadline": "KVF_NO_DEADLINE"}, {}),
    "kvf_prefix_drop": (IDLE, {"ticket": "w.ticket"}, {}),
    "kvf_prefix_publish": (IDLE, {"budget": "1"}, {}),
    "kvf_plan_begin": (IDLE, {"tick": "10"}, {BUILDING: PLAN_STATE, FINISHED: PLAN_STATE}),
    "kvf_plan_add": (BUILDING, {"seq": "w.other", "count": "2", "tokens": "*in[2]"}, {IDLE: PLAN_STATE, FINISHED: PLAN_STATE}),
    "kvf_plan_add_batch": (BUILDING, {"items": "in[1]", "statuses": "out[1]"}, {}),
    "kvf_plan_estimate": (IDLE, SEQ | {"count": "3", "needs": "out[2]"}, {}),
    "kvf_plan_seal": (SEALING, SEQ | {"group": "0", "upto": "2"}, {IDLE: PLAN_STATE, FINISHED: PLAN_STATE}),
    "kvf_plan_seal_schedule": (IDLE, {"page_tokens": "32", "recent": "128", "position": "159", "count": "64"}, {}),
    "kvf_plan_cancel": (BUILDING, {}, {IDLE: PLAN_STATE, FINISHED: PLAN_STATE}),
    "kvf_plan_finish": (BUILDING, {"report": "*out"}, {IDLE: PLAN_STATE, FINISHED: PLAN_STATE}),
    "kvf_plan_copies": (FINISHED, {"copies": "out[w.copies]"}, {}),
    "kvf_plan_scrubs": (FINISHED, {"pages": "out[w.scrubs]"}, {}),
    "kvf_plan_commit": (FINISHED, {"accepts": "in[1]"}, {IDLE: PLAN_STATE, BUILDING: PLAN_STATE}),
    "kvf_plan_abort": (FINISHED, {}, {IDLE: PLAN_STATE, BUILDING: PLAN_STATE}),
    "kvf_table_dense": (IDLE, {"group": "0", "seqs": "in[2]", "stride": "8", "pad": "-1", "out": "out[16]"}, {}),
    "kvf_table_csr": (IDLE, {"group": "0", "seqs": "in[2]", "indptr": "out[3]", "last_page_len": "out[2]",
                             "indices": "out[w.csr]"}, {}),
    "kvf_table_slots": (FINISHED, {"group": "0", "slots": "out[2]", "positions": "out[2]"},
                        {IDLE: PLAN_STATE, BUILDING: PLAN_STATE}),
    "kvf_table_changed": (IDLE, {"group": "0", "queries": "in[2]", "rows": "out[2]", "entries": "out[w.csr]"}, {}),
    "kvf_table_ring_pages": (IDLE, {"group": "1", "tokens": "4"}, {}),
    "kvf_table_ring": (IDLE, SEQ | {"group": "1", "ring": "4", "out": "out[5]"}, {}),
    "kvf_retain_lease": (IDLE, SEQ | {"upto": "4", "until": "99"}, {}),
    "kvf_retain_end": (IDLE, {"lease": "w.lease"}, {}),
    "kvf_retain_set_class": (IDLE, {"prompt": "in", "eviction_class": "1"}, {}),
    "kvf_retain_move": (IDLE, {"prompt": "in", "to": "KVF_MOVE_HOT"}, {}),
    "kvf_io_begin_seq": (IDLE, SEQ | {"start": "0", "end": "4", "direction": "KVF_IO_STORE"}, {BUILDING: BUSY, FINISHED: BUSY}),
    "kvf_io_begin_ticket": (IDLE, {"ticket": "w.ticket", "start": "0", "end": "4", "direction": "KVF_IO_STORE"}, {}),
    "kvf_io_end": (IDLE, {"transfer": "w.transfer", "result": "KVF_IO_OK"}, {}),
    "kvf_events_read": (IDLE, {"events": "out[4]"}, {}),
    "kvf_events_keys": (IDLE, {"scratch": "out[w.key_scratch]", "events": "out[w.keys]"}, {}),
    "kvf_stats_read": (IDLE, {}, {}),
    "kvf_pool_stats_read": (IDLE, {"pool": "1"}, {}),
    "kvf_page_info_read": (IDLE, {"pool": "0", "page": "1"}, {}),
    "kvf_cache_digest": (IDLE, {}, {}),
    "kvf_cache_check": (IDLE, {"level": "2", "scratch": "out[w.scratch]", "n_needed": "*out"}, {}),
    "kvf_layout_make": (IDLE, {"spec": "in", "reason": "*out"}, {}),
    "kvf_layout_check": (IDLE, {"layout": "in"}, {}),
    "kvf_layout_measure": (IDLE, {"layout": "in"}, {}),
    "kvf_layout_row": (IDLE, {"layout": "in", "page": "1", "layer": "1", "tensor": "KVF_TENSOR_V", "head": "1", "token": "15"}, {}),
    "kvf_memory_estimate": (IDLE, {"groups": "in[1]", "tokens": "100", "budget": "100000000"}, {}),
    "kvf_evict_reason_text": None, "kvf_evict_mass_of_lse": None,
    "kvf_stream_check": (IDLE, {"stream": "in"}, {}),
    "kvf_stream_append": (IDLE, {"stream": "inout", "count": "2", "placement": "KVF_PLACE_BEHIND", "new_slots": "*out[2]"}, {}),
    "kvf_stream_truncate": (IDLE, {"stream": "inout", "len": "5"}, {}),
    "kvf_stream_retain": (IDLE, {"stream": "inout", "keep": "in[3]"}, {}),
    "kvf_stream_drop_dead_columns": (IDLE, {"stream": "inout", "dead": "out[1]"}, {}),
    "kvf_stream_next_position": (IDLE, {"stream": "in", "mode": "KVF_POSITION_RANK", "max_positions": "100"}, {}),
    "kvf_stream_deltas": (IDLE, {"stream": "in", "deltas": "out[9]"}, {}),
    "kvf_stream_is_sparse": (IDLE, {"stream": "in", "percent": "50"}, {}),
    "kvf_stream_plan_compaction": (IDLE, {"stream": "in", "group": "1", "moves": "out[2]"}, {}),
    "kvf_stream_commit_compaction": (IDLE, {"stream": "inout", "group": "1"}, {}),
    "kvf_evict_check": (IDLE, {"layout": "in", "removal": "KVF_REMOVE_REPLACE", "mode": "KVF_POSITION_ABSOLUTE"}, {}),
    "kvf_evict_move_unit": (IDLE, {"layout": "in"}, {}),
    "kvf_evict_protected_tokens": (IDLE, {"guarded": "in"}, {}),
    "kvf_evict_keep_best": (IDLE, {"stream": "in", "scores": "*in[9]", "guarded": "in", "budget": "3", "keep": "out[3]"}, {}),
    "kvf_evict_keep_above": (IDLE, {"stream": "in", "scores": "in[9]", "guarded": "in", "threshold": "0.5f", "keep": "out[3]"}, {}),
    "kvf_evict_keep_union": (IDLE, {"other": "in[3]", "keep": "out[3]"}, {}),
    "kvf_evict_h2o_observe": (IDLE, {"stream": "in", "how": "*in", "observation": "in", "scores": "out[9]"}, {}),
    "kvf_evict_h2o_order": (IDLE, {"stream": "in", "how": "*in", "scores": "in[9]", "ordered": "out[9]"}, {}),
    "kvf_evict_tova_observe": (IDLE, {"stream": "in", "observation": "in", "scores": "out[9]"}, {}),
    "kvf_evict_external_observe": (IDLE, {"stream": "in", "observation": "in", "scores": "out[9]",
                                          "setup": "in_observation.kind = KVF_OBSERVE_SCORES;"}, {}),
    "kvf_evict_random_scores": (IDLE, {"stream": "in", "seed": "1", "number": "2", "scores": "out[9]"}, {}),
    "kvf_evict_snapkv_scores": (IDLE, {"stream": "in", "sums": "in[9]", "smoothing": "KVF_SMOOTH_MAX", "kernel": "3",
                                       "scores": "out[9]"}, {}),
    "kvf_evict_knorm_scores": (IDLE, {"stream": "in", "norms": "in[9]", "scores": "out[9]"}, {}),
    "kvf_evict_keydiff_scores": (IDLE, {"stream": "in", "dots": "in[9]", "norms": "in[9]", "sum_norm": "1.0f",
                                        "scores": "out[9]"}, {}),
    "kvf_keysum_add": (IDLE, {"vector": "in[4]", "sum": "out[4]"}, {}),
    "kvf_keysum_remove": (IDLE, {"vector": "in[4]", "sum": "out[4]"}, {}),
    "kvf_keysum_norm": (IDLE, {"sum": "in[4]"}, {}),
    "kvf_evict_learned_scores": (IDLE, {"stream": "in", "mlp": "in", "inputs": "in", "scores": "out[9]"}, {}),
    "kvf_evict_features": (IDLE, {"stream": "in", "inputs": "in", "features": "out[32]"}, {}),
    "kvf_evict_quest_columns": (IDLE, {"bounds": "in[4]", "count": "2", "dense": "1", "chosen": "out[4]"}, {}),
    "kvf_budget_uniform": (IDLE, {"total": "10", "budgets": "out[2]"}, {}),
    "kvf_budget_pyramid": (IDLE, {"mean": "10", "beta": "2", "least": "0", "most": "0", "budgets": "out[2]"}, {}),
    "kvf_budget_by_weight": (IDLE, {"total": "10", "weights": "in[2]", "least": "0", "most": "0", "budgets": "out[2]"}, {}),
    "kvf_budget_by_head_scores": (IDLE, {"streams": "in[2]", "channel": "0", "mean": "3", "floor": "3", "guarded": "in",
                                         "budgets": "out[2]"}, {}),
    "kvf_evict_mass_of_row": (IDLE, {"stream": "in", "probabilities": "in[9]", "keep": "in[3]"}, {}),
    "kvf_keychain_begin": (IDLE, {"ns_key": "in", "seed": "7"}, {}),
    "kvf_keychain_next": (IDLE, {"parent": "7", "start": "4", "tokens": "in[2]", "spans": "in[1]", "n_spans": "1"}, {}),
    "kvf_keychain_begin_long": (IDLE, {"ns_key": "in", "key": "out[32]"}, {}),
    "kvf_keychain_next_long": (IDLE, {"parent": "in[32]", "start": "4", "tokens": "in[2]", "spans": "in[1]",
                                        "n_spans": "1", "key": "out[32]"}, {}),
    "kvf_evict_output_error": (IDLE, {"mass": "0.5f", "kept": "in[4]", "evicted": "in[4]", "error": "out[4]"}, {}),
}
# Of every struct of this type, whoever takes it: statements behind its name.
WRONG_STRUCTS = {
    "kvf_stream": {
        "reserved = 1": UNSUPPORTED, "page_tokens = 0": ARGUMENT, "page_tokens = 3": ARGUMENT, "page_tokens = 128": ARGUMENT,
        "columns = UINT32_MAX": ARGUMENT, "columns = 2": ARGUMENT, "rows = 17": ARGUMENT, "live = 10": ARGUMENT,
        "seen = 3": ARGUMENT, "valid = NULL": NULL, "positions = NULL": NULL,
        "valid = (uint64_t *)BESIDE(in_stream.valid)": ALIGNMENT,
        "positions = (uint32_t *)BESIDE(in_stream.positions)": ALIGNMENT,
    },
    "kvf_protected": {
        "recent = 0": ARGUMENT, "pins = bad_pins": ARGUMENT, "pins = NULL": NULL, "pins = (const kvf_pin *)BESIDE(pins)": ALIGNMENT,
    },
    "kvf_observation": {
        "kind = 0": UNSUPPORTED, "kind = 5": UNSUPPORTED, "values = NULL": NULL,
        "values = (const float *)BESIDE(in_scores)": ALIGNMENT,
    },
    "kvf_h2o": {
        "reduce = 3": UNSUPPORTED, "flags = 4": UNSUPPORTED, "decay = -0.5f": ARGUMENT, "decay = 1.5f": ARGUMENT,
        "decay = NAN": ARGUMENT,
    },
    "kvf_mlp": {
        "reserved = 1": UNSUPPORTED, "version = 2": ARGUMENT, "features = 7": ARGUMENT, "hidden = 0": ARGUMENT,
        "hidden = 33": ARGUMENT, "n_weights = 26": ARGUMENT, "weights = NULL": NULL,
    },
    "kvf_feature_inputs": {
        "reserved = 1": UNSUPPORTED, "sum = NULL": NULL, "value_norms = (const float *)BESIDE(in_scores)": ALIGNMENT,
    },
}
ROWS_WRONG = {
    "heads = 0": ARGUMENT, "queries = in_observation.heads = UINT32_MAX": SIZE,
    "kind = KVF_OBSERVE_LOGITS": NULL, "kind = KVF_OBSERVE_SCORES": ARGUMENT,
}
# Wrong numbers that are not handles, and what they must give.
WRONG = {
    ("kvf_seq_close", "mode"): {"9": ARGUMENT},
    ("kvf_seq_fork", "at"): {"w.len + 1": ARGUMENT, "UINT32_MAX": ARGUMENT},
    ("kvf_seq_truncate", "len"): {"w.len + 1": ARGUMENT},
    ("kvf_seq_verify", "upto"): {"w.len + 1": ARGUMENT},
    ("kvf_cache_advance", "tick"): {"0": "KVF_ERR_TIME"},
    ("kvf_plan_begin", "tick"): {"0": "KVF_ERR_TIME"},
    ("kvf_cache_init", "len"): {"spare_bytes - 1": "KVF_ERR_MEMORY", "0": "KVF_ERR_MEMORY"},
    ("kvf_plan_add", "count"): {"0": ARGUMENT, "UINT32_MAX": ARGUMENT},
    ("kvf_plan_seal", "upto"): {"0": ARGUMENT, "1": ARGUMENT, "3": ARGUMENT, "UINT32_MAX": ARGUMENT},
    ("kvf_plan_estimate", "count"): {"UINT32_MAX": ARGUMENT},
    ("kvf_plan_seal", "group"): {"1": ARGUMENT},
    ("kvf_plan_add", "seq"): {"w.seq": "KVF_ERR_DUPLICATE"},
    ("kvf_table_dense", "stride"): {"1": ARGUMENT, "UINT32_MAX": "KVF_ERR_SHORT_BUFFER"},
    ("kvf_table_ring", "ring"): {"0": ARGUMENT, "1": ARGUMENT},
    ("kvf_table_ring", "group"): {"0": ARGUMENT},
    ("kvf_table_ring_pages", "group"): {"0": ARGUMENT},
    ("kvf_retain_lease", "upto"): {"0": ARGUMENT},
    ("kvf_retain_lease", "until"): {"0": ARGUMENT},
    ("kvf_retain_set_class", "eviction_class"): {"9": ARGUMENT, "UINT32_MAX": ARGUMENT},
    ("kvf_retain_move", "to"): {"9": ARGUMENT},
    ("kvf_io_begin_seq", "end"): {"0": ARGUMENT, "99": ARGUMENT},
    ("kvf_io_begin_seq", "direction"): {"9": ARGUMENT},
    ("kvf_io_begin_ticket", "end"): {"0": ARGUMENT, "99": ARGUMENT},
    ("kvf_io_begin_ticket", "direction"): {"9": ARGUMENT},
    ("kvf_io_end", "result"): {"9": ARGUMENT},
    ("kvf_page_info_read", "page"): {"0": ARGUMENT, "99": ARGUMENT},
    ("kvf_namespace_close", "ns"): {"0": BUSY},
    ("kvf_layout_row", "page"): {"0": ARGUMENT},
    ("kvf_layout_row", "layer"): {"2": ARGUMENT, "UINT32_MAX": ARGUMENT},
    ("kvf_layout_row", "tensor"): {"KVF_TENSOR_ROPE": ARGUMENT, "3": ARGUMENT},
    ("kvf_layout_row", "head"): {"2": ARGUMENT},
    ("kvf_layout_row", "token"): {"16": ARGUMENT, "UINT32_MAX": ARGUMENT},
    ("kvf_memory_estimate", "n"): {"0": ARGUMENT},
    ("kvf_memory_estimate", "tokens"): {"0": ARGUMENT, "UINT64_MAX": "KVF_ERR_RANGE"},
    # Inside structs: "-> text" is a statement that spoils the good input.
    ("kvf_config_check", "cfg"): {
        "-> in_cfg.abi_version = 0": "KVF_ERR_ABI", "-> in_cfg.abi_version = 99": "KVF_ERR_ABI",
        "-> in_cfg.flags = 1u << 31": "KVF_ERR_UNSUPPORTED", "-> in_cfg.reserved = 1": "KVF_ERR_UNSUPPORTED",
        "-> in_cfg.index = 9": "KVF_ERR_UNSUPPORTED", "-> in_cfg.publish = 9": "KVF_ERR_UNSUPPORTED",
        "-> in_cfg.pools = NULL": "KVF_ERR_NULL", "-> in_cfg.groups = NULL": "KVF_ERR_NULL",
        "-> in_cfg.pools = BESIDE(in_cfg.pools)": "KVF_ERR_ALIGNMENT",
        "-> pools[1].struct_size += 4": "KVF_ERR_STRUCT_SIZE", "-> groups[0].struct_size = 37": "KVF_ERR_STRUCT_SIZE",
        "-> pools[0].policy = 9": "KVF_ERR_UNSUPPORTED", "-> groups[0].kind = 9": "KVF_ERR_UNSUPPORTED",
        "-> groups[0].window_keep = 9": "KVF_ERR_UNSUPPORTED", "-> groups[0].flags = 2": "KVF_ERR_UNSUPPORTED",
        "-> in_cfg.n_pools = 0": "KVF_ERR_CONFIG", "-> in_cfg.n_pools = UINT32_MAX": "KVF_ERR_CONFIG",
        "-> in_cfg.n_groups = 0": "KVF_ERR_CONFIG", "-> in_cfg.n_groups = UINT32_MAX": "KVF_ERR_CONFIG",
        "-> pools[0].pages = 0": "KVF_ERR_CONFIG", "-> pools[0].pages = UINT32_MAX": "KVF_ERR_CONFIG",
        "-> groups[0].page_tokens = 3": "KVF_ERR_CONFIG", "-> groups[0].page_tokens = 65536 + 4": "KVF_ERR_CONFIG",
        "-> groups[0].pool = 2": "KVF_ERR_CONFIG", "-> groups[0].pool = 65536": "KVF_ERR_CONFIG",
        "-> groups[1].window = 0": "KVF_ERR_CONFIG", "-> in_cfg.sequences = 0": "KVF_ERR_CONFIG",
        "-> in_cfg.tickets = UINT32_MAX": "KVF_ERR_CONFIG", "-> in_cfg.events = UINT32_MAX": "KVF_ERR_CONFIG",
        "-> in_cfg.quotas = 65": "KVF_ERR_CONFIG", "-> in_cfg.classes = 64": "KVF_ERR_CONFIG",
        "-> in_cfg.table_chunks = UINT32_MAX": "KVF_ERR_CONFIG", "-> in_cfg.plan_tokens = UINT32_MAX": "KVF_ERR_CONFIG",
    },
    ("kvf_prefix_match", "prompt"): {
        "-> in_prompt.tokens = NULL": "KVF_ERR_NULL", "-> in_prompt.reserved = 1": "KVF_ERR_UNSUPPORTED",
        "-> in_prompt.tokens = BESIDE(in_prompt.tokens)": "KVF_ERR_ALIGNMENT",
        "-> in_prompt.n_spans = 1": "KVF_ERR_NULL", "-> in_prompt.ns = 77": STALE,
        "-> in_prompt.spans = bad_spans; in_prompt.n_spans = 2": ARGUMENT,
    },
    ("kvf_seq_open", "params"): {
        "-> in_params.reserved = 1": "KVF_ERR_UNSUPPORTED", "-> in_params.ns = 77": STALE,
        "-> in_params.eviction_class = 9": ARGUMENT, "-> in_params.eviction_class = 256": ARGUMENT,
        "-> in_params.spans = bad_spans; in_params.n_spans = 2": ARGUMENT, "-> in_params.n_spans = 1": "KVF_ERR_NULL",
    },
    ("kvf_namespace_open", "key"): {"-> in_key.reserved = 1": "KVF_ERR_UNSUPPORTED"},
    ("kvf_plan_add_batch", "items"): {
        "-> in_items[0].reserved = 1": "KVF_ERR_UNSUPPORTED",
        "-> in_items[0].tokens = BESIDE(in_items[0].tokens)": "KVF_ERR_ALIGNMENT",
    },
    ("kvf_seq_append_batch", "items"): {
        "-> in_items[0].reserved = 1": "KVF_ERR_UNSUPPORTED", "-> in_items[0].seq = 77": STALE,
        "-> in_items[0].count = 0": ARGUMENT,
    },
    ("kvf_plan_commit", "accepts"): {
        "-> in_accepts[0].accepted = 3": ARGUMENT, "-> in_accepts[0].verified = 3": ARGUMENT,
        "-> in_accepts[0].accepted = UINT32_MAX": ARGUMENT,
        "-> in_accepts[0].tokens = BESIDE(w.tokens)": "KVF_ERR_ALIGNMENT",
    },
    ("kvf_plan_commit", "n"): {"0": ARGUMENT, "64": ARGUMENT},
    ("kvf_table_changed", "queries"): {"-> in_queries[1].seq = 77": STALE},
    ("kvf_table_dense", "seqs"): {"-> in_seqs[1] = 77": STALE},
    ("kvf_table_csr", "seqs"): {"-> in_seqs[1] = 77": STALE},
    ("kvf_layout_make", "spec"): {
        "-> in_spec.page_tokens = 24": LAYOUT, "-> in_spec.k.element = 99": LAYOUT, "-> in_spec.k.group = 24": LAYOUT,
        "-> in_spec.k.axis = KVF_AXIS_CHANNEL": LAYOUT, "-> in_spec.v.reserved = 1": LAYOUT, "-> in_spec.rope = 0": LAYOUT,
        "-> in_spec.flags = 1u << 31": LAYOUT, "-> in_spec.layers = in_spec.kv_heads = UINT32_MAX": LAYOUT,
    },
    ("kvf_layout_check", "layout"): {
        "-> in_layout.id ^= 1": LAYOUT, "-> in_layout.version = 2": LAYOUT, "-> in_layout.k.scales += 16": LAYOUT,
        "-> in_layout.page_tokens = 0": LAYOUT,
    },
    ("kvf_memory_estimate", "groups"): {
        "-> in_groups[0].reserved = 1": "KVF_ERR_UNSUPPORTED", "-> in_groups[0].kind = 9": "KVF_ERR_UNSUPPORTED",
        "-> in_groups[0].ring = 2": "KVF_ERR_UNSUPPORTED", "-> in_groups[0].struct_size = 5": "KVF_ERR_STRUCT_SIZE",
        "-> in_groups[0].layout = NULL": "KVF_ERR_NULL", "-> in_groups[0].ring = 1": ARGUMENT,
        "-> in_groups[0].layout = BESIDE(&in_layout)": "KVF_ERR_ALIGNMENT",
        "-> in_groups[0].exact = BESIDE(&in_layout)": "KVF_ERR_ALIGNMENT",
        "-> in_groups[0].kind = KVF_GROUP_WINDOW": ARGUMENT, "-> in_groups[0].exact = &in_layout": ARGUMENT,
        "-> in_layout.layers = 3": LAYOUT, "-> in_layout.struct_size = 8": "KVF_ERR_STRUCT_SIZE",
    },
    ("kvf_stream_append", "count"): {"8": "KVF_RETRY", "17": "KVF_NEVER", "UINT32_MAX": "KVF_NEVER"},
    ("kvf_stream_append", "placement"): {"2": ARGUMENT},
    ("kvf_stream_append", "stream"): {
        "-> out_stream->seen = UINT32_MAX": "KVF_NEVER", "-> out_stream->features = NULL": NULL,
        "-> out_stream->features = (float *)BESIDE(in_stream.features)": ALIGNMENT,
    },
    ("kvf_stream_truncate", "len"): {"10": ARGUMENT},
    ("kvf_stream_next_position", "mode"): {"2": ARGUMENT},
    ("kvf_stream_next_position", "max_positions"): {"4": "KVF_RETRY"},
    ("kvf_stream_plan_compaction", "group"): {"0": ARGUMENT, "3": ARGUMENT, "8": ARGUMENT},
    ("kvf_stream_commit_compaction", "group"): {"0": ARGUMENT, "3": ARGUMENT, "8": ARGUMENT},
    ("kvf_stream_check", "stream"): {"-> in_stream.live = 3": ARGUMENT, "-> in_stream.positions[3] = 0": ARGUMENT,
                                     "-> in_stream.positions[3] = 9": ARGUMENT, "-> in_stream.valid[3] = 1": ARGUMENT},
    ("kvf_evict_check", "removal"): {"3": ARGUMENT},
    ("kvf_evict_check", "mode"): {"2": ARGUMENT, "KVF_POSITION_RANK": UNSUPPORTED},
    ("kvf_evict_check", "layout"): {"-> in_layout.id ^= 1": LAYOUT},
    ("kvf_evict_keep_best", "budget"): {"2": ARGUMENT, "0": ARGUMENT},
    ("kvf_evict_keep_above", "threshold"): {"NAN": ARGUMENT},
    ("kvf_evict_h2o_observe", "observation"): {
        f"-> in_observation.{text}": status for text, status in (ROWS_WRONG | {"queries = 10": ARGUMENT}).items()},
    ("kvf_evict_tova_observe", "observation"): {f"-> in_observation.{text}": status for text, status in ROWS_WRONG.items()},
    ("kvf_evict_external_observe", "observation"): {"-> in_observation.kind = KVF_OBSERVE_COLUMNS": ARGUMENT},
    ("kvf_evict_snapkv_scores", "smoothing"): {"2": ARGUMENT},
    ("kvf_evict_snapkv_scores", "kernel"): {"0": ARGUMENT, "2": ARGUMENT, "65": ARGUMENT, "UINT32_MAX": ARGUMENT},
    ("kvf_evict_learned_scores", "mlp"): {"-> mlp_weights[8] = 0.0f": ARGUMENT, "-> mlp_weights[26] = NAN": ARGUMENT},
    ("kvf_evict_quest_columns", "count"): {"0": ARGUMENT, "1": ARGUMENT},
    ("kvf_evict_quest_columns", "dense"): {"2": ARGUMENT, "UINT32_MAX": ARGUMENT},
    ("kvf_budget_uniform", "total"): {"1": ARGUMENT, "UINT64_MAX": ARGUMENT},
    ("kvf_budget_uniform", "n"): {"0": ARGUMENT},
    ("kvf_budget_pyramid", "mean"): {"0": ARGUMENT},
    ("kvf_budget_pyramid", "beta"): {"0": ARGUMENT, "65537": ARGUMENT},
    ("kvf_budget_pyramid", "least"): {"11": ARGUMENT},
    ("kvf_budget_pyramid", "most"): {"9": ARGUMENT},
    ("kvf_budget_by_weight", "total"): {"1": ARGUMENT, "UINT64_MAX": ARGUMENT},
    ("kvf_budget_by_weight", "least"): {"6": ARGUMENT},
    ("kvf_budget_by_weight", "most"): {"4": ARGUMENT},
    ("kvf_budget_by_head_scores", "channel"): {"2": ARGUMENT, "UINT32_MAX": ARGUMENT},
    ("kvf_budget_by_head_scores", "floor"): {"2": ARGUMENT, "4": ARGUMENT},
    ("kvf_budget_by_head_scores", "streams"): {
        "-> in_streams[1].rows = 17": ARGUMENT, "-> in_streams[1].struct_size = 9": "KVF_ERR_STRUCT_SIZE",
        "-> in_streams[0].features = NULL": NULL, "-> in_streams[1].reserved = 1": UNSUPPORTED,
    },
    ("kvf_keychain_begin", "ns_key"): {"-> in_ns_key.reserved = 1": UNSUPPORTED},
    ("kvf_keychain_begin_long", "ns_key"): {"-> in_ns_key.reserved = 1": UNSUPPORTED},
    ("kvf_keychain_next", "n"): {"0": ARGUMENT},
    ("kvf_keychain_next_long", "n"): {"0": ARGUMENT},
    ("kvf_keychain_next", "n_spans"): {"SIZE_MAX": SIZE},
    ("kvf_keychain_next_long", "n_spans"): {"SIZE_MAX": SIZE},
    ("kvf_seq_add_spans", "spans"): {"-> in_spans[0].length = 0": ARGUMENT, "-> in_spans[0].start = 0": ARGUMENT},
}
HANDLES = {"kvf_seq", "kvf_ticket", "kvf_namespace", "kvf_transfer", "kvf_lease"}


def functions(header):
    text = re.sub(r"/\*.*?\*/", "", open(header).read(), flags=re.S)
    found = re.findall(r"^((?:const )?\w+ \*?)(kvf_\w+)\(([^)]*)\);", text, flags=re.M | re.S)
    structs = set(re.findall(r"^} (kvf_\w+);", text, flags=re.M))
    versioned = {s for s in structs if re.search(r"struct %s \{\s*uint32_t struct_size;" % s, text)}
    for returns, name, parameters in found:
        split = [re.sub(r"\s+", " ", p).strip() for p in parameters.split(",")]
        pairs = [re.match(r"(.*?)(\w+)$", p).groups() for p in split if p != "void"]
        yield returns.strip(), name, [(t.strip(), n) for t, n in pairs], versioned


def count_names(parameters):
    """Which parameter counts which buffer."""
    counts, buffers = {}, []
    for kind, name in parameters:
        if kind == "size_t" and (name in ("n", "cap") or name.endswith("_cap")):
            counts[name] = list(buffers)
            buffers = []
        elif kind.endswith("*"):
            buffers.append(name)
    return counts


class Call:
    def __init__(self, name, parameters, versioned):
        self.name, self.parameters, self.versioned = name, parameters, versioned
        self.state, self.values, self.states = ROWS[name]
        self.setup, self.args, self.kinds = [], {}, {}
        self.changes = [self.values["setup"]] if "setup" in self.values else []
        counts = count_names(parameters)
        for kind, arg in parameters:
            base = kind.replace("const ", "").replace("*", "").strip()
            value = self.values.get(arg)
            optional = bool(value) and value.startswith("*") or arg in ("shortage", "reason")
            spec = (value or "").lstrip("*")
            length = re.match(r"(in|out)\[(.*)\]", spec)
            if base == "kvf_cache" and arg == "cache" and kind.count("*") == 1:
                self.add(arg, "receiver", kind, "w.cache")
            elif kind == "void *":
                self.add(arg, "memory", kind, value)
            elif length and length.group(1) == "in":
                self.add(arg, "in_buffer", kind, f"in_{arg}", base, optional, length.group(2))
            elif length:
                self.setup.append(f"{base} *out_{arg} = take(({length.group(2)}) * sizeof *out_{arg}, 0);")
                self.add(arg, "out_buffer", kind, f"out_{arg}", base, optional, length.group(2))
            elif spec == "inout":
                self.setup.append(f"{base} *out_{arg} = ({base} *)take(sizeof *out_{arg}, 0);")
                self.setup.append(f"*out_{arg} = in_{arg};")
                self.add(arg, "inout_struct", kind, f"out_{arg}", base, optional)
            elif kind.endswith("*") and base in versioned and "const" in kind:
                self.add(arg, "in_struct", kind, f"&in_{arg}", base, optional)
            elif kind.endswith("*") and base in versioned:
                self.setup.append(f"{base} *out_{arg} = take(sizeof *out_{arg} + 64, sizeof *out_{arg});")
                self.add(arg, "out_struct", kind, f"out_{arg}", base, optional)
            elif kind.endswith("*"):
                inner = kind[:-1].strip()
                self.setup.append(f"{inner} *out_{arg} = take(sizeof *out_{arg}, 0);".replace("* *", "**"))
                self.add(arg, "out", kind, f"out_{arg}", base, optional)
            elif arg in counts:
                buffers = [b for b in counts[arg] if self.kinds[b][0] in ("in_buffer", "out_buffer")]
                lengths = {"n": buffers[0], "cap": buffers[-1]}.get(arg, buffers[-1]) if buffers else None
                self.add(arg, "count", kind, self.kinds[lengths][4], buffers)
            elif value is None:
                raise SystemExit(f"sweep.py: {name}: no value for {arg}")
            else:
                self.add(arg, "handle" if base in HANDLES else "number", kind, value)

    def add(self, arg, role, kind, value, base=None, optional=False, length=None):
        self.args[arg] = value
        self.kinds[arg] = (role, kind, base, optional, length)

    def case(self, what, expected, change=None, before=None, state=None):
        args = dict(self.args)
        if change:
            args.update(change)
        lines = [f"    begin({state or self.state});", "    inputs();"]
        lines += [f"    {line}" for line in self.setup + self.changes]
        if before:
            lines.append(f"    {before};")
        call = ", ".join(args[n] for _, n in self.parameters)
        needed = "NULL"
        for n, (role, _, _, _, _) in self.kinds.items():
            if role == "out" and n in ("n", "n_indices", "n_needed", "field"):
                needed = f"out_{n}"
            if role == "out_struct" and self.name == "kvf_table_changed":
                needed = f"out_{n}"
        shortage = "out_shortage" if "shortage" in self.args else "NULL"
        reason = "out_reason" if "reason" in self.args else "NULL"
        lines.append("    before_call();")
        lines.append(f"    status = {self.name}({call});")
        lines.append(f'    after_call("{self.name}", "{what}", status, {expected}, {needed}, {reason}, {shortage});')
        return "{\n" + "\n".join(lines) + "\n}"

    def cases(self):
        yield self.case("good", "KVF_OK")
        for state, status in self.states.items():
            yield self.case(f"while {state}", status, state=state)
        for arg, (role, kind, base, optional, length) in self.kinds.items():
            value = self.args[arg]
            if role == "receiver":
                yield self.case("NULL cache", "KVF_ERR_NULL", {arg: "NULL"})
                yield self.case("misaligned cache", "KVF_ERR_ALIGNMENT", {arg: "BESIDE(w.cache)"})
                yield self.case("foreign cache", "KVF_ERR_HANDLE", {arg: "FOREIGN"})
                yield self.case("moved cache", "KVF_ERR_HANDLE", {arg: "moved()"})
                yield self.case("ended cache", "KVF_ERR_HANDLE", before="kvf_cache_deinit(w.cache)")
            elif role == "memory":
                yield self.case("NULL memory", "KVF_ERR_NULL", {arg: "NULL"})
                yield self.case("misaligned memory", "KVF_ERR_ALIGNMENT", {arg: f"(char *){value} + 32"})
            elif role == "handle":
                if base != "kvf_namespace" and kind != "kvf_namespace":
                    yield self.case(f"{arg} 0", STALE, {arg: "0"})
                yield self.case(f"{arg} stale", STALE, {arg: f"({value} + (1ull << 32))"})
                yield self.case(f"{arg} beyond", STALE, {arg: "UINT64_MAX"})
            elif role in ("in_struct", "inout_struct", "out_struct", "out", "in_buffer", "out_buffer"):
                null = "KVF_OK" if optional else "KVF_ERR_NULL"
                yield self.case(f"{arg} NULL", null, {arg: "NULL"})
            if role in ("in_struct", "inout_struct", "out_struct", "out", "in_buffer", "out_buffer") and base != "uint8_t" and length != "0":
                yield self.case(f"{arg} misaligned", "KVF_ERR_ALIGNMENT", {arg: f"BESIDE({value})"})
            target = f"in_{arg}" if role == "in_struct" else f"(*out_{arg})"
            if role in ("in_struct", "inout_struct", "out_struct"):
                for size in ("0", "3", "5000", "UINT32_MAX"):
                    yield self.case(f"{arg} of size {size}", "KVF_ERR_STRUCT_SIZE", before=f"{target}.struct_size = {size}")
            if role == "in_struct":
                longer = f"(const {base} *)(const void *)longer(&in_{arg}, sizeof in_{arg}, %d)"
            if role == "inout_struct":
                longer = f"({base} *)longer(&in_{arg}, sizeof in_{arg}, %d)"
            if role in ("in_struct", "inout_struct"):
                yield self.case(f"{arg} longer, zeros", "KVF_OK", {arg: longer % 0})
                yield self.case(f"{arg} longer, not zeros", "KVF_ERR_UNSUPPORTED", {arg: longer % 1})
            if role == "out_struct":
                yield self.case(f"{arg} longer", "KVF_OK", before=f"out_{arg}->struct_size += 16")
            if role == "count":
                buffers = base
                if buffers:
                    yield self.case(f"{arg} too large", "KVF_ERR_SIZE", {arg: "SIZE_MAX"})
                    yield self.case(f"{arg} just too large", "KVF_ERR_SIZE", {arg: "SIZE_MAX / 8 + 1"})
                if buffers and self.kinds[buffers[-1]][0] == "out_buffer" and arg != "n" and self.name != "kvf_events_read":
                    yield self.case(f"{arg} short", "KVF_ERR_SHORT_BUFFER", {arg: f"({value}) - 1"})
            if role == "number" and arg in ("group", "pool"):
                yield self.case(f"{arg} 77", ARGUMENT, {arg: "77"})
                yield self.case(f"{arg} 65536", ARGUMENT, {arg: "65536"})
            fields = WRONG_STRUCTS.get(base, {}) if role in ("in_struct", "inout_struct") else {}
            wrongs = {f"-> {target}.{text}": status for text, status in fields.items()} | WRONG.get((self.name, arg), {})
            for wrong, status in wrongs.items():
                if wrong.startswith("-> "):
                    yield self.case(wrong[3:].replace('"', ""), status, before=wrong[3:])
                else:
                    yield self.case(f"{arg} = {wrong}", status, {arg: wrong})


def main():
    found = list(functions(sys.argv[1]))
    names = {name for _, name, _, _ in found}
    if names != set(ROWS):
        sys.exit(f"sweep.py: no row for {sorted(names - set(ROWS))}, no function for {sorted(set(ROWS) - names)}")
    count = 0
    print("/* Made by sweep.py from kvfolio.h. */")
    for returns, name, parameters, versioned in found:
        if ROWS[name] is None:
            continue
        print(f"\nstatic void sweep_{name}(void)\n{{\n    kvf_status status;\n")
        for case in Call(name, parameters, versioned).cases():
            print("    " + case.replace("\n", "\n    "))
            count += 1
        print("}")
    print("\nstatic void sweep_all(void)\n{")
    for _, name, _, _ in found:
        if ROWS[name] is not None:
            print(f"    sweep_{name}();")
    print("}")
    print(f"\n#define SWEEP_FUNCTIONS {len(names)}\n#define SWEEP_CASES {count}")


main()
