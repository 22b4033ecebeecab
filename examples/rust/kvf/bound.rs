//! `kvf bound`: what a format can cost the attention of a model's layers at most, from recorded activations, and what it costs.

use std::path::PathBuf;
use std::{env, fs};

use clap::Args;
use half::f16;
use kvfolio::layout::{ElementCode, PageLayout, PageLayoutSpec, Tensor};
use kvfolio::quant::{NonFinite, RowCodec, fp4, logit_bound, output_bound, variation_bound};

use crate::format;

/// Every so many positions one query is looked at.
const STEP: usize = 16;

#[derive(Args)]
pub(crate) struct Options {
    /// Formats of keys and values, one after the other
    #[arg(long, value_delimiter = ',', default_value = "int8,int4:g32,int4:channel:g32,int2:channel:g32,fp8:token,q8_0,q4_0",
          long_help = format::HELP)]
    formats: Vec<String>,
    /// Recorded activations: for each layer Q [tokens][heads][dim], K and V [tokens][kv heads][dim], f16
    #[arg(long)]
    file: Option<PathBuf>,
    /// Their layers
    #[arg(long, value_delimiter = ',', default_value = "0,10,18,29")]
    layers: Vec<u32>,
    /// Tokens of each layer, a multiple of 32
    #[arg(long, default_value_t = 512)]
    tokens: usize,
    /// Query heads
    #[arg(long, default_value_t = 9)]
    heads: usize,
    /// KV heads
    #[arg(long, default_value_t = 3)]
    kv_heads: usize,
    /// Elements of a head
    #[arg(long, default_value_t = 64)]
    head_dim: usize,
}

/// One layer, as floats.
struct Layer {
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

/// Rows of one head, and what was read of them.
struct Head {
    exact: Vec<f32>,
    read: Vec<f32>,
    errors: Vec<f32>,
}

/// Means and greatest values over queries and heads.
#[derive(Default)]
struct Cost {
    queries: f64,
    variation: f64,
    variation_bound: f64,
    most_variation: f64,
    output: f64,
    output_bound: f64,
}

pub(crate) fn run(options: &Options) -> Result<String, String> {
    let path = options.file.clone().unwrap_or_else(|| {
        let data = env::var_os("KVF_DATA").unwrap_or_else(|| "../shared/data".into());
        PathBuf::from(data).join("models/smollm2-135m.qkv.f16")
    });
    let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let layers = layers(options, &bytes)?;
    let mut text = format!(
        "{:<20}{:>6}{:>14}{:>12}{:>12}{:>14}{:>12}\n",
        "format", "layer", "TV at most", "TV mean", "TV greatest", "out at most", "out mean"
    );
    for name in &options.formats {
        let pair = format::pair(name)?;
        let page_tokens = 32;
        let spec = PageLayoutSpec {
            page_tokens,
            k: pair.k,
            v: pair.v,
            ..PageLayoutSpec::new(1, options.kv_heads as u32, options.head_dim as u32, pair.k)
        };
        let layout = PageLayout::new(&spec).map_err(|error| format!("{name}: {error}"))?;
        for (layer, number) in layers.iter().zip(&options.layers) {
            let Cost { queries, variation, variation_bound, most_variation, output, output_bound } =
                cost(options, &layout, layer).map_err(|error| format!("{name}: {error}"))?;
            text.push_str(&format!(
                "{name:<20}{number:>6}{:>14.5}{:>12.5}{most_variation:>12.5}{:>14.4}{:>12.4}\n",
                variation_bound / queries,
                variation / queries,
                output_bound / queries,
                output / queries,
            ));
        }
    }
    text.push_str(
        "TV: half the sum of the changes of a query's probabilities; out: greatest change of a channel of its output.\n\
         Means over queries and heads; \"at most\" is certified from the pages and the query alone.\n",
    );
    Ok(text)
}

fn layers(options: &Options, bytes: &[u8]) -> Result<Vec<Layer>, String> {
    let Options { tokens, heads, kv_heads, head_dim, .. } = *options;
    if tokens == 0 || tokens % 32 != 0 || kv_heads == 0 || head_dim == 0 || heads % kv_heads != 0 {
        return Err("tokens are a multiple of 32, and heads one of the KV heads".to_owned());
    }
    let floats: Vec<f32> = bytes.as_chunks().0.iter().map(|&word| f16::from_le_bytes(word).to_f32()).collect();
    let (q, kv) = (tokens * heads * head_dim, tokens * kv_heads * head_dim);
    if floats.len() != (q + 2 * kv) * options.layers.len() {
        return Err(format!("{} values, which are not those of {} layers", floats.len(), options.layers.len()));
    }
    let layer = |part: &[f32]| Layer { q: part[..q].to_vec(), k: part[q..q + kv].to_vec(), v: part[q + kv..].to_vec() };
    Ok(floats.chunks(q + 2 * kv).map(layer).collect())
}

/// One head of K or V through pages.
fn head(options: &Options, layout: &PageLayout, tensor: Tensor, rows: &[f32], head: usize) -> Result<Head, String> {
    let row = options.kv_heads * options.head_dim;
    let of = |token: &[f32]| token[head * options.head_dim..][..options.head_dim].to_vec();
    let exact: Vec<f32> = rows.chunks(row).flat_map(of).collect();
    // What would be calibrated: the scale that the greatest value needs.
    let scale = match layout.part(tensor).format.element {
        ElementCode::NVFP4 => fp4::nvfp4_tensor_scale(&exact),
        ElementCode::FP8_E5M2 => exact.iter().fold(1e-6, |most: f32, x| most.max(x.abs())) / 57_000.0,
        _ => exact.iter().fold(1e-6, |most: f32, x| most.max(x.abs())) / 239.0,
    };
    let scales = vec![scale; layout.part(tensor).static_scales as usize];
    let codec = RowCodec::new(layout, tensor, &scales).map_err(|error| error.to_string())?;
    let (mut read, mut errors) = (vec![0.0; exact.len()], vec![0.0; exact.len()]);
    let mut page = vec![0_u64; layout.page_bytes as usize / 8];
    let size = layout.page_tokens as usize * options.head_dim;
    for (nth, x) in exact.chunks(size).enumerate() {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut page);
        let tokens = 0..layout.page_tokens;
        let at = nth * size..nth * size + x.len();
        codec
            .write(bytes, 0, head as u32, tokens.clone(), x, NonFinite::Reject)
            .and_then(|_| codec.read(bytes, 0, head as u32, tokens.clone(), &mut read[at.clone()]))
            .and_then(|()| codec.error_bounds(bytes, 0, head as u32, tokens, &mut errors[at]))
            .map_err(|error| error.to_string())?;
    }
    Ok(Head { exact, read, errors })
}

fn cost(options: &Options, layout: &PageLayout, layer: &Layer) -> Result<Cost, String> {
    let Options { tokens, heads, kv_heads, head_dim, .. } = *options;
    let scale = 1.0 / (head_dim as f32).sqrt();
    let mut cost = Cost::default();
    for kv_head in 0..kv_heads {
        let k = head(options, layout, Tensor::K, &layer.k, kv_head)?;
        let v = head(options, layout, Tensor::V, &layer.v, kv_head)?;
        for query_head in kv_head * (heads / kv_heads)..(kv_head + 1) * (heads / kv_heads) {
            for position in (STEP - 1..tokens).step_by(STEP) {
                let q = &layer.q[(position * heads + query_head) * head_dim..][..head_dim];
                let seen = ..(position + 1) * head_dim;
                let bound = variation_bound(logit_bound(q, scale, &k.errors[seen]));
                let (p, moved) = (softmax(q, scale, &k.exact[seen]), softmax(q, scale, &k.read[seen]));
                let variation = p.iter().zip(&moved).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0;
                let (mut output, mut most) = (0.0_f64, 0.0_f64);
                for channel in 0..head_dim {
                    let column = |rows: &[f32]| -> Vec<f32> {
                        rows[seen].iter().skip(channel).step_by(head_dim).copied().collect()
                    };
                    let (exact, read) = (column(&v.exact), column(&v.read));
                    let sum = |v: &[f32], p: &[f64]| v.iter().zip(p).map(|(v, p)| f64::from(*v) * p).sum::<f64>();
                    output = output.max((sum(&exact, &p) - sum(&read, &moved)).abs());
                    let span =
                        read.iter().copied().fold(f32::MIN, f32::max) - read.iter().copied().fold(f32::MAX, f32::min);
                    let error = column(&v.errors).into_iter().fold(0.0, f32::max);
                    most = most.max(output_bound(bound, span, error));
                }
                if variation > bound + 1e-9 || output > most + 1e-9 {
                    return Err(format!(
                        "a bound does not hold: TV {variation} above {bound}, or output {output} above {most}"
                    ));
                }
                cost.queries += 1.0;
                cost.variation += variation;
                cost.variation_bound += bound;
                cost.most_variation = cost.most_variation.max(variation);
                cost.output += output;
                cost.output_bound += most;
            }
        }
    }
    Ok(cost)
}

fn softmax(q: &[f32], scale: f32, keys: &[f32]) -> Vec<f64> {
    let dot = |row: &[f32]| row.iter().zip(q).map(|(k, q)| f64::from(*k) * f64::from(*q)).sum::<f64>();
    let logits: Vec<f64> = keys.chunks(q.len()).map(|row| dot(row) * f64::from(scale)).collect();
    let most = logits.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = logits.iter().map(|x| (x - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}
