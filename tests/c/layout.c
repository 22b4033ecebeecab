/*
 * layout.c - sizes and offsets of every struct, where pointers have 64 bits
 *
 * The library asserts the same numbers in ffi/src/types.rs. Compiling this file is the test.
 */
#include "kvfolio.h"

#define ASSERT_AT(line, condition) typedef char assert_at_##line[(condition) ? 1 : -1]
#define ASSERT_LINE(line, condition) ASSERT_AT(line, condition)
#define SIZE(type, bytes) ASSERT_LINE(__LINE__, sizeof(void *) != 8 || sizeof(type) == (bytes))
#define FIELD(type, field, at) ASSERT_LINE(__LINE__, sizeof(void *) != 8 || offsetof(type, field) == (at))


SIZE(kvf_pool_config, 12);
FIELD(kvf_pool_config, struct_size, 0);
FIELD(kvf_pool_config, pages, 4);
FIELD(kvf_pool_config, policy, 8);

SIZE(kvf_group_config, 40);
FIELD(kvf_group_config, struct_size, 0);
FIELD(kvf_group_config, kind, 4);
FIELD(kvf_group_config, page_tokens, 8);
FIELD(kvf_group_config, pool, 12);
FIELD(kvf_group_config, sealed_pool, 16);
FIELD(kvf_group_config, window, 20);
FIELD(kvf_group_config, sinks, 24);
FIELD(kvf_group_config, window_keep, 28);
FIELD(kvf_group_config, flags, 32);
FIELD(kvf_group_config, ring_tokens, 36);

SIZE(kvf_config, 112);
FIELD(kvf_config, struct_size, 0);
FIELD(kvf_config, abi_version, 4);
FIELD(kvf_config, pools, 8);
FIELD(kvf_config, groups, 16);
FIELD(kvf_config, n_pools, 24);
FIELD(kvf_config, n_groups, 28);
FIELD(kvf_config, sequences, 32);
FIELD(kvf_config, tickets, 36);
FIELD(kvf_config, transfers, 40);
FIELD(kvf_config, namespaces, 44);
FIELD(kvf_config, table_chunks, 48);
FIELD(kvf_config, plan_sequences, 52);
FIELD(kvf_config, plan_tokens, 56);
FIELD(kvf_config, plan_copies, 60);
FIELD(kvf_config, key_parts, 64);
FIELD(kvf_config, events, 68);
FIELD(kvf_config, leases, 72);
FIELD(kvf_config, quotas, 76);
FIELD(kvf_config, classes, 80);
FIELD(kvf_config, index, 84);
FIELD(kvf_config, index_nodes, 88);
FIELD(kvf_config, publish, 92);
FIELD(kvf_config, flags, 96);
FIELD(kvf_config, reserved, 100);
FIELD(kvf_config, seed, 104);

SIZE(kvf_namespace_key, 72);
FIELD(kvf_namespace_key, struct_size, 0);
FIELD(kvf_namespace_key, reserved, 4);
FIELD(kvf_namespace_key, tenant, 8);
FIELD(kvf_namespace_key, model, 40);
FIELD(kvf_namespace_key, adapter, 48);
FIELD(kvf_namespace_key, adapter_generation, 56);
FIELD(kvf_namespace_key, format, 64);

SIZE(kvf_shortage, 32);
FIELD(kvf_shortage, struct_size, 0);
FIELD(kvf_shortage, resource, 4);
FIELD(kvf_shortage, group, 8);
FIELD(kvf_shortage, need, 12);
FIELD(kvf_shortage, have, 16);
FIELD(kvf_shortage, reclaimable, 20);
FIELD(kvf_shortage, pending, 24);
FIELD(kvf_shortage, most, 28);

SIZE(kvf_open_params, 40);
FIELD(kvf_open_params, struct_size, 0);
FIELD(kvf_open_params, eviction_class, 4);
FIELD(kvf_open_params, ns, 8);
FIELD(kvf_open_params, user, 16);
FIELD(kvf_open_params, spans, 24);
FIELD(kvf_open_params, n_spans, 32);
FIELD(kvf_open_params, reserved, 36);

SIZE(kvf_seq_info, 48);
FIELD(kvf_seq_info, struct_size, 0);
FIELD(kvf_seq_info, published, 4);
FIELD(kvf_seq_info, verified, 8);
FIELD(kvf_seq_info, len, 12);
FIELD(kvf_seq_info, written, 16);
FIELD(kvf_seq_info, known, 20);
FIELD(kvf_seq_info, ns, 24);
FIELD(kvf_seq_info, version, 32);
FIELD(kvf_seq_info, user, 40);

SIZE(kvf_prompt, 40);
FIELD(kvf_prompt, struct_size, 0);
FIELD(kvf_prompt, n_tokens, 4);
FIELD(kvf_prompt, tokens, 8);
FIELD(kvf_prompt, spans, 16);
FIELD(kvf_prompt, n_spans, 24);
FIELD(kvf_prompt, reserved, 28);
FIELD(kvf_prompt, ns, 32);

SIZE(kvf_plan_report, 24);
FIELD(kvf_plan_report, struct_size, 0);
FIELD(kvf_plan_report, sequences, 4);
FIELD(kvf_plan_report, tokens, 8);
FIELD(kvf_plan_report, copies, 12);
FIELD(kvf_plan_report, scrubs, 16);
FIELD(kvf_plan_report, evicted, 20);

SIZE(kvf_delta_report, 24);
FIELD(kvf_delta_report, struct_size, 0);
FIELD(kvf_delta_report, rows, 4);
FIELD(kvf_delta_report, entries, 8);
FIELD(kvf_delta_report, reserved, 12);
FIELD(kvf_delta_report, version, 16);

SIZE(kvf_ring_report, 16);
FIELD(kvf_ring_report, struct_size, 0);
FIELD(kvf_ring_report, sinks, 4);
FIELD(kvf_ring_report, first, 8);
FIELD(kvf_ring_report, end, 12);

SIZE(kvf_stats, 120);
FIELD(kvf_stats, struct_size, 0);
FIELD(kvf_stats, sequences, 4);
FIELD(kvf_stats, tickets, 8);
FIELD(kvf_stats, transfers, 12);
FIELD(kvf_stats, free_chunks, 16);
FIELD(kvf_stats, free_key_parts, 20);
FIELD(kvf_stats, indexed_pages, 24);
FIELD(kvf_stats, reserved, 28);
FIELD(kvf_stats, events, 32);
FIELD(kvf_stats, waiting_events, 40);
FIELD(kvf_stats, queried_tokens, 48);
FIELD(kvf_stats, hit_tokens, 56);
FIELD(kvf_stats, committed_tokens, 64);
FIELD(kvf_stats, published_pages, 72);
FIELD(kvf_stats, duplicate_pages, 80);
FIELD(kvf_stats, evicted_pages, 88);
FIELD(kvf_stats, copied_pages, 96);
FIELD(kvf_stats, plans, 104);
FIELD(kvf_stats, tick, 112);

SIZE(kvf_pool_stats, 32);
FIELD(kvf_pool_stats, struct_size, 0);
FIELD(kvf_pool_stats, pages, 4);
FIELD(kvf_pool_stats, used, 8);
FIELD(kvf_pool_stats, cached, 12);
FIELD(kvf_pool_stats, free_pages, 16);
FIELD(kvf_pool_stats, pending, 20);
FIELD(kvf_pool_stats, peak_used, 24);
FIELD(kvf_pool_stats, utilisation, 28);

SIZE(kvf_page_info, 16);
FIELD(kvf_page_info, struct_size, 0);
FIELD(kvf_page_info, state, 4);
FIELD(kvf_page_info, indexed, 8);
FIELD(kvf_page_info, refs, 12);

SIZE(kvf_violation, 12);
FIELD(kvf_violation, struct_size, 0);
FIELD(kvf_violation, rule, 4);
FIELD(kvf_violation, index, 8);

SIZE(kvf_media_span, 40);
FIELD(kvf_media_span, start, 0);
FIELD(kvf_media_span, length, 4);
FIELD(kvf_media_span, digest, 8);

SIZE(kvf_plan_item, 24);
FIELD(kvf_plan_item, seq, 0);
FIELD(kvf_plan_item, tokens, 8);
FIELD(kvf_plan_item, count, 16);
FIELD(kvf_plan_item, reserved, 20);

SIZE(kvf_accept, 16);
FIELD(kvf_accept, accepted, 0);
FIELD(kvf_accept, verified, 4);
FIELD(kvf_accept, tokens, 8);

SIZE(kvf_group_need, 16);
FIELD(kvf_group_need, need, 0);
FIELD(kvf_group_need, have, 4);
FIELD(kvf_group_need, reclaimable, 8);
FIELD(kvf_group_need, pending, 12);

SIZE(kvf_page_copy, 20);
FIELD(kvf_page_copy, group, 0);
FIELD(kvf_page_copy, source, 4);
FIELD(kvf_page_copy, target, 8);
FIELD(kvf_page_copy, tokens, 12);
FIELD(kvf_page_copy, seals, 16);

SIZE(kvf_page_ref, 8);
FIELD(kvf_page_ref, pool, 0);
FIELD(kvf_page_ref, page, 4);

SIZE(kvf_row_query, 16);
FIELD(kvf_row_query, seq, 0);
FIELD(kvf_row_query, since, 8);

SIZE(kvf_row_delta, 12);
FIELD(kvf_row_delta, row, 0);
FIELD(kvf_row_delta, start, 4);
FIELD(kvf_row_delta, count, 8);

SIZE(kvf_event, 40);
FIELD(kvf_event, number, 0);
FIELD(kvf_event, key, 8);
FIELD(kvf_event, parent_key, 16);
FIELD(kvf_event, page, 24);
FIELD(kvf_event, namespace_slot, 28);
FIELD(kvf_event, group, 32);
FIELD(kvf_event, kind, 36);

SIZE(kvf_page_layout_spec, 144);
FIELD(kvf_page_layout_spec, struct_size, 0);
FIELD(kvf_page_layout_spec, page_tokens, 4);
FIELD(kvf_page_layout_spec, layers, 8);
FIELD(kvf_page_layout_spec, kv_heads, 12);
FIELD(kvf_page_layout_spec, k_dim, 16);
FIELD(kvf_page_layout_spec, v_dim, 20);
FIELD(kvf_page_layout_spec, rope_dim, 24);
FIELD(kvf_page_layout_spec, align, 28);
FIELD(kvf_page_layout_spec, order, 32);
FIELD(kvf_page_layout_spec, rope, 36);
FIELD(kvf_page_layout_spec, rotation, 40);
FIELD(kvf_page_layout_spec, rotation_size, 44);
FIELD(kvf_page_layout_spec, rotation_parts, 48);
FIELD(kvf_page_layout_spec, flags, 52);
FIELD(kvf_page_layout_spec, rotation_seed, 56);
FIELD(kvf_page_layout_spec, generation, 64);
FIELD(kvf_page_layout_spec, k, 72);
FIELD(kvf_page_layout_spec, v, 96);
FIELD(kvf_page_layout_spec, rope_part, 120);

SIZE(kvf_page_layout, 496);
FIELD(kvf_page_layout, struct_size, 0);
FIELD(kvf_page_layout, version, 4);
FIELD(kvf_page_layout, id, 8);
FIELD(kvf_page_layout, page_bytes, 16);
FIELD(kvf_page_layout, layer_bytes, 24);
FIELD(kvf_page_layout, generation, 32);
FIELD(kvf_page_layout, rotation_seed, 40);
FIELD(kvf_page_layout, page_tokens, 48);
FIELD(kvf_page_layout, layers, 52);
FIELD(kvf_page_layout, kv_heads, 56);
FIELD(kvf_page_layout, align, 60);
FIELD(kvf_page_layout, order, 64);
FIELD(kvf_page_layout, rope, 68);
FIELD(kvf_page_layout, rotation, 72);
FIELD(kvf_page_layout, rotation_size, 76);
FIELD(kvf_page_layout, rotation_parts, 80);
FIELD(kvf_page_layout, flags, 84);
FIELD(kvf_page_layout, k, 88);
FIELD(kvf_page_layout, v, 224);
FIELD(kvf_page_layout, rope_part, 360);

SIZE(kvf_layout_sizes, 56);
FIELD(kvf_layout_sizes, struct_size, 0);
FIELD(kvf_layout_sizes, lossy, 4);
FIELD(kvf_layout_sizes, page_bytes, 8);
FIELD(kvf_layout_sizes, padding_bytes, 16);
FIELD(kvf_layout_sizes, token_bytes, 24);
FIELD(kvf_layout_sizes, token_divisor, 32);
FIELD(kvf_layout_sizes, token_elements, 40);
FIELD(kvf_layout_sizes, static_scale_bytes, 48);

SIZE(kvf_memory_group, 48);
FIELD(kvf_memory_group, struct_size, 0);
FIELD(kvf_memory_group, kind, 4);
FIELD(kvf_memory_group, layout, 8);
FIELD(kvf_memory_group, exact, 16);
FIELD(kvf_memory_group, window, 24);
FIELD(kvf_memory_group, sinks, 28);
FIELD(kvf_memory_group, chunk, 32);
FIELD(kvf_memory_group, ring, 36);
FIELD(kvf_memory_group, recent, 40);
FIELD(kvf_memory_group, reserved, 44);

SIZE(kvf_memory_report, 64);
FIELD(kvf_memory_report, struct_size, 0);
FIELD(kvf_memory_report, reserved, 4);
FIELD(kvf_memory_report, row_bytes, 8);
FIELD(kvf_memory_report, page_bytes, 16);
FIELD(kvf_memory_report, pages, 24);
FIELD(kvf_memory_report, row_pages, 32);
FIELD(kvf_memory_report, sequences, 40);
FIELD(kvf_memory_report, static_bytes, 48);
FIELD(kvf_memory_report, spare_bytes, 56);

SIZE(kvf_tensor_format, 24);
FIELD(kvf_tensor_format, element, 0);
FIELD(kvf_tensor_format, axis, 4);
FIELD(kvf_tensor_format, group, 8);
FIELD(kvf_tensor_format, scale, 12);
FIELD(kvf_tensor_format, flags, 16);
FIELD(kvf_tensor_format, reserved, 20);

SIZE(kvf_part_layout, 136);
FIELD(kvf_part_layout, format, 0);
FIELD(kvf_part_layout, dim, 24);
FIELD(kvf_part_layout, block_tokens, 28);
FIELD(kvf_part_layout, groups, 32);
FIELD(kvf_part_layout, group_bytes, 36);
FIELD(kvf_part_layout, scale_bytes, 40);
FIELD(kvf_part_layout, zero_bytes, 44);
FIELD(kvf_part_layout, static_scales, 48);
FIELD(kvf_part_layout, flags, 52);
FIELD(kvf_part_layout, codes, 56);
FIELD(kvf_part_layout, scales, 64);
FIELD(kvf_part_layout, zeros, 72);
FIELD(kvf_part_layout, codes_bytes, 80);
FIELD(kvf_part_layout, scales_bytes, 88);
FIELD(kvf_part_layout, zeros_bytes, 96);
FIELD(kvf_part_layout, codes_head, 104);
FIELD(kvf_part_layout, codes_block, 112);
FIELD(kvf_part_layout, params_head, 120);
FIELD(kvf_part_layout, params_block, 128);

SIZE(kvf_row_address, 24);
FIELD(kvf_row_address, codes, 0);
FIELD(kvf_row_address, scales, 8);
FIELD(kvf_row_address, zeros, 16);

SIZE(kvf_stream, 56);
FIELD(kvf_stream, struct_size, 0);
FIELD(kvf_stream, page_tokens, 4);
FIELD(kvf_stream, seen, 8);
FIELD(kvf_stream, live, 12);
FIELD(kvf_stream, rows, 16);
FIELD(kvf_stream, columns, 20);
FIELD(kvf_stream, channels, 24);
FIELD(kvf_stream, reserved, 28);
FIELD(kvf_stream, valid, 32);
FIELD(kvf_stream, positions, 40);
FIELD(kvf_stream, features, 48);

SIZE(kvf_compaction, 20);
FIELD(kvf_compaction, struct_size, 0);
FIELD(kvf_compaction, rows, 4);
FIELD(kvf_compaction, columns, 8);
FIELD(kvf_compaction, freed, 12);
FIELD(kvf_compaction, first_written, 16);

SIZE(kvf_protected, 24);
FIELD(kvf_protected, struct_size, 0);
FIELD(kvf_protected, sinks, 4);
FIELD(kvf_protected, recent, 8);
FIELD(kvf_protected, n_pins, 12);
FIELD(kvf_protected, pins, 16);

SIZE(kvf_h2o, 16);
FIELD(kvf_h2o, struct_size, 0);
FIELD(kvf_h2o, reduce, 4);
FIELD(kvf_h2o, flags, 8);
FIELD(kvf_h2o, decay, 12);

SIZE(kvf_observation, 32);
FIELD(kvf_observation, struct_size, 0);
FIELD(kvf_observation, kind, 4);
FIELD(kvf_observation, queries, 8);
FIELD(kvf_observation, heads, 12);
FIELD(kvf_observation, values, 16);
FIELD(kvf_observation, lse, 24);

SIZE(kvf_mlp, 32);
FIELD(kvf_mlp, struct_size, 0);
FIELD(kvf_mlp, version, 4);
FIELD(kvf_mlp, features, 8);
FIELD(kvf_mlp, hidden, 12);
FIELD(kvf_mlp, weights, 16);
FIELD(kvf_mlp, n_weights, 24);
FIELD(kvf_mlp, reserved, 28);

SIZE(kvf_feature_inputs, 40);
FIELD(kvf_feature_inputs, struct_size, 0);
FIELD(kvf_feature_inputs, reserved, 4);
FIELD(kvf_feature_inputs, sum, 8);
FIELD(kvf_feature_inputs, last, 16);
FIELD(kvf_feature_inputs, key_norms, 24);
FIELD(kvf_feature_inputs, value_norms, 32);

SIZE(kvf_slot_move, 12);
FIELD(kvf_slot_move, from, 0);
FIELD(kvf_slot_move, to, 4);
FIELD(kvf_slot_move, count, 8);

SIZE(kvf_pin, 8);
FIELD(kvf_pin, start, 0);
FIELD(kvf_pin, end, 4);

SIZE(kvf_status, 4);
SIZE(kvf_token, 4);
SIZE(kvf_tick, 8);
SIZE(kvf_seq, 8);
SIZE(kvf_ticket, 8);
SIZE(kvf_namespace, 8);
SIZE(kvf_transfer, 8);
SIZE(kvf_lease, 8);

int main(void)
{
    return kvf_abi_version() == KVF_ABI_VERSION ? 0 : 1;
}
