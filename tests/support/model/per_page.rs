//! A map from pages to values, as dense as the pages are.

use super::pages::Page;

/// A value for some of the pages.
#[derive(Clone, Hash)]
pub(super) struct PerPage<T> {
    pools: Vec<Vec<Option<T>>>,
}

impl<T> Default for PerPage<T> {
    fn default() -> Self {
        Self { pools: Vec::new() }
    }
}

impl<T> PerPage<T> {
    pub(super) fn get(&self, (pool, id): Page) -> Option<&T> {
        self.pools.get(pool)?.get(id as usize)?.as_ref()
    }

    pub(super) fn contains(&self, page: Page) -> bool {
        self.get(page).is_some()
    }

    /// The place of a page's value.
    pub(super) fn slot(&mut self, (pool, id): Page) -> &mut Option<T> {
        if self.pools.len() <= pool {
            self.pools.resize_with(pool + 1, Vec::new);
        }
        let own = &mut self.pools[pool];
        if own.len() <= id as usize {
            own.resize_with(id as usize + 1, || None);
        }
        &mut own[id as usize]
    }

    /// Pages and values, pools and ids ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Page, &T)> {
        let pools = self.pools.iter().enumerate();
        pools.flat_map(|(pool, own)| (0..).zip(own).filter_map(move |(id, value)| Some(((pool, id), value.as_ref()?))))
    }
}

/// Counts by page; a page without an entry counts 0.
pub(super) type Counts = PerPage<u32>;

impl Counts {
    pub(super) fn of(&self, page: Page) -> u32 {
        self.get(page).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, page: Page) {
        *self.slot(page).get_or_insert(0) += 1;
    }

    /// Counts one less; 0 is no entry.
    pub(super) fn remove(&mut self, page: Page) {
        let slot = self.slot(page);
        *slot = slot.and_then(|count| count.checked_sub(1)).filter(|count| *count > 0);
    }
}
