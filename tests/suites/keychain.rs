//! Keys of pages through the C interface: the vectors that Python makes (`cache-core/tests/vectors/keychain.py`).
#![allow(missing_docs)]

use kvfolio_ffi::{
    KVF_ERR_ARGUMENT, KVF_KEY_BYTES, KVF_OK, kvf_keychain_begin, kvf_keychain_begin_long, kvf_keychain_next,
    kvf_keychain_next_long, kvf_media_span, kvf_namespace_key,
};
use serde_json::Value;

fn hex(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap(), 16).unwrap()
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

#[test]
fn c_gives_the_keys_of_python() {
    let all: Value = serde_json::from_str(include_str!("../../cache-core/tests/vectors/keychain.json")).unwrap();
    for vector in all.as_array().unwrap() {
        let word = |at: usize| hex(&vector["namespace"][at]);
        let namespace = kvf_namespace_key {
            struct_size: u32::try_from(size_of::<kvf_namespace_key>()).unwrap(),
            reserved: 0,
            tenant: [word(0), word(1), word(2), word(3)],
            model: word(4),
            adapter: word(5),
            adapter_generation: word(6),
            format: word(7),
        };
        let span = |span: &Value| kvf_media_span {
            start: number(&span[0]),
            length: number(&span[1]),
            digest: [0, 1, 2, 3].map(|at| hex(&span[2][at])),
        };
        let spans: Vec<kvf_media_span> = vector["spans"].as_array().unwrap().iter().map(span).collect();
        let tokens: Vec<u32> = vector["tokens"].as_array().unwrap().iter().map(number).collect();
        let (mut key, mut long) = (0_u64, [0_u8; KVF_KEY_BYTES]);
        // SAFETY: everything lives longer than the calls.
        unsafe {
            assert_eq!(kvf_keychain_begin(&raw const namespace, hex(&vector["seed"]), &raw mut key), KVF_OK);
            assert_eq!(kvf_keychain_begin_long(&raw const namespace, long.as_mut_ptr()), KVF_OK);
        }
        let page_tokens = number(&vector["page_tokens"]);
        for (nth, page) in (0..).zip(tokens.chunks_exact(page_tokens as usize)) {
            let at = nth as usize;
            // SAFETY: likewise; the long key takes the place of its parent.
            unsafe {
                let (tokens, n, spans, n_spans) = (page.as_ptr(), page.len(), spans.as_ptr(), spans.len());
                let start = nth * page_tokens;
                assert_eq!(kvf_keychain_next(key, start, tokens, n, spans, n_spans, &raw mut key), KVF_OK);
                let parent = long.as_ptr();
                assert_eq!(kvf_keychain_next_long(parent, start, tokens, n, spans, n_spans, long.as_mut_ptr()), KVF_OK);
                // What is refused writes nothing.
                let kept = key;
                assert_eq!(kvf_keychain_next(key, start, tokens, 0, spans, 0, &raw mut key), KVF_ERR_ARGUMENT);
                assert_eq!(key, kept);
            }
            assert_eq!(key, hex(&vector["xxh3_64"][at]));
            assert_eq!(long.map(|byte| format!("{byte:02x}")).concat(), vector["sha256"][at].as_str().unwrap());
        }
    }
}
