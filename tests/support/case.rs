//! A scenario with its expectations, and the verdict of running it.
//!
//! Symbols for pages (`p0`) are bound at first sight within one case and pool; two symbols never
//! stand for one page. A number in place of a symbol is the exact page id.

use core::ops::Range;
use std::collections::BTreeMap;

use crate::machine::{Outcome, Status, Value};
use crate::op::{Op, Seq};
use crate::runner::Harness;
use crate::spec::{NULL, Spec};
use crate::stream::Build;

/// A page in an expectation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sym {
    /// The NULL page.
    Null,
    /// Exactly this id.
    Exact(u32),
    /// A page bound by name.
    Name(String),
}

/// One expectation after a step.
#[allow(missing_docs, reason = "the fields are what the sentence above each variant names")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Status of the op.
    Status(Status),
    /// Largest count that could fit (with NEVER).
    Fits(u32),
    /// A pool's counter by its letter: U, C, F, or PEND.
    Count { pool: u16, counter: Counter, value: u32 },
    /// A cursor of a sequence.
    Cursor { seq: Seq, cursor: Cursor, value: u32 },
    /// A page table.
    Table { seq: Seq, group: u16, pages: Vec<Sym> },
    /// Columns of a row that are sealed pages.
    Sealed { seq: Seq, group: u16, columns: Range<u32> },
    /// The ring that the op wrote: pages that it shows, and its columns.
    Ring { first: u32, end: u32, pages: Vec<Sym> },
    /// Valid tokens in the last page of a group's table.
    Last { seq: Seq, group: u16, value: u32 },
    /// References of a page of pool 0.
    Refs { page: Sym, value: u32 },
    /// State of a page of pool 0.
    State { page: Sym, state: PageState },
    /// The plan's copies.
    Copies(Vec<(Sym, Sym, u32)>),
    /// The plan's positions, all consecutive.
    Positions { begin: u32, end: u32 },
    /// Hit length.
    Hit(u32),
    /// Pages freed or published.
    Pages(u32),
    /// Number of drained events of a kind.
    Events { kind: EventCount, value: u32 },
    /// The digest is that of the mark, or with none that before this op.
    Same(Option<String>),
}

/// A counter of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// U
    Used,
    /// C
    Cached,
    /// F
    Free,
    /// PEND
    Pending,
}

/// A cursor of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// Tokens that are part of it.
    Len,
    /// Tokens known to be final.
    Verified,
    /// Tokens in the index.
    Published,
}

/// State of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// No references, not indexed.
    Free,
    /// No references, indexed.
    Cached,
    /// At least one reference.
    Used,
}

/// What is counted in a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventCount {
    /// Stored records.
    Stored,
    /// Removed records.
    Removed,
    /// Cleared records.
    Cleared,
    /// Lost records.
    Lost,
}

/// One line of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Line number in the file, from 1.
    pub line: u32,
    /// The op, or none for a mark.
    pub op: Option<Op>,
    /// Name under which the digest is remembered.
    pub mark: Option<String>,
    /// Any status is right (programs from bytes).
    pub any_status: bool,
    /// What must hold afterwards.
    pub expects: Vec<Expect>,
}

/// A named scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// Short name such as `A01`.
    pub name: String,
    /// One line of explanation.
    pub title: String,
    /// Configuration.
    pub spec: Spec,
    /// Steps in order.
    pub steps: Vec<Step>,
}

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything held; the digest of the leading machine at the end.
    Passed(u64),
    /// The first thing that did not hold.
    Failed(String),
    /// A machine lacks a feature that the case needs.
    Skipped(String),
}

/// Pages of a pool above which not every op is followed by the full comparison.
const LARGE: u32 = 4096;

/// What one op did, for who watches a run.
pub struct Done<'r> {
    /// Index of the op among those of the case.
    pub nth: usize,
    /// The op as it was written.
    pub op: &'r Op,
    /// Its answer; `None` when it failed.
    pub status: Option<Status>,
    /// Digest of the leading machine after it.
    pub digest: u64,
}

/// Runs a case on the machines that `build` makes from its configuration.
pub fn run(case: &Case, build: Build<'_>) -> Verdict {
    watched(case, build, &mut |_| {})
}

/// As [`run`], with a panic of any machine turned into a failure, and each op told when it is done.
pub fn run_caught(case: &Case, build: Build<'_>, watch: &mut dyn FnMut(Done<'_>)) -> Verdict {
    let run = core::panic::AssertUnwindSafe(|| watched(case, build, watch));
    std::panic::catch_unwind(run)
        .unwrap_or_else(|cause| Verdict::Failed(format!("panic: {}", crate::stream::panic_text(cause.as_ref()))))
}

fn watched(case: &Case, build: Build<'_>, watch: &mut dyn FnMut(Done<'_>)) -> Verdict {
    let machines = match build(&case.spec) {
        Ok(machines) => machines,
        Err(reason) => return Verdict::Skipped(reason),
    };
    let mut harness = match Harness::new(&case.spec, machines) {
        Ok(harness) => harness,
        Err(reason) => return Verdict::Skipped(reason),
    };
    if case.spec.pools.iter().any(|pool| pool.pages > LARGE) {
        harness.thorough_every = 64;
    }
    let mut run = Run { harness, bound: BTreeMap::new(), marks: BTreeMap::new() };
    let mut nth = 0;
    for step in &case.steps {
        let result = run.step(step);
        if let Some(op) = &step.op {
            watch(Done { nth, op, status: result.as_ref().ok().copied(), digest: run.harness.digest() });
            nth += 1;
        }
        match result {
            Ok(_) => {}
            Err(Stop::Unsupported) => return Verdict::Skipped(format!("line {}: not supported", step.line)),
            Err(Stop::Fault(fault)) => return Verdict::Failed(format!("line {}: {fault}", step.line)),
        }
    }
    match run.harness.finish() {
        Ok(()) => Verdict::Passed(run.harness.digest()),
        Err(fault) => Verdict::Failed(format!("at the end: {fault}")),
    }
}

enum Stop {
    Unsupported,
    Fault(String),
}

struct Run {
    harness: Harness,
    bound: BTreeMap<String, u32>,
    marks: BTreeMap<String, u64>,
}

impl Run {
    fn step(&mut self, step: &Step) -> Result<Status, Stop> {
        let before = self.harness.digest();
        let outcome = match &step.op {
            Some(op) => self.harness.apply(op).map_err(Stop::Fault)?,
            None => Outcome::OK,
        };
        if step.any_status {
            return Ok(outcome.status);
        }
        if outcome.status == Status::Unsupported {
            return Err(Stop::Unsupported);
        }
        if let Some(mark) = &step.mark {
            self.marks.insert(mark.clone(), before);
        }
        let wanted = step.expects.iter().find_map(|e| match e {
            Expect::Status(status) => Some(*status),
            _ => None,
        });
        let wanted = wanted.unwrap_or(Status::Ok);
        if outcome.status != wanted {
            return Err(Stop::Fault(format!("status {:?}, expected {wanted:?}", outcome.status)));
        }
        for expect in &step.expects {
            self.expect(expect, &outcome, before).map_err(Stop::Fault)?;
        }
        Ok(outcome.status)
    }

    fn expect(&mut self, expect: &Expect, outcome: &Outcome, before: u64) -> Result<(), String> {
        match expect {
            Expect::Status(_) => Ok(()),
            Expect::Fits(n) => match &outcome.value {
                Value::Short(short) => same("fits", &short.fits, n),
                other => Err(format!("no shortage but {other:?}")),
            },
            Expect::Hit(n) => same("hit", &outcome.value, &Value::Hit(*n)),
            Expect::Pages(n) => same("pages", &outcome.value, &Value::Pages(*n)),
            Expect::Count { pool, counter, value } => {
                let view = self.harness.lead().pool(*pool);
                let found = match counter {
                    Counter::Used => view.used,
                    Counter::Cached => view.cached,
                    Counter::Free => view.free,
                    Counter::Pending => view.pending,
                };
                same(&format!("{counter:?} pages of pool {pool}"), &found, value)
            }
            Expect::Cursor { seq, cursor, value } => {
                let view = self.harness.lead().sequence(*seq).ok_or("no such sequence")?;
                let found = match cursor {
                    Cursor::Len => view.len,
                    Cursor::Verified => view.verified,
                    Cursor::Published => view.published,
                };
                same(&format!("{cursor:?}"), &found, value)
            }
            Expect::Table { seq, group, pages } => self.table(*seq, *group, pages),
            Expect::Sealed { seq, group, columns } => {
                let view = self.harness.lead().sequence(*seq).ok_or("no such sequence")?;
                same("sealed columns", view.sealed.get(usize::from(*group)).ok_or("no such group")?, columns)
            }
            Expect::Ring { first, end, pages } => match &outcome.value {
                Value::Ring(ring) => {
                    same("pages of the ring", &(ring.first, ring.end), &(*first, *end))?;
                    self.row(pages, &ring.row)
                }
                other => Err(format!("no ring but {other:?}")),
            },
            Expect::Last { seq, group, value } => {
                let view = self.harness.lead().sequence(*seq).ok_or("no such sequence")?;
                let page = self.harness.spec().groups.get(usize::from(*group)).ok_or("no such group")?.page_tokens;
                let last = if view.len == 0 { 0 } else { (view.len - 1) % page + 1 };
                same("last page length", &last, value)
            }
            Expect::Refs { page, value } => {
                let id = self.resolve(page)?;
                same("refs", &self.harness.lead().page(0, id).refs, value)
            }
            Expect::State { page, state } => {
                let id = self.resolve(page)?;
                let view = self.harness.lead().page(0, id);
                let found = match (view.used, view.indexed) {
                    (false, false) => PageState::Free,
                    (false, true) => PageState::Cached,
                    _ => PageState::Used,
                };
                same("state", &found, state)
            }
            Expect::Copies(list) => self.copies(outcome, list),
            Expect::Positions { begin, end } => match &outcome.value {
                Value::Plan(plan) => same("positions", &plan.positions, &(*begin as i32..*end as i32).collect()),
                other => Err(format!("no plan but {other:?}")),
            },
            Expect::Events { kind, value } => self.events(outcome, *kind, *value),
            Expect::Same(mark) => {
                let wanted = match mark {
                    None => before,
                    Some(name) => *self.marks.get(name).ok_or_else(|| format!("no mark {name}"))?,
                };
                same("digest", &self.harness.digest(), &wanted)
            }
        }
    }

    fn events(&self, outcome: &Outcome, kind: EventCount, value: u32) -> Result<(), String> {
        use crate::machine::EventKind;
        let Value::Events(events, lost) = &outcome.value else {
            return Err("not a drain".into());
        };
        let count = |wanted: EventKind| events.iter().filter(|e| e.kind == wanted).count() as u64;
        let found = match kind {
            EventCount::Stored => count(EventKind::Stored),
            EventCount::Removed => count(EventKind::Removed),
            EventCount::Cleared => count(EventKind::Cleared),
            EventCount::Lost => *lost,
        };
        same(&format!("{kind:?} events"), &found, &u64::from(value))
    }

    fn copies(&mut self, outcome: &Outcome, list: &[(Sym, Sym, u32)]) -> Result<(), String> {
        let Value::Plan(plan) = &outcome.value else {
            return Err(format!("no plan but {:?}", outcome.value));
        };
        let copies = plan.copies.clone();
        same("number of copies", &copies.len(), &list.len())?;
        for (copy, (src, dst, tokens)) in copies.iter().zip(list) {
            self.bind(src, copy.src)?;
            self.bind(dst, copy.dst)?;
            same("copied tokens", &copy.tokens, tokens)?;
        }
        Ok(())
    }

    fn table(&mut self, seq: Seq, group: u16, pages: &[Sym]) -> Result<(), String> {
        let view = self.harness.lead().sequence(seq).ok_or("no such sequence")?;
        let table = view.tables.get(usize::from(group)).ok_or("no such group")?.clone();
        self.row(pages, &table)
    }

    fn row(&mut self, pages: &[Sym], row: &[u32]) -> Result<(), String> {
        same("length of the row", &row.len(), &pages.len())?;
        pages.iter().zip(row).try_for_each(|(sym, page)| self.bind(sym, *page))
    }

    fn bind(&mut self, sym: &Sym, page: u32) -> Result<(), String> {
        match sym {
            Sym::Null => same("page", &page, &NULL),
            Sym::Exact(id) => same("page", &page, id),
            Sym::Name(name) => {
                if page == NULL {
                    return Err(format!("{name} is NULL"));
                }
                if let Some(&id) = self.bound.get(name) {
                    return same(name, &page, &id);
                }
                if let Some((other, _)) = self.bound.iter().find(|&(_, &id)| id == page) {
                    return Err(format!("{name} is page {page}, which is {other}"));
                }
                self.bound.insert(name.clone(), page);
                Ok(())
            }
        }
    }

    fn resolve(&self, sym: &Sym) -> Result<u32, String> {
        match sym {
            Sym::Null => Ok(NULL),
            Sym::Exact(id) => Ok(*id),
            Sym::Name(name) => self.bound.get(name).copied().ok_or_else(|| format!("{name} is not bound yet")),
        }
    }
}

fn same<T: PartialEq + core::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found:?}, expected {wanted:?}")) }
}
