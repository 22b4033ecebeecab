/*
 * pages.c - page layouts in C: ids and places are those of tests/vectors/layout.json, every row lies in its page
 *
 * And the planner: 32 layers with 32 heads of 128 in INT4 with groups of 32 take 163,840 bytes a token.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvfolio.h"

static int failures;

static void expect(int condition, int line)
{
    if (!condition) {
        printf("pages.c:%d\n", line);
        failures++;
    }
}
#define EXPECT(condition) expect((condition), __LINE__)

static kvf_tensor_format format(uint32_t element, uint32_t axis, uint32_t group, uint32_t scale)
{
    kvf_tensor_format made = {element, axis, group, scale, 0, 0};
    return made;
}

static kvf_page_layout_spec shape(uint32_t page_tokens, uint32_t layers, uint32_t heads, uint32_t dim)
{
    kvf_page_layout_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.struct_size = sizeof spec;
    spec.page_tokens = page_tokens;
    spec.layers = layers;
    spec.kv_heads = heads;
    spec.k_dim = spec.v_dim = dim;
    spec.rope = KVF_ROPE_POST;
    return spec;
}

static kvf_page_layout make(const kvf_page_layout_spec *spec)
{
    kvf_page_layout layout;
    uint32_t reason = 0;
    memset(&layout, 0, sizeof layout);
    layout.struct_size = sizeof layout;
    if (kvf_layout_make(spec, &layout, &reason) != KVF_OK) {
        printf("pages.c: %s\n", kvf_layout_reason_text(reason));
        exit(1);
    }
    EXPECT(kvf_layout_check(&layout) == KVF_OK);
    return layout;
}

/* What a device does with the struct alone must be what the library says. */
static void rows(const kvf_page_layout *l)
{
    const kvf_part_layout *parts[3];
    uint32_t tensor, layer, head, token;
    parts[0] = &l->k;
    parts[1] = &l->v;
    parts[2] = &l->rope_part;
    for (tensor = 0; tensor < 3; tensor++) {
        const kvf_part_layout *part = parts[tensor];
        for (layer = 0; layer < l->layers && part->dim != 0; layer++)
            for (head = 0; head < l->kv_heads; head++)
                for (token = 0; token < l->page_tokens; token++) {
                    uint64_t start = 3 * l->page_bytes + layer * l->layer_bytes;
                    uint64_t block = token / part->block_tokens;
                    uint64_t codes = start + part->codes + head * part->codes_head + block * part->codes_block;
                    uint64_t params = head * part->params_head + block * part->params_block;
                    kvf_row_address at;
                    EXPECT(kvf_layout_row(l, 3, layer, tensor, head, token, &at) == KVF_OK);
                    EXPECT(at.codes == codes);
                    EXPECT(codes + (uint64_t)part->groups * part->group_bytes <= 4 * l->page_bytes);
                    EXPECT(at.scales == (part->scale_bytes ? start + part->scales + params : 0));
                    EXPECT(at.zeros == (part->zero_bytes ? start + part->zeros + params : 0));
                }
    }
}

int main(void)
{
    kvf_page_layout_spec spec = shape(16, 32, 8, 128);
    kvf_page_layout layout, small;
    kvf_layout_sizes sizes = {sizeof sizes, 0, 0, 0, 0, 0, 0, 0};
    kvf_memory_group groups[2];
    kvf_memory_report report;

    spec.k = spec.v = format(KVF_ELEMENT_F16, 0, 0, 0);
    layout = make(&spec);
    EXPECT(layout.id == 0x13b68637b3bae9e0ull && layout.page_bytes == 2097152);
    EXPECT((layout.flags & KVF_LAYOUT_LOSSY) == 0);
    rows(&layout);

    spec = shape(32, 2, 2, 64);
    spec.rope = KVF_ROPE_PRE;
    spec.k = format(KVF_ELEMENT_INT4, KVF_AXIS_CHANNEL, 16, 0);
    spec.v = format(KVF_ELEMENT_INT4, KVF_AXIS_TOKEN, 32, 0);
    small = make(&spec);
    EXPECT(small.id == 0xeac660f30e7ec9ecull && small.page_bytes == 11264);
    rows(&small);
    small.k.codes_head++;
    EXPECT(kvf_layout_check(&small) == KVF_ERR_LAYOUT);

    spec = shape(64, 61, 1, 512);
    spec.flags = KVF_LAYOUT_MLA;
    spec.v_dim = 0;
    spec.rope_dim = 64;
    spec.k = format(KVF_ELEMENT_FP8_E4M3FN, 0, 128, KVF_SCALE_TOKEN_HEAD);
    spec.rope_part = format(KVF_ELEMENT_BF16, 0, 0, 0);
    layout = make(&spec);
    EXPECT(layout.id == 0x92f42cefda5dc5adull && layout.v.codes == layout.k.codes);
    rows(&layout);
    EXPECT(kvf_layout_measure(&layout, &sizes) == KVF_OK);
    EXPECT(sizes.token_bytes == 61 * 656 && sizes.token_divisor == 1 && sizes.lossy == 1);

    spec = shape(16, 32, 32, 128);
    spec.k = spec.v = format(KVF_ELEMENT_INT4, KVF_AXIS_TOKEN, 32, 0);
    layout = make(&spec);
    spec.k = spec.v = format(KVF_ELEMENT_F16, 0, 0, 0);
    small = make(&spec);
    memset(groups, 0, sizeof groups);
    memset(&report, 0, sizeof report);
    report.struct_size = sizeof report;
    groups[0].struct_size = groups[1].struct_size = sizeof groups[0];
    groups[0].layout = &layout;
    EXPECT(kvf_memory_estimate(groups, 1, 4096, 80ull << 30, &report) == KVF_OK);
    EXPECT(report.row_bytes == 4096 * 163840ull && report.page_bytes == report.row_bytes);
    EXPECT(report.sequences == 128 && report.spare_bytes == 0 && report.pages == 256 && report.row_pages == 256);
    /* A second group with a window, and the first with exact recent tokens. */
    groups[0].exact = &small;
    groups[0].recent = 128;
    groups[1].layout = &small;
    groups[1].kind = KVF_GROUP_WINDOW;
    groups[1].window = 1024;
    groups[1].sinks = 4;
    groups[1].chunk = 64;
    EXPECT(kvf_memory_estimate(groups, 2, 4096, 0, &report) == KVF_OK);
    EXPECT(report.row_bytes == 3968 * 163840ull + 128 * 524288ull + (1024 + 63 + 4) * 524288ull);
    EXPECT(report.pages == 248 + 10 + 70 && report.sequences == 0);
    printf("pages: %d failures\n", failures);
    return failures == 0 ? 0 : 1;
}
