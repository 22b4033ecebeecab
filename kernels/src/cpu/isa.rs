//! Which instruction set the inner loops are compiled for, found out at run time.
//!
//! Invariant: every choice gives the same bits. The same source is compiled once for what every CPU
//! of the target has and once more for AVX2 and F16C; no operation is fused or reordered in either.

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

    /// Whether the loops for AVX2 may run.
    #[inline(always)]
    pub(crate) fn is_avx2(self) -> bool {
        cfg!(target_arch = "x86_64") && self == Self::Avx2
    }
}

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
