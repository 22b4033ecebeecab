//! Simulated device memory: one tag per slot, written when a plan says so.
//!
//! For engine authors: drive it with the copies and slots of your plans, and read any exported table
//! back. It stands for K/V memory in which the bytes of a token depend on the group, on the token and
//! on everything before it, as attention makes them. So a stale hit, a missing copy, a page handed out
//! twice, a table one column off, a write through a shared page: each shows as a [`Fault`], without a
//! GPU.
//!
//! ```
//! use kvfolio_tests::device::{Chain, DeviceGroup, Protection, SimDevice};
//! let mut device = SimDevice::new(&[DeviceGroup { page_tokens: 4, pool: 0, sealed: None }], &[8]);
//! let chain = Chain::root(0).then(17);
//! device.write(0, 3 * 4, chain, Protection::Writable).unwrap();
//! assert!(device.read(0, &[3], 0, chain).is_ok());
//! assert!(device.read(0, &[2], 0, chain).is_err());
//! ```

use crate::rng::mix;
use core::ops::Range;

/// The page size and the pool of one group.
#[derive(Clone, Copy, Debug)]
pub struct DeviceGroup {
    /// Tokens per page.
    pub page_tokens: u32,
    /// Pool that its pages come from.
    pub pool: u16,
    /// Pool of its sealed pages.
    pub sealed: Option<u16>,
}

/// What a token's bytes depend on: its namespace and every token up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain(u64);

impl Chain {
    /// Before the first token of a sequence of a namespace.
    pub const fn root(namespace: u64) -> Self {
        Self(mix(namespace ^ 0x6B76_666F_6C69_6F00))
    }

    /// After one more token.
    pub const fn then(self, token: u64) -> Self {
        Self(mix(self.0 ^ mix(token)))
    }

    /// The tag that a group's slot holds for this token.
    const fn tag(self, group: u16) -> u64 {
        mix(self.0 ^ ((group as u64) << 48))
    }
}

/// Whether the manager's state allows a page to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// One reference, not in the index.
    Writable,
    /// More than one reference.
    Shared,
    /// In the index.
    Published,
}

/// Something that a device would have done wrong.
#[allow(missing_docs, reason = "group, page and offset are the place of the fault")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Page 0 was read, written or copied.
    Null { group: u16, position: u32 },
    /// A page or offset beyond the pool, or a position beyond the table.
    OutOfRange { group: u16, page: u32, offset: u32 },
    /// A slot that nothing wrote since its page was handed out, or that another group wrote.
    Unwritten { group: u16, page: u32, offset: u32 },
    /// A slot that holds another token's bytes.
    Wrong { group: u16, page: u32, offset: u32 },
    /// A write to a page that somebody else can see.
    Protected { group: u16, page: u32, protection: Protection },
    /// Two groups wrote one page.
    Mixed { group: u16, page: u32, other: u16 },
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "device: {self:?}")
    }
}

/// Which of a group's pools a page is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Open,
    Sealed,
}

#[derive(Clone, Default)]
struct DevicePage {
    group: u16,
    tags: Vec<Option<u64>>,
}

/// The memory of all pools.
#[derive(Clone)]
pub struct SimDevice {
    groups: Vec<DeviceGroup>,
    pools: Vec<Vec<DevicePage>>,
}

impl SimDevice {
    /// Unwritten memory for pools of the given numbers of pages.
    pub fn new(groups: &[DeviceGroup], pools: &[u32]) -> Self {
        let pools = pools.iter().map(|&pages| vec![DevicePage::default(); pages as usize + 1]).collect();
        Self { groups: groups.to_vec(), pools }
    }

    fn page(&self, group: u16, form: Form, page: u32) -> Result<(u32, &DevicePage), Fault> {
        let out = Fault::OutOfRange { group, page, offset: 0 };
        let own = self.groups.get(usize::from(group)).ok_or(out.clone())?;
        let pool = if form == Form::Sealed { own.sealed } else { Some(own.pool) }.ok_or(out.clone())?;
        let pool = self.pools.get(usize::from(pool)).ok_or(out.clone())?;
        if page == 0 {
            return Err(Fault::Null { group, position: 0 });
        }
        Ok((own.page_tokens, pool.get(page as usize).ok_or(out)?))
    }

    fn page_mut(&mut self, group: u16, form: Form, page: u32) -> Result<(u32, &mut DevicePage), Fault> {
        let (page_tokens, _) = self.page(group, form, page)?;
        let own = self.groups[usize::from(group)];
        let pool = usize::from(own.sealed.filter(|_| form == Form::Sealed).unwrap_or(own.pool));
        Ok((page_tokens, &mut self.pools[pool][page as usize]))
    }

    /// Forgets a page's content: it was handed out anew.
    pub fn hand_out(&mut self, group: u16, page: u32) -> Result<(), Fault> {
        let (page_tokens, own) = self.page_mut(group, Form::Open, page)?;
        *own = DevicePage { group, tags: vec![None; page_tokens as usize] };
        Ok(())
    }

    /// Copies the first `tokens` slots of a page to another that was just handed out.
    pub fn copy(&mut self, group: u16, src: u32, dst: u32, tokens: u32) -> Result<(), Fault> {
        if src == dst {
            return Err(Fault::OutOfRange { group, page: dst, offset: tokens });
        }
        self.copy_to(group, src, (Form::Open, dst), tokens)
    }

    /// Copies a whole page to one of the group's sealed pool: its content in another form.
    pub fn seal(&mut self, group: u16, src: u32, dst: u32) -> Result<(), Fault> {
        let (tokens, _) = self.page(group, Form::Open, src)?;
        self.copy_to(group, src, (Form::Sealed, dst), tokens)
    }

    fn copy_to(&mut self, group: u16, src: u32, (form, dst): (Form, u32), tokens: u32) -> Result<(), Fault> {
        let source = self.page(group, Form::Open, src)?.1.clone();
        let (page_tokens, target) = self.page_mut(group, form, dst)?;
        if tokens > page_tokens {
            return Err(Fault::OutOfRange { group, page: dst, offset: tokens });
        }
        target.group = group;
        target.tags = vec![None; page_tokens as usize];
        for (target, source) in target.tags.iter_mut().zip(source.tags).take(tokens as usize) {
            *target = source;
        }
        Ok(())
    }

    /// Writes one token to a slot (page * page_tokens + offset).
    pub fn write(&mut self, group: u16, slot: i64, chain: Chain, protection: Protection) -> Result<(), Fault> {
        let page_tokens = self.groups.get(usize::from(group)).map_or(1, |own| own.page_tokens);
        let slot = u64::try_from(slot).map_err(|_| Fault::Null { group, position: 0 })?;
        let (page, offset) = ((slot / u64::from(page_tokens)) as u32, (slot % u64::from(page_tokens)) as u32);
        if protection != Protection::Writable {
            return Err(Fault::Protected { group, page, protection });
        }
        let (page_tokens, own) = self.page_mut(group, Form::Open, page)?;
        if own.group != group && offset != 0 {
            return Err(Fault::Mixed { group, page, other: own.group });
        }
        own.group = group;
        own.tags.resize(page_tokens as usize, None);
        own.tags[offset as usize] = Some(chain.tag(group));
        Ok(())
    }

    /// Reads a position through a page table and compares it with the token that must be there.
    pub fn read(&self, group: u16, table: &[u32], position: u32, chain: Chain) -> Result<(), Fault> {
        self.read_sealed(group, table, &(0..0), position, chain)
    }

    /// The same through a row of which the columns `sealed` are sealed pages.
    pub fn read_sealed(
        &self,
        group: u16,
        table: &[u32],
        sealed: &Range<u32>,
        position: u32,
        chain: Chain,
    ) -> Result<(), Fault> {
        let page_tokens = self.groups.get(usize::from(group)).map_or(1, |own| own.page_tokens);
        let (index, offset) = (position / page_tokens, position % page_tokens);
        let page = *table.get(index as usize).ok_or(Fault::OutOfRange { group, page: index, offset })?;
        if page == 0 {
            return Err(Fault::Null { group, position });
        }
        let form = if sealed.contains(&index) { Form::Sealed } else { Form::Open };
        let (_, own) = self.page(group, form, page)?;
        match own.tags.get(offset as usize).copied().flatten() {
            Some(tag) if tag == chain.tag(group) => Ok(()),
            Some(_) => Err(Fault::Wrong { group, page, offset }),
            None => Err(Fault::Unwritten { group, page, offset }),
        }
    }
}
