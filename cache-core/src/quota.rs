//! Quotas: how many pages of a pool a namespace may keep, used and cached together.
//!
//! A namespace with a quota has eviction lists of its own. Over its quota it evicts its own cached pages first; only when
//! those do not suffice is it short.

use crate::cache::Cache;
use crate::error::{Error, Outcome, Resource, Shortage};
use crate::ids::{NamespaceId, PoolId};
use crate::index::INDEX;
use crate::pages::{NULL, Pages};
use crate::plan::Growth;

/// The quota of one namespace in one pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct QuotaCell {
    /// Most pages; 0 = no limit.
    pub(crate) limit: u32,
    /// Pages that it allocated and that are not free.
    pub(crate) charged: u32,
    /// Promised to the open plan.
    pub(crate) promised: u32,
}

crate::records::zero!(QuotaCell { limit, charged, promised });

impl Pages<'_> {
    pub(crate) fn charge(&mut self, page: u32) {
        self.change_charge(page, 1);
    }

    pub(crate) fn discharge(&mut self, page: u32) {
        self.change_charge(page, -1);
    }

    fn change_charge(&mut self, page: u32, by: i32) {
        let set = self.set_of(page);
        if set != 0 {
            let cell = self.set_index(self.pool_of(page), set);
            self.quotas.with(cell, |quota| quota.charged = quota.charged.saturating_add_signed(by));
        }
    }

    pub(crate) fn forget_quota_promises(&mut self) {
        for cell in 0..self.quotas.len() {
            self.quotas.with(cell, |quota| quota.promised = 0);
        }
    }
}

impl Cache<'_> {
    /// Limits the pages of a pool that a namespace may keep; 0 lifts the limit. Set it before the namespace's first page.
    ///
    /// # Errors
    /// `Busy` when the namespace already has pages and no quota yet; a shortage of quotas; `Argument`; `Stale`.
    pub fn set_quota(&mut self, namespace: NamespaceId, pool: PoolId, pages: u32) -> Result<(), Error> {
        let slot = self.namespace(namespace)?;
        let pool = u32::from(pool.get());
        if pool >= self.visible_pools() {
            return Err(Error::Argument);
        }
        let mut set = u32::from(self.pages.traits.quota_of.get(slot));
        if set == 0 {
            if self.limits.quotas == 0 {
                return Err(Shortage::of(Resource::Quotas, 1, 0).into());
            }
            if self.spaces.get(slot).users > 0 || self.pages.children(self.pages.root(slot)) > 0 {
                return Err(Error::Busy);
            }
            let is_taken = |set: u32| self.pages.traits.quota_of.iter().any(|taken| u32::from(taken) == set);
            let free = (1..=self.limits.quotas).find(|&set| !is_taken(set));
            set = free.ok_or(Shortage::of(Resource::Quotas, 1, 0))?;
            self.pages.traits.quota_of.set(slot, u8::try_from(set).unwrap_or(0));
        }
        let cell = self.pages.set_index(pool, set);
        self.pages.quotas.with(cell, |quota| quota.limit = pages);
        Ok(())
    }

    /// Pools as the caller numbers them.
    pub(crate) fn visible_pools(&self) -> u32 {
        self.limits.pools.saturating_sub(u32::from(self.limits.is_hidden()))
    }

    /// Gives a closed namespace's quota back.
    pub(crate) fn release_quota(&mut self, slot: u32) {
        let set = u32::from(self.pages.traits.quota_of.get(slot));
        if set != 0 {
            for pool in 0..self.limits.pools {
                let cell = self.pages.set_index(pool, set);
                self.pages.quotas.set(cell, QuotaCell::default());
            }
            self.pages.traits.quota_of.set(slot, 0);
        }
    }

    fn quota_set(&self, holder: u32) -> u32 {
        if self.limits.quotas == 0 {
            return 0;
        }
        u32::from(self.pages.traits.quota_of.get(self.holders.get(holder).namespace))
    }

    /// Whether the namespace may be charged what a growth takes.
    pub(crate) fn may_charge_growth(&self, growth: &Growth) -> Result<(), Error> {
        self.may_charge(growth.holder, |cache, pool, limit| {
            let alone = |cache: &Self, count| cache.alone_in(pool, &Growth { count, ..*growth }) <= u64::from(limit);
            if alone(cache, growth.count) { None } else { Some(cache.most(growth.len, alone)) }
        })
    }

    /// Whether the namespace may be charged what `Pool::asked` says, evicting its own pages first. Of a pool and a limit,
    /// `most` tells what could be had if that can never be.
    pub(crate) fn may_charge(&self, holder: u32, most: impl Fn(&Self, u32, u32) -> Option<u32>) -> Result<(), Error> {
        let set = self.quota_set(holder);
        if set == 0 {
            return Ok(());
        }
        for pool in 0..self.visible_pools() {
            let cell = self.pages.set_index(pool, set);
            let quota = self.pages.quotas.get(cell);
            let asked = self.pages.pools.get(pool).asked;
            let cached = self.pages.cached_in.get(cell);
            let want = quota.charged.saturating_add(quota.promised).saturating_add(asked);
            if quota.limit == 0 || asked == 0 || want <= quota.limit.saturating_add(cached) {
                continue;
            }
            let never = most(self, pool, quota.limit);
            return Err(Shortage {
                outcome: if never.is_some() { Outcome::Never } else { Outcome::Retry },
                have: quota.limit.saturating_sub(quota.charged).saturating_sub(quota.promised),
                reclaimable: cached,
                most: never.unwrap_or(0),
                ..Shortage::of(Resource::Quota, asked, 0)
            }
            .into());
        }
        Ok(())
    }

    /// Promises what `Pool::asked` says out of the namespace's quota.
    pub(crate) fn promise_quota(&mut self, holder: u32) {
        let set = self.quota_set(holder);
        if set == 0 {
            return;
        }
        for pool in 0..self.limits.pools {
            let cell = self.pages.set_index(pool, set);
            let asked = self.pages.pools.get(pool).asked;
            self.pages.quotas.with(cell, |quota| quota.promised = quota.promised.saturating_add(asked));
        }
    }

    /// Evicts pages of namespaces that would exceed their quota by what is promised. Gives how many.
    pub(crate) fn evict_for_quotas(&mut self) -> u32 {
        let mut evicted = 0_u32;
        if !INDEX {
            return evicted;
        }
        for set in 1..self.pages.sets() {
            for pool in 0..self.limits.pools {
                let cell = self.pages.set_index(pool, set);
                loop {
                    let quota = self.pages.quotas.get(cell);
                    if quota.limit == 0 || quota.charged.saturating_add(quota.promised) <= quota.limit {
                        break;
                    }
                    let page = self.pages.victim_in(pool, set);
                    if page == NULL || !self.evict_victim(pool, page) {
                        break;
                    }
                    evicted = evicted.saturating_add(1);
                }
            }
        }
        evicted
    }
}
