//! `kvf plan`: what a model's cache takes, and how much of it fits a card.

use clap::Args;
use kvfolio::layout::{PageLayout, PageLayoutSpec, TensorFormat};
use kvfolio::planner::{self, GroupMemory, Residual};
use kvfolio::{Config, GroupConfig, GroupKind, PoolConfig};
use serde::Serialize;

use crate::catalog::{Catalog, Model};
use crate::format::{self, Pair};

#[derive(Args)]
pub(crate) struct Options {
    /// A model of the catalog. Else give --layers, --kv-heads and --head-dim
    #[arg(long, required_unless_present = "layers", conflicts_with = "layers")]
    model: Option<String>,
    /// Layers
    #[arg(long, requires = "kv_heads", requires = "head_dim", value_parser = clap::value_parser!(u32).range(1..))]
    layers: Option<u32>,
    /// KV heads of a layer
    #[arg(long, requires = "layers", value_parser = clap::value_parser!(u32).range(1..))]
    kv_heads: Option<u32>,
    /// Elements of a head
    #[arg(long, requires = "layers", value_parser = clap::value_parser!(u32).range(1..))]
    head_dim: Option<u32>,
    /// Tokens that a query of the windowed layers reads; 0 = no window
    #[arg(long)]
    window: Option<u32>,
    /// How many layers have that window [default: all]
    #[arg(long, requires = "window")]
    window_layers: Option<u32>,
    /// Tokens at the start that windows keep
    #[arg(long, default_value_t = 0)]
    sinks: u32,
    /// Format of keys and values
    #[arg(long, default_value = "f16", long_help = format::HELP)]
    format: String,
    /// Format of keys alone
    #[arg(long)]
    k_format: Option<String>,
    /// Format of values alone
    #[arg(long)]
    v_format: Option<String>,
    /// Keep the first and last N layers in f16
    #[arg(long, value_name = "N", default_value_t = 0)]
    exact_edges: u32,
    /// Recent tokens that stay exact (f16) beside quantised pages [default: 128 with kivi2 and kivi4, else none]
    #[arg(long, value_name = "TOKENS")]
    residual: Option<u32>,
    /// Tokens of a page
    #[arg(long, default_value_t = 16)]
    page: u32,
    /// Alignment of a page's sections in bytes
    #[arg(long, default_value_t = 16)]
    align: u32,
    /// Tokens of one sequence
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..))]
    tokens: u64,
    /// Most tokens that are added to a sequence at a time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    chunk: u32,
    /// A card of the catalog
    #[arg(long, required_unless_present = "budget")]
    card: Option<String>,
    /// Memory in bytes, in place of the card's
    #[arg(long, value_parser = format::bytes)]
    budget: Option<u64>,
    /// Memory that weights take from it
    #[arg(long, value_parser = format::bytes, default_value = "0")]
    weights_bytes: u64,
    /// How many sequences there are to be
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    sequences: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Layers with one layout.
struct Layers {
    layout: PageLayout,
    exact: Option<PageLayout>,
    window: u32,
}

/// What is printed. Bytes everywhere, unless the name says otherwise.
#[derive(Serialize)]
struct Report {
    model: String,
    page_tokens: u32,
    tokens: u64,
    /// Codes, scales and zeros of one token in all layers, rounded up.
    token_bytes: u64,
    token_elements: u64,
    /// Rows that a sequence keeps, and the same rows in f16.
    row_bytes: u64,
    row_bytes_f16: u64,
    sequence_bytes: u64,
    budget_bytes: u64,
    weights_bytes: u64,
    static_scale_bytes: u64,
    sequences_that_fit: u64,
    pools: Vec<Pool>,
    /// Page tables on the device, for the sequences that fit or are asked for.
    table_bytes: u64,
    /// Memory of the manager on the host; none where it cannot number the pages.
    manager_bytes: Option<u64>,
    sequences: Option<u32>,
    fits: Option<bool>,
}

/// Pages of one size.
#[derive(Clone, Serialize)]
struct Pool {
    layers: u32,
    keys: String,
    values: String,
    window: u32,
    layout: String,
    page_bytes: u64,
    padding_bytes: u64,
    pages_per_sequence: u64,
    pages_that_fit: u64,
}

/// Runs the command; gives what to print.
pub(crate) fn run(options: &Options) -> Result<String, String> {
    let catalog = Catalog::read()?;
    let model = model(options, &catalog)?;
    let report = report(options, &model, budget(options, &catalog)?)?;
    if options.json {
        return serde_json::to_string_pretty(&report).map(|text| text + "\n").map_err(|error| error.to_string());
    }
    Ok(crate::show::table(&facts(&report)))
}

fn model(options: &Options, catalog: &Catalog) -> Result<Model, String> {
    let mut model = match (&options.model, options.layers) {
        (Some(name), _) => catalog.model(name)?.clone(),
        (None, layers) => Model {
            name: "custom".into(),
            layers: layers.unwrap_or(0),
            kv_heads: options.kv_heads.unwrap_or(0),
            head_dim: options.head_dim.unwrap_or(0),
            latent: 0,
            rope: 0,
            window: 0,
            window_layers: 0,
        },
    };
    if let Some(window) = options.window {
        (model.window, model.window_layers) = (window, if window == 0 { 0 } else { model.layers });
    }
    model.window_layers = options.window_layers.unwrap_or(model.window_layers);
    if model.window_layers > model.layers {
        return Err(format!("--window-layers: the model has {} layers", model.layers));
    }
    Ok(model)
}

fn budget(options: &Options, catalog: &Catalog) -> Result<u64, String> {
    let card = options.card.as_deref().map(|name| catalog.card(name)).transpose()?;
    match (options.budget, card) {
        (Some(bytes), _) => Ok(bytes),
        (None, Some(card)) if card.bytes > 0 => Ok(card.bytes),
        _ => Err("this card has no size of its own: give --budget".into()),
    }
}

fn pair(options: &Options) -> Result<Pair, String> {
    let mut pair = format::pair(&options.format)?;
    if let Some(text) = &options.k_format {
        pair.k = format::tensor(text)?;
    }
    if let Some(text) = &options.v_format {
        pair.v = format::tensor(text)?;
    }
    Ok(pair)
}

/// A layout of so many layers of the model.
fn layout(options: &Options, model: &Model, layers: u32, pair: Pair) -> Result<PageLayout, String> {
    let spec = if model.latent > 0 {
        if options.k_format.is_some() || options.v_format.is_some() {
            return Err("with MLA keys and values are one latent part: use --format".into());
        }
        PageLayoutSpec::mla(layers, model.latent, model.rope, pair.k, TensorFormat::BF16)
    } else {
        PageLayoutSpec { v: pair.v, ..PageLayoutSpec::new(layers, model.kv_heads, model.head_dim, pair.k) }
    };
    let spec = PageLayoutSpec { page_tokens: options.page, align: options.align, ..spec };
    PageLayout::new(&spec).map_err(|reason| format!("no such page: {reason}"))
}

const F16: Pair = Pair { k: TensorFormat::F16, v: TensorFormat::F16, residual: false };

/// The model as groups of layers: full and windowed ones, and of the full ones those at the edges apart. `recent` tokens of
/// full layers stay exact.
fn groups(options: &Options, model: &Model, pair: Pair, recent: u32) -> Result<Vec<Layers>, String> {
    let full = model.layers - model.window_layers;
    let edges = (options.exact_edges.saturating_mul(2)).min(model.layers);
    if edges > 0 && model.window_layers > 0 {
        return Err("--exact-edges: not for models with windowed layers".into());
    }
    if recent > 0 && !layout(options, model, 1, pair)?.is_lossy() {
        return Err("--residual: the format is exact already".into());
    }
    let parts = [(edges, F16, 0), (full.saturating_sub(edges), pair, 0), (model.window_layers, pair, model.window)];
    parts
        .into_iter()
        .filter(|(layers, _, _)| *layers > 0)
        .map(|(layers, pair, window)| {
            let keep = recent > 0 && window == 0 && pair != F16;
            let exact = keep.then(|| layout(options, model, layers, F16)).transpose()?;
            Ok(Layers { layout: layout(options, model, layers, pair)?, exact, window })
        })
        .collect()
}

/// The groups as the planner wants them.
fn memory<'a>(options: &Options, groups: &'a [Layers], recent: u32) -> Vec<GroupMemory<'a>> {
    let one = |group: &'a Layers| {
        let residual =
            group.exact.as_ref().map_or(Residual::None, |exact| Residual::PageAligned { exact, recent, sinks: 0 });
        let memory = GroupMemory { chunk: options.chunk, residual, ..GroupMemory::full(&group.layout) };
        if group.window == 0 { memory } else { memory.window(group.window, options.sinks) }
    };
    groups.iter().map(one).collect()
}

fn report(options: &Options, model: &Model, budget: u64) -> Result<Report, String> {
    let text = |error: planner::PlannerError| error.to_string();
    let pair = pair(options)?;
    let recent = options.residual.unwrap_or(if pair.residual { 128 } else { 0 });
    let (groups, plain) = (groups(options, model, pair, recent)?, groups(options, model, F16, 0)?);
    let (memory, f16) = (memory(options, &groups, recent), memory(options, &plain, 0));
    let room = budget.saturating_sub(options.weights_bytes);
    let fit = planner::fit(&memory, options.tokens, room).map_err(text)?;
    let each = planner::sequence_memory(&memory, options.tokens).map_err(text)?;
    let count = options.sequences.map_or(fit.sequences, u64::from);
    let pools = pools(&memory, options.tokens, room.saturating_sub(fit.static_bytes), each.page_bytes)?;
    Ok(Report {
        model: model.name.clone(),
        page_tokens: options.page,
        tokens: options.tokens,
        token_bytes: groups.iter().map(|g| g.layout.payload_bytes()).sum::<u64>().div_ceil(options.page.into()),
        token_elements: groups.iter().map(|g| g.layout.token_elements()).sum(),
        row_bytes: planner::row_bytes_of(&memory, options.tokens).map_err(text)?,
        row_bytes_f16: planner::row_bytes_of(&f16, options.tokens).map_err(text)?,
        sequence_bytes: each.page_bytes,
        budget_bytes: budget,
        weights_bytes: options.weights_bytes,
        static_scale_bytes: fit.static_bytes,
        sequences_that_fit: fit.sequences,
        table_bytes: planner::table_bytes(count, each.row_pages * memory.len() as u64).map_err(text)?,
        manager_bytes: manager(&memory, &pools, count),
        pools,
        sequences: options.sequences,
        fits: options.sequences.map(|n| u64::from(n) <= fit.sequences),
    })
}

/// The pools of all groups: each gets the share of the memory that a sequence needs of it.
fn pools(memory: &[GroupMemory<'_>], tokens: u64, room: u64, each: u64) -> Result<Vec<Pool>, String> {
    let mut pools = Vec::new();
    for group in memory {
        let count = group.pages(tokens).map_err(|error| error.to_string())?;
        let window = if let GroupKind::Window { window, .. } = group.kind { window } else { 0 };
        let pool = |layout: &PageLayout, pages: u64| {
            let share = u128::from(room) * u128::from(pages) / u128::from(each.max(1));
            let v = if layout.v.is_own() { format::words(&layout.v.format) } else { "the same".into() };
            Pool {
                layers: layout.layers,
                keys: format::words(&layout.k.format),
                values: v,
                window,
                layout: format!("{:016x}", layout.id),
                page_bytes: layout.page_bytes,
                padding_bytes: layout.padding_bytes(),
                pages_per_sequence: pages,
                pages_that_fit: u64::try_from(share).unwrap_or(u64::MAX),
            }
        };
        match group.residual.exact() {
            Some(exact) => pools.extend([pool(exact, count.open), pool(group.layout, count.sealed)]),
            None => pools.push(pool(group.layout, count.open)),
        }
    }
    Ok(pools)
}

/// Memory of the manager for these pools.
fn manager(memory: &[GroupMemory<'_>], pools: &[Pool], sequences: u64) -> Option<u64> {
    let sizes = pools.iter().map(|pool| {
        let pages = u32::try_from(pool.pages_that_fit).ok()?;
        Some(PoolConfig { pages, ..PoolConfig::default() })
    });
    let sizes = sizes.collect::<Option<Vec<_>>>()?;
    let (mut next, mut configs) = (0_u16, Vec::new());
    for group in memory {
        let sealed = group.residual.exact().is_some();
        configs.push(GroupConfig {
            kind: group.kind,
            page_tokens: u16::try_from(group.layout.page_tokens).ok()?,
            pool: next,
            sealed_pool: if sealed { next + 2 } else { 0 },
            sinks: if let Residual::PageAligned { sinks, .. } = group.residual { sinks } else { 0 },
            ..GroupConfig::FULL
        });
        next += 1 + u16::from(sealed);
    }
    let sequences = u32::try_from(sequences).ok()?;
    let nodes = sizes.iter().map(|pool| pool.pages).max().unwrap_or(0);
    let config =
        Config { pools: &sizes, groups: &configs, sequences, tickets: sequences, index_nodes: nodes, ..Config::new() };
    config.metadata_bytes().ok()
}

/// The report as pairs of name and value.
fn facts(report: &Report) -> Vec<(String, String)> {
    use crate::show::{bytes, grouped, ratio};
    let mut facts = vec![("model".to_owned(), report.model.clone())];
    let mut add = |name: &str, value: String| facts.push((name.to_owned(), value));
    for (nth, pool) in report.pools.iter().enumerate() {
        let window = if pool.window > 0 { format!(", window {}", grouped(pool.window.into())) } else { String::new() };
        let text = format!("{} layers, K {}, V {}{window}, id {}", pool.layers, pool.keys, pool.values, pool.layout);
        add(&format!("pool {nth}"), text);
        let page = format!(
            "{} for {} tokens, {} of it padding",
            bytes(pool.page_bytes),
            report.page_tokens,
            pool.padding_bytes
        );
        add("  page", page);
        add("  pages of a sequence", grouped(pool.pages_per_sequence));
        add("  pages that fit", grouped(pool.pages_that_fit));
    }
    let bits = report.token_bytes as f64 * 8.0 / report.token_elements as f64;
    add("token", format!("{}, {bits:.3} bits per element with scales", bytes(report.token_bytes)));
    add(&format!("rows of {} tokens", grouped(report.tokens)), bytes(report.row_bytes));
    add("  smaller than f16", ratio(report.row_bytes_f16, report.row_bytes));
    add("sequence", format!("{} of pages at most", bytes(report.sequence_bytes)));
    add("memory", bytes(report.budget_bytes));
    if report.weights_bytes > 0 {
        add("  weights", bytes(report.weights_bytes));
    }
    if report.static_scale_bytes > 0 {
        add("  scales outside pages", bytes(report.static_scale_bytes));
    }
    add("sequences that fit", grouped(report.sequences_that_fit));
    if let (Some(count), Some(fits)) = (report.sequences, report.fits) {
        add("sequences wanted", format!("{}: {}", grouped(count.into()), if fits { "fit" } else { "do not fit" }));
    }
    add("page tables", bytes(report.table_bytes));
    let manager = report.manager_bytes.map_or("more pages than it can number".into(), |b| bytes(b) + " on the host");
    add("manager", manager);
    facts
}
