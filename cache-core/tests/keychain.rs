//! Keys of pages: those of Python (`vectors/keychain.py`), and those that a cache puts into its events.

use kvfolio::{
    Cache, CloseMode, Config, Event, GroupConfig, KeyChain, MediaSpan, NamespaceKey, OpenParams, OwnedStorage,
    PoolConfig, Sha256KeyChain,
};
use serde_json::Value;

type Failure = Box<dyn core::error::Error>;

struct Vector {
    namespace: NamespaceKey,
    seed: u64,
    page_tokens: u32,
    tokens: Vec<u32>,
    spans: Vec<MediaSpan>,
    xxh3_64: Vec<u64>,
    sha256: Vec<String>,
}

fn hex(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap(), 16).unwrap()
}

fn four(words: &[Value]) -> [u64; 4] {
    [hex(&words[0]), hex(&words[1]), hex(&words[2]), hex(&words[3])]
}

fn vectors() -> Vec<Vector> {
    let all: Value = serde_json::from_str(include_str!("vectors/keychain.json")).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let number = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    let span =
        |span: &Value| MediaSpan { start: number(&span[0]), length: number(&span[1]), digest: four(&list(&span[2])) };
    let vector = |vector: &Value| {
        let words = list(&vector["namespace"]);
        Vector {
            namespace: NamespaceKey {
                tenant: four(&words),
                model: hex(&words[4]),
                adapter: hex(&words[5]),
                adapter_generation: hex(&words[6]),
                format: hex(&words[7]),
            },
            seed: hex(&vector["seed"]),
            page_tokens: number(&vector["page_tokens"]),
            tokens: list(&vector["tokens"]).iter().map(number).collect(),
            spans: list(&vector["spans"]).iter().map(span).collect(),
            xxh3_64: list(&vector["xxh3_64"]).iter().map(hex).collect(),
            sha256: list(&vector["sha256"]).iter().map(|key| key.as_str().unwrap().to_owned()).collect(),
        }
    };
    list(&all).iter().map(vector).collect()
}

#[test]
fn keys_are_those_of_python() {
    let vectors = vectors();
    assert!(vectors.len() > 4);
    for vector in &vectors {
        let mut short = KeyChain::new(&vector.namespace, vector.seed);
        let mut long = Sha256KeyChain::new(&vector.namespace);
        let pages = vector.tokens.chunks_exact(vector.page_tokens as usize);
        assert_eq!(pages.len(), vector.xxh3_64.len());
        for (page, (key, digest)) in pages.zip(vector.xxh3_64.iter().zip(&vector.sha256)) {
            // A chain goes on from a key that was kept.
            let mut again =
                (KeyChain::from_key(short.key(), short.tokens()), Sha256KeyChain::from_key(long.key(), long.tokens()));
            assert_eq!(short.page(page, &vector.spans), *key);
            assert_eq!(again.0.page(page, &vector.spans), *key);
            let bytes = long.page(page, &vector.spans);
            assert_eq!(bytes.map(|byte| format!("{byte:02x}")).concat(), *digest);
            assert_eq!(again.1.page(page, &vector.spans), bytes);
        }
    }
}

#[test]
fn keys_are_those_of_events() -> Result<(), Failure> {
    for vector in vectors() {
        let pools = [PoolConfig { pages: 1024, ..PoolConfig::default() }];
        let groups = [GroupConfig { page_tokens: u16::try_from(vector.page_tokens)?, ..GroupConfig::FULL }];
        let config = Config {
            pools: &pools,
            groups: &groups,
            sequences: 2,
            seed: vector.seed,
            events: 1024,
            key_parts: 16,
            namespaces: 4,
            ..Config::new()
        };
        let mut storage = OwnedStorage::new(&config)?;
        let mut cache = Cache::new(&config, storage.lend())?;
        let namespace = cache.namespace_open(&vector.namespace)?;
        let sequence = cache.open(&OpenParams { namespace, spans: &vector.spans, ..OpenParams::default() })?;
        cache.append(sequence, &vector.tokens)?;
        cache.close(sequence, CloseMode::Keep)?;
        let mut events = [Event::default(); 1024];
        let (count, _) = cache.read_events(&mut events);
        let keys: Vec<u64> = events[..count].iter().map(|event| event.key).collect();
        assert_eq!(keys, vector.xxh3_64);
        let parents: Vec<u64> = events[..count].iter().map(|event| event.parent_key).collect();
        assert_eq!(parents[0], 0);
        assert_eq!(parents[1..], keys[..count - 1]);
    }
    Ok(())
}
