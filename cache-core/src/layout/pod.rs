//! Plain structs whose fields are listed once: the struct, and its bytes as the hash reads them.

/// Room for the bytes of the largest struct.
pub(super) const ROOM: usize = 512;

/// The bytes of a struct in the order of its fields, each little-endian.
pub(super) struct Bytes {
    bytes: [u8; ROOM],
    len: usize,
}

impl Bytes {
    fn push(&mut self, bytes: &[u8]) {
        let room = self.bytes.get_mut(self.len..).unwrap_or(&mut []);
        for (to, from) in room.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.len = self.len.saturating_add(bytes.len());
    }
}

/// What can be written as bytes.
pub(super) trait Words {
    fn put(&self, bytes: &mut Bytes);
}

impl Words for u32 {
    fn put(&self, bytes: &mut Bytes) {
        bytes.push(&self.to_le_bytes());
    }
}

impl Words for u64 {
    fn put(&self, bytes: &mut Bytes) {
        bytes.push(&self.to_le_bytes());
    }
}

/// xxh3-64 of a struct's bytes, equal on every target.
pub(super) fn hash(value: &impl Words) -> u64 {
    let mut bytes = Bytes { bytes: [0; ROOM], len: 0 };
    value.put(&mut bytes);
    xxhash_rust::xxh3::xxh3_64(bytes.bytes.get(..bytes.len).unwrap_or(&[]))
}

/// Defines a struct that is the same in Rust, C and device code: no padding, every field in the hash.
macro_rules! pod {
    ($(#[$doc:meta])* pub struct $name:ident: $size:literal { $($(#[$field_doc:meta])* pub $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(C)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        const _: () = assert!(size_of::<$name>() == $size && 0 $(+ size_of::<$type>())* == $size && $size <= $crate::layout::pod::ROOM);

        impl $crate::layout::pod::Words for $name {
            fn put(&self, bytes: &mut $crate::layout::pod::Bytes) {
                $($crate::layout::pod::Words::put(&self.$field, bytes);)*
            }
        }
    };
}
pub(super) use pod;
