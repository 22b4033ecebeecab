//! The memory planner: published sizes, and pages counted against a real cache.
#![allow(missing_docs)]

use kvfolio::layout::*;
use kvfolio::planner::*;
use kvfolio::{GroupKind, SealSchedule};

fn token(element: ElementCode, group: u32) -> TensorFormat {
    TensorFormat::per_token(element, group)
}

const INT8: ElementCode = ElementCode::INT8;
const INT4: ElementCode = ElementCode::INT4;
const INT2: ElementCode = ElementCode::INT2;

struct Model {
    name: &'static str,
    layers: u32,
    heads: u32,
    dim: u32,
    elements: u64,
    /// In the order of `formats`.
    bytes: [u64; 12],
}

const fn model(name: &'static str, shape: (u32, u32, u32), elements: u64, bytes: [u64; 12]) -> Model {
    Model { name, layers: shape.0, heads: shape.1, dim: shape.2, elements, bytes }
}

fn formats() -> [TensorFormat; 12] {
    [
        TensorFormat::F16,
        token(INT8, 0),
        token(INT4, 0),
        token(INT4, 64),
        token(INT4, 32),
        token(INT2, 64),
        token(INT2, 32),
        TensorFormat::Q8_0,
        TensorFormat::Q4_0,
        TensorFormat::fp8(ElementCode::FP8_E4M3FN, ScaleMode::TENSOR),
        TensorFormat::NVFP4,
        TensorFormat::MXFP4,
    ]
}

#[rustfmt::skip]
const MODELS: [Model; 6] = [
    model("llama-2-7b", (32, 32, 128), 262_144, [
        524_288, 270_336, 139_264, 147_456, 163_840, 81_920, 98_304, 278_528, 147_456, 262_144, 147_456, 139_264,
    ]),
    model("llama-2-70b", (80, 8, 128), 163_840, [
        327_680, 168_960, 87_040, 92_160, 102_400, 51_200, 61_440, 174_080, 92_160, 163_840, 92_160, 87_040,
    ]),
    model("llama-3-8b", (32, 8, 128), 65_536, [
        131_072, 67_584, 34_816, 36_864, 40_960, 20_480, 24_576, 69_632, 36_864, 65_536, 36_864, 34_816,
    ]),
    model("mistral-7b", (32, 8, 128), 65_536, [
        131_072, 67_584, 34_816, 36_864, 40_960, 20_480, 24_576, 69_632, 36_864, 65_536, 36_864, 34_816,
    ]),
    model("qwen2.5-7b", (28, 4, 128), 28_672, [
        57_344, 29_568, 15_232, 16_128, 17_920, 8_960, 10_752, 30_464, 16_128, 28_672, 16_128, 15_232,
    ]),
    model("gemma-2-9b", (42, 8, 256), 172_032, [
        344_064, 174_720, 88_704, 96_768, 107_520, 53_760, 64_512, 182_784, 96_768, 172_032, 96_768, 91_392,
    ]),
];

fn layout(layers: u32, heads: u32, dim: u32, format: TensorFormat) -> PageLayout {
    PageLayout::new(&PageLayoutSpec::new(layers, heads, dim, format)).unwrap()
}

fn llama() -> PageLayout {
    layout(32, 32, 128, TensorFormat::F16)
}

#[test]
fn bytes_per_token_of_all_models_and_formats() {
    for model in &MODELS {
        for (format, bytes) in formats().into_iter().zip(model.bytes) {
            for page_tokens in [1, 16, 64, 256] {
                let spec = PageLayoutSpec::new(model.layers, model.heads, model.dim, format);
                let layout = PageLayout::new(&PageLayoutSpec { page_tokens, ..spec }).unwrap();
                let name = model.name;
                assert_eq!(layout.token_bytes().whole(), Some(bytes), "{name} {format:?}");
                assert_eq!(layout.token_elements(), model.elements, "{name}");
                assert_eq!(GroupMemory::full(&layout).row_bytes(1000), Ok(1000 * bytes), "{name} {format:?}");
                if page_tokens >= 16 {
                    assert_eq!(layout.padding_bytes(), 0, "{name} {format:?}");
                    assert_eq!(pool_bytes(&layout, 7), Ok(u64::from(page_tokens) * 7 * bytes));
                }
            }
        }
        // FP8 with one f32 per token and head takes what INT8 with one group per row takes.
        let fp8 = TensorFormat::fp8(ElementCode::FP8_E4M3FN, ScaleMode::TOKEN_HEAD);
        let per_row = layout(model.layers, model.heads, model.dim, fp8);
        assert_eq!(per_row.token_bytes().whole(), Some(model.bytes[1]));
        // Scales outside pages are told apart: K and V of each layer.
        let per_tensor = layout(model.layers, model.heads, model.dim, formats()[9]);
        assert_eq!(per_tensor.static_scale_bytes(), u64::from(model.layers) * 8);
    }
}

#[test]
fn ratios_to_f16() {
    // In thousandths, rounded to nearest: 16 / (b + 32 / G).
    let cases = [(INT8, 128, 1939), (INT4, 128, 3765), (INT4, 64, 3556), (INT4, 32, 3200), (INT2, 128, 7111)];
    for (element, group, expected) in cases.into_iter().chain([(INT2, 64, 6400), (INT2, 32, 5333)]) {
        let bytes = layout(32, 32, 128, token(element, group)).token_bytes().whole().unwrap();
        assert_eq!((524_288 * 1000 + bytes / 2) / bytes, expected);
    }
}

#[test]
fn deepseek_v3() {
    let fp8 = TensorFormat { group: 128, ..TensorFormat::fp8(ElementCode::FP8_E4M3FN, ScaleMode::TOKEN_HEAD) };
    let of = |format| PageLayout::new(&PageLayoutSpec::mla(61, 512, 64, format, TensorFormat::BF16)).unwrap();
    let (exact, quantised) = (of(TensorFormat::BF16), of(fp8));
    assert_eq!((exact.token_bytes().whole(), exact.token_elements()), (Some(70_272), 35_136));
    assert_eq!(quantised.token_bytes().whole(), Some(40_016));
    let spec = PageLayoutSpec { v_dim: 128, ..PageLayoutSpec::new(61, 128, 192, TensorFormat::BF16) };
    let plain = PageLayout::new(&spec).unwrap().token_bytes().whole().unwrap();
    assert_eq!((plain, (plain * 10 + 35_136) / 70_272), (4_997_120, 711));
    assert_eq!(GroupMemory::full(&quantised).row_bytes(3), Ok(3 * 40_016));
}

#[test]
fn gqa_of_llama_2_70b_is_eight_times_smaller_than_mha() {
    let (mha, gqa) = (layout(80, 64, 128, TensorFormat::F16), layout(80, 8, 128, TensorFormat::F16));
    assert_eq!(mha.page_bytes, 8 * gqa.page_bytes);
    assert_eq!(layout(80, 1, 128, TensorFormat::F16).page_bytes * 64, mha.page_bytes); // MQA
}

fn gemma() -> (PageLayout, PageLayout) {
    (layout(21, 8, 256, TensorFormat::F16), layout(21, 8, 256, TensorFormat::F16))
}

#[test]
fn gemma_2_with_half_its_layers_windowed() {
    let (global, local) = gemma();
    let groups = [GroupMemory::full(&global), GroupMemory::full(&local).window(4096, 0)];
    for (tokens, bytes) in [(4096, 1_409_286_144_u64), (8192, 2_113_929_216), (32_768, 6_341_787_648)] {
        assert_eq!(row_bytes_of(&groups, tokens), Ok(bytes));
    }
    assert_eq!(row_bytes_of(&groups, 8192).unwrap() * 4, 344_064 * 8192 * 3); // .75 of all layers being full
    assert_eq!(row_bytes_of(&groups, 32_768).unwrap() * 16, 344_064 * 32_768 * 9); // .5625
    // A window of 4096 lies in 257 pages where it does not begin with one.
    assert_eq!(groups[1].pages(4096), Ok(PageCount { open: 256, sealed: 0 }));
    assert_eq!(groups[1].pages(8192), Ok(PageCount { open: 257, sealed: 0 }));
}

#[test]
fn kivi_on_llama_2_7b() {
    let exact = PageLayout::new(&PageLayoutSpec { page_tokens: 128, ..llama().spec() }).unwrap();
    let kivi = |element| {
        let (k, v) = (TensorFormat::per_channel(element, 32), token(element, 32));
        PageLayout::new(&PageLayoutSpec { k, v, rope: RopeState::PRE, ..exact.spec() }).unwrap()
    };
    // Hundredths, as published: T = 128, 1000, 4096, 32768.
    for (element, ratios) in [(INT2, [168, 355, 500, 529]), (INT4, [152, 255, 309, 319])] {
        let layout = kivi(element);
        let residual = Residual::KiviPaper { exact: &exact, recent: 128, sinks: 0 };
        let group = GroupMemory { residual, ..GroupMemory::full(&layout) };
        for (tokens, ratio) in [128, 1000, 4096, 32_768].into_iter().zip(ratios) {
            let bytes = group.row_bytes(tokens).unwrap();
            assert_eq!((tokens * 524_288 * 100 + bytes / 2) / bytes, ratio, "{element:?} {tokens}");
        }
        assert_eq!(group.pages(4096), Err(PlannerError::NoPages));
    }
    let layout = kivi(INT2);
    let residual = Residual::KiviPaper { exact: &exact, recent: 128, sinks: 0 };
    let bytes = GroupMemory { residual, ..GroupMemory::full(&layout) }.row_bytes(4096).unwrap();
    assert_eq!(bytes, 429_916_160);
    assert_eq!(bytes * 4995 / 1000, 2_147_431_219); // 4.995 times smaller than 2 GiB
    // The schedule of the paper: (K quantised, K exact, V quantised, V exact).
    let schedule = [
        (127, (0, 127, 0, 127)),
        (128, (128, 0, 0, 128)),
        (129, (128, 1, 1, 128)),
        (255, (128, 127, 127, 128)),
        (256, (256, 0, 128, 128)),
        (300, (256, 44, 172, 128)),
    ];
    for (tokens, expected) in schedule {
        let split = residual.split(tokens, 128);
        assert_eq!((split.k_quantised, split.k_exact, split.v_quantised, split.v_exact), expected);
    }
}

/// Flushes a page whenever `recent + P` exact tokens are there, one token after the other; the planner knows it at once.
#[test]
fn page_aligned_residual_against_one_token_at_a_time() {
    let exact = llama();
    let quantised = layout(32, 32, 128, token(INT4, 32));
    for (recent, sinks, chunk) in [(0, 0, 1), (1, 0, 1), (16, 0, 1), (40, 0, 7), (31, 5, 33), (128, 16, 100)] {
        let residual = Residual::PageAligned { exact: &exact, recent, sinks };
        let group = GroupMemory { residual, chunk, ..GroupMemory::full(&quantised) };
        let sink_pages = u64::from(sinks.div_ceil(16));
        for tokens in 1..400_u64 {
            let mut sealed = 0; // tokens in front of the exact ones, pages of sinks among them
            for len in 1..=tokens {
                while len - sealed >= u64::from(recent) + 16 {
                    sealed += 16;
                }
            }
            let quantised = sealed - sealed.min(16 * sink_pages);
            let split = residual.split(tokens, 16);
            assert_eq!((split.k_quantised, split.v_exact), (quantised, tokens - quantised));
            // The last token, or with none to keep the next one, reads them so.
            let reader = tokens as u32 - u32::from(recent > 0);
            let schedule = SealSchedule { page_tokens: 16, recent };
            assert_eq!(u64::from(schedule.sealed_at(reader)) * 16, sealed, "{recent} {tokens}");
            // Most open pages over every way of adding at most `chunk` tokens: what the step before last left is sealed.
            let sealed_at = |len: u64| len.saturating_sub(recent.into()) / 16;
            let open = |end: u64| {
                let from = end.saturating_sub(2 * u64::from(chunk));
                end.div_ceil(16) - sealed_at(from) + sealed_at(from).min(sink_pages)
            };
            let most = (1..=tokens).map(open).max().unwrap();
            let count = group.pages(tokens).unwrap();
            assert_eq!((count.open, count.sealed), (most, quantised / 16), "{recent} {sinks} {chunk} {tokens}");
            let bytes = most * exact.page_bytes + quantised / 16 * 163_840 * 16;
            assert_eq!(group.page_bytes(tokens), Ok(bytes));
            let rows = quantised * 163_840 + (tokens - quantised) * 524_288;
            assert_eq!(group.row_bytes(tokens), Ok(rows));
        }
    }
}

#[test]
fn exercise_1_waste_of_pages_and_of_static_rows() {
    let (layout, c) = (llama(), 524_288);
    let group = GroupMemory::full(&layout);
    let waste = |tokens| group.page_bytes(tokens).unwrap() - tokens * c;
    assert_eq!((1..=160).map(waste).max(), Some(15 * c));
    assert_eq!(15 * c, 7_864_320);
    assert_eq!((1..=16).map(waste).sum::<u64>() * 2, 15 * 16 * c); // 7.5 tokens in the mean
    let reserved = group.page_bytes(32_768).unwrap();
    assert_eq!((reserved, reserved - c), (17_179_869_184, 17_179_344_896));
    assert_eq!((reserved - c) / c, 32_767);
}

#[test]
fn exercise_2_sharing_a_prefix() {
    let layout = llama();
    let shared = pool_bytes(&layout, 1024 / 16).unwrap();
    assert_eq!(63 * shared, 33_822_867_456); // 31.5 GiB
    assert_eq!(63 * shared, 63 << 29);
    let small = self::layout(32, 8, 128, TensorFormat::F16);
    assert_eq!(63 * pool_bytes(&small, 64).unwrap(), 63 << 27); // 7.875 GiB
}

#[test]
fn exercise_3_formats_of_one_cache() {
    // 2 L H d T = 2^30 elements: 32 layers, 32 heads of 128, 4096 tokens.
    let bytes = |heads, format| GroupMemory::full(&layout(32, heads, 128, format)).row_bytes(4096).unwrap();
    assert_eq!(bytes(32, TensorFormat::F16), 2 << 30);
    let codes = |heads, format| {
        let layout = layout(32, heads, 128, format);
        let codes = layout.sections().filter(|s| s.kind == SectionKind::Codes).map(|s| s.bytes).sum::<u64>();
        codes * 4096 / 16
    };
    assert_eq!(codes(32, token(INT8, 128)), 1 << 30);
    assert_eq!(bytes(32, token(INT8, 128)), 1_107_296_256);
    assert_eq!(codes(4, token(INT4, 128)), 64 << 20);
    assert_eq!((bytes(4, token(INT4, 128)), bytes(4, token(INT4, 32))), (71_303_168, 83_886_080));
    assert_eq!(codes(8, token(INT4, 128)), 128 << 20); // "G = 4" read as query heads per KV head
}

#[test]
fn what_fits() {
    let quantised = layout(32, 32, 128, token(INT4, 32));
    let group = GroupMemory::full(&quantised);
    let each = group.page_bytes(4096).unwrap();
    let got = fit(&[group], 4096, 80 << 30).unwrap();
    assert_eq!(got.sequences, (80 << 30) / each);
    assert_eq!(got.page_bytes + got.spare_bytes, 80 << 30);
    assert_eq!(got.page_bytes, got.sequences * each);
    assert_eq!(pages_in(&quantised, 80 << 30), (80 << 30) / quantised.page_bytes);
    // One byte less than two sequences is one.
    assert_eq!(fit(&[group], 4096, 2 * each - 1).unwrap().sequences, 1);
    assert_eq!(fit(&[group], 4096, 0).unwrap(), Fit::default());
    // Scales outside pages come first.
    let fp8 = layout(32, 32, 128, TensorFormat::fp8(ElementCode::FP8_E5M2, ScaleMode::HEAD));
    let got = fit(&[GroupMemory::full(&fp8)], 16, fp8.page_bytes * 3 + 2 * 32 * 32 * 4).unwrap();
    assert_eq!((got.sequences, got.static_bytes, got.spare_bytes), (3, 8192, 0));
    let got = fit(&[GroupMemory::full(&fp8)], 16, fp8.page_bytes * 3 + 2 * 32 * 32 * 4 - 1).unwrap();
    assert_eq!(got.sequences, 2);
    // Tables: 4 bytes per page of a row.
    let sequence = sequence_memory(&[group], 4096).unwrap();
    assert_eq!((sequence.pages, sequence.row_pages, sequence.page_bytes), (256, 256, each));
    assert_eq!(table_bytes(32 * 8, 8192 / 16), Ok(524_288)); // one table per layer and head: .05 % of 1 GiB
}

#[test]
fn wrong_questions_get_no_number() {
    let (exact, quantised) = (llama(), layout(32, 32, 128, token(INT4, 32)));
    let full = GroupMemory::full(&quantised);
    let aligned = |exact| Residual::PageAligned { exact, recent: 8, sinks: 0 };
    let paper = |recent| Residual::KiviPaper { exact: &exact, recent, sinks: 0 };
    let other = layout(32, 16, 128, TensorFormat::F16);
    let spoilt = PageLayout { layers: 33, ..quantised };
    let cases = [
        (PlannerError::Layout, GroupMemory { layout: &spoilt, ..full }),
        (PlannerError::Window, full.window(0, 4)),
        (PlannerError::Window, GroupMemory { ring: true, ..full }),
        (PlannerError::Chunk, GroupMemory { chunk: 0, ..full }),
        (PlannerError::Residual, GroupMemory { residual: aligned(&exact), ..full }.window(8, 0)),
        (PlannerError::Residual, GroupMemory { residual: aligned(&other), ..full }),
        (PlannerError::Residual, GroupMemory { residual: aligned(&quantised), ..full }),
        (PlannerError::Residual, GroupMemory { residual: aligned(&exact), layout: &exact, ..full }),
        (PlannerError::Layout, GroupMemory { residual: aligned(&spoilt), ..full }),
        (PlannerError::Residual, GroupMemory { residual: paper(0), ..full }),
    ];
    for (error, group) in cases {
        assert_eq!(group.pages(100), Err(error));
        assert_eq!(fit(&[group], 100, 1 << 40), Err(error));
        assert_eq!(row_bytes_of(&[group], 100), Err(error));
    }
    assert_eq!(fit(&[], 100, 1 << 40), Err(PlannerError::Groups));
    assert_eq!(row_bytes_of(&[], 100), Err(PlannerError::Groups));
    assert_eq!(full.page_bytes(u64::MAX), Err(PlannerError::Overflow));
    assert_eq!(full.row_bytes(u64::MAX), Err(PlannerError::Overflow));
    assert_eq!(pool_bytes(&exact, u64::MAX), Err(PlannerError::Overflow));
    assert_eq!(table_bytes(u64::MAX, 2), Err(PlannerError::Overflow));
    // The widest numbers of a window do not wrap.
    let wide = GroupMemory { chunk: u32::MAX, ..full.window(u32::MAX, u32::MAX) };
    assert_eq!(wide.rows(u64::MAX), Ok(3 * u64::from(u32::MAX) - 1));
    assert!(matches!(GroupKind::default(), GroupKind::Full));
}

// Names of public fault reports.

/// llama.cpp 21385, 717: some layers need another format than the rest.
#[test]
fn ledger_31_layers_have_formats_of_their_own() {
    let (edges, middle) = (layout(4, 4, 128, TensorFormat::F16), layout(24, 4, 128, token(INT4, 32)));
    let groups = [GroupMemory::full(&edges), GroupMemory::full(&middle)];
    let per_token = 4 * 2 * 4 * 128 * 2 + 24 * 2 * 4 * 128 * 5 / 8;
    assert_eq!(row_bytes_of(&groups, 1), Ok(per_token));
    assert_eq!(sequence_memory(&groups, 4096).unwrap().page_bytes, 4096 * per_token);
    assert_ne!(edges.id, middle.id);
}

/// KIVI 17: memory saved is far below what was claimed, since metadata and exact tokens were not counted.
#[test]
fn ledger_44_bytes_are_those_of_the_formula_metadata_included() {
    let int2 = layout(32, 32, 128, token(INT2, 32));
    assert_eq!(int2.token_bytes().whole(), Some(262_144 * 3 / 8)); // 3 bits, not 2
    let kept: u64 = int2.sections().map(|section| section.bytes).sum();
    assert_eq!(pool_bytes(&int2, 1), Ok(kept));
}

/// VeloxQuant-MLX 162: groups that never fill, billed as quantised. Only whole groups count as such.
#[test]
fn ledger_45_tokens_count_as_quantised_only_in_whole_groups() {
    let exact = PageLayout::new(&PageLayoutSpec { page_tokens: 32, ..llama().spec() }).unwrap();
    let k = TensorFormat::per_channel(INT2, 32);
    let layout = PageLayout::new(&PageLayoutSpec { k, v: token(INT2, 32), ..exact.spec() }).unwrap();
    for residual in [
        Residual::KiviPaper { exact: &exact, recent: 32, sinks: 0 },
        Residual::PageAligned { exact: &exact, recent: 0, sinks: 0 },
    ] {
        for tokens in 0..100 {
            assert_eq!(residual.split(tokens, 32).k_quantised, tokens / 32 * 32);
        }
        let group = GroupMemory { residual, ..GroupMemory::full(&layout) };
        assert_eq!(group.row_bytes(31), Ok(31 * 524_288));
    }
    let residual = Residual::KiviPaper { exact: &exact, recent: 16, sinks: 0 };
    assert_eq!(GroupMemory { residual, ..GroupMemory::full(&layout) }.check(), Err(PlannerError::Residual));
}

/// ferrox 33: the budget priced a window that no store implemented; see `planner_pools` for the pages of real caches.
#[test]
fn ledger_57_a_window_is_priced_with_its_chunk() {
    let (_, local) = gemma();
    let group = GroupMemory { chunk: 512, ..GroupMemory::full(&local).window(4096, 4) };
    assert_eq!(group.rows(1 << 20), Ok(4 + 4096 + 511));
    assert_eq!(group.rows(100), Ok(100));
    assert_eq!(group.row_bytes(1 << 20), Ok((4 + 4096 + 511) * local.token_bytes().whole().unwrap()));
    assert_eq!(group.pages(1 << 20), Ok(PageCount { open: 1 + 289, sealed: 0 })); // 4,607 tokens at the worst place
}
