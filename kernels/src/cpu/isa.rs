//! Which instruction set the inner loops are compiled for, found out at run time.
//!
//! Invariant: every choice gives the same bits. The same source is compiled once for what every CPU of the target has and once
//! more for AVX2 and F16C, but for conversions of f16 and the loops of `quant::avx2`, which tests compare with the former; no
//! operation is fused or reordered in either.

/// Instruction set of the inner loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Isa {
    /// The best that the CPU has.
    #[default]
    Auto = 0,
    /// What every CPU of the target has.
    Portable = 1,
    /// AVX2 and F16C; as `Portable` where the CPU lacks them.
    Avx2 = 2,
}

impl Isa {
    /// The one with a C number.
    pub const fn from_code(code: u32) -> Option<Self> {
        match code {
            0 => Some(Self::Auto),
            1 => Some(Self::Portable),
            2 => Some(Self::Avx2),
            _ => None,
        }
    }

    /// What it comes to on this CPU: never `Auto`.
    pub fn resolved(self) -> Self {
        if self != Self::Portable && has_avx2() { Self::Avx2 } else { Self::Portable }
    }
}

/// A function in two copies, for AVX2 and F16C and for what every CPU of the target has, and the choice between them: it takes
/// the instruction set, which is resolved, before its arguments. Its body, which calls what is inlined, may name `AVX2`:
/// whether it is the copy for that. Generics are listed as `[E: Element][E]`.
macro_rules! per_isa {
    (
        $(#[$meta:meta])*
        $vis:vis unsafe fn $name:ident$([$($generics:tt)*][$($names:tt)*])?($($arg:ident: $type:ty),* $(,)?) -> $result:ty {
            $body:expr
        }
    ) => {
        $(#[$meta])*
        #[inline(always)]
        $vis unsafe fn $name$(<$($generics)*>)?(isa: $crate::cpu::Isa, $($arg: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,f16c")]
            #[allow(unused_unsafe)] // some bodies are safe
            unsafe fn avx2$(<$($generics)*>)?($($arg: $type),*) -> $result {
                #[allow(dead_code)] // most bodies do not ask
                const AVX2: bool = true;
                // SAFETY: the caller's promise.
                unsafe { $body }
            }

            #[inline(never)]
            #[allow(unused_unsafe)] // as above
            unsafe fn portable$(<$($generics)*>)?($($arg: $type),*) -> $result {
                #[allow(dead_code)] // as above
                const AVX2: bool = false;
                // SAFETY: the caller's promise.
                unsafe { $body }
            }

            // SAFETY: the caller's promise; the CPU has what a resolved `isa` says.
            unsafe {
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    $crate::cpu::Isa::Avx2 => avx2$(::<$($names)*>)?($($arg),*),
                    _ => portable$(::<$($names)*>)?($($arg),*),
                }
            }
        }
    };
}
pub(crate) use per_isa;

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

/// Asked once; the answer is the same every time, so that threads which ask at once do no harm.
#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    use core::sync::atomic::{AtomicU8, Ordering};
    static KNOWN: AtomicU8 = AtomicU8::new(0);
    match KNOWN.load(Ordering::Relaxed) {
        0 => {
            let has = ask_avx2();
            KNOWN.store(1 + u8::from(has), Ordering::Relaxed);
            has
        }
        known => known == 2,
    }
}

#[cfg(target_arch = "x86_64")]
fn ask_avx2() -> bool {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    const F16C_AVX_OSXSAVE: u32 = 1 << 29 | 1 << 28 | 1 << 27;
    const AVX2: u32 = 1 << 5;
    const XMM_YMM: u32 = 0b110;
    if cfg!(miri) || __cpuid(0).eax < 7 || __cpuid(1).ecx & F16C_AVX_OSXSAVE != F16C_AVX_OSXSAVE {
        return false;
    }
    let saved: u32;
    // SAFETY: the OSXSAVE bit says that the instruction exists; it reads a control register.
    unsafe {
        core::arch::asm!("xgetbv", in("ecx") 0, out("eax") saved, out("edx") _, options(nomem, nostack));
    }
    saved & XMM_YMM == XMM_YMM && __cpuid_count(7, 0).ebx & AVX2 != 0
}
