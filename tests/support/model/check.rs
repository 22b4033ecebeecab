//! The invariants of the semantics, checked on the model itself.

use super::Model;
use super::pages::Page;
use super::per_page::Counts;
use crate::spec::{NULL, Policy};

impl Model {
    pub(super) fn self_check(&self) -> Result<(), String> {
        self.check_states()?;
        self.check_cursors()?;
        self.check_rings()?;
        self.check_index()?;
        self.check_order()
    }

    fn check_states(&self) -> Result<(), String> {
        let kept = self.kept(&self.references());
        for (pool, own) in self.state.pools.iter().enumerate() {
            for id in 1..=own.pages {
                let page: Page = (pool, id);
                let free = own.free[id as usize];
                let cached = own.cached.contains(&id);
                let indexed = self.state.index.homes.contains(page);
                let expected = match (kept.contains(page), indexed) {
                    (true, _) => (false, false),
                    (false, true) => (false, true),
                    (false, false) => (true, false),
                };
                if (free, cached) != expected {
                    return Err(format!("1.1: page {id} of pool {pool}: free {free}, cached {cached}"));
                }
            }
        }
        Ok(())
    }

    fn check_cursors(&self) -> Result<(), String> {
        for (seq, sequence) in &self.state.sequences {
            if sequence.published > sequence.verified || sequence.verified > sequence.len() {
                return Err(format!("2.1: cursors of {seq:?}"));
            }
            if self.spec.anchor().is_some_and(|anchor| {
                sequence.published.div_ceil(self.page_tokens(anchor)) > sequence.tables[anchor].len() as u32
            }) {
                return Err(format!("2.5: {seq:?} has published more than its row of nodes"));
            }
            for (group, table) in sequence.tables.iter().enumerate() {
                if table.len() as u32 != self.row_end(sequence, group, sequence.len()) {
                    return Err(format!("6.1: table length of {seq:?} in group {group}"));
                }
                for index in self.resume_pages(group, sequence.len()) {
                    if table.get(index as usize) == Some(&NULL) {
                        return Err(format!("5.7: page {index} of {seq:?} in group {group} is missing"));
                    }
                }
            }
        }
        Ok(())
    }

    fn check_index(&self) -> Result<(), String> {
        let Some(anchor) = self.spec.anchor() else {
            return Ok(());
        };
        let step = self.page_tokens(anchor) as usize;
        let mut children = Counts::default();
        for (key, node) in &self.state.index.nodes {
            let Some(stored) = node.get(&(anchor, 0)) else {
                return Err("3.1: a node without the anchor's page".into());
            };
            let parent = key.upto((key.tokens.len() - step) as u32);
            if parent.tokens.is_empty() {
                continue;
            }
            let Some(above) = self.state.index.at(&parent, (anchor, 0)) else {
                return Err("3.1: a node without its parent".into());
            };
            let page = (self.home_pool(key, (anchor, 0)), stored.id);
            let parent = (self.home_pool(&parent, (anchor, 0)), above.id);
            if self.parent_page(page) != Some(parent) {
                return Err(format!("3.1: the parent of page {} is not page {}", stored.id, above.id));
            }
            children.add(parent);
            let used = |(pool, id): Page| self.state.pools[pool].is_used(id);
            if used(page) && !used(parent) {
                return Err(format!("3.4: page {} is used, its parent {} is not", stored.id, above.id));
            }
        }
        if self.state.index.children.iter().ne(children.iter()) {
            return Err("3.1: a node with another number of children".into());
        }
        Ok(())
    }

    fn check_order(&self) -> Result<(), String> {
        for (pool, own) in self.state.pools.iter().enumerate() {
            for &id in &own.cached {
                let linked = own.stamps.contains_key(&id);
                if !linked && self.policy((pool, id)) != Policy::Fifo {
                    return Err(format!("4.1: cached page {id} of pool {pool} is in no list"));
                }
                if let Some(parent) = self.parent_page((pool, id))
                    && self.rank(parent).class < self.rank((pool, id)).class
                {
                    return Err(format!("4.1: page {id} of pool {pool} is above its parent"));
                }
            }
        }
        Ok(())
    }
}
