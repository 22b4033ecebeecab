//! The text form of scenarios, one op or expectation per line; see `GRAMMAR.md`.
//!
//! `parse(print(case)) == case` for every case without expectations.

mod expect;
mod header;
mod ops;
mod print;
mod tokens;

pub(crate) use tokens::runs;

pub use print::{print_op, print_program, print_spec};

use crate::case::{Case, Step};
use crate::spec::NamespaceSpec;

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Line number, from 1.
    pub line: u32,
    /// What is wrong with it.
    pub message: String,
}

impl core::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// Reads all cases of a file.
pub fn parse(source: &str) -> Result<Vec<Case>, SyntaxError> {
    let lines: Vec<(u32, &str)> = (1..).zip(source.lines()).collect();
    let mut reader = Reader { cases: Vec::new(), fresh: tokens::FIRST_FRESH };
    reader.block(&lines, None)?;
    for case in &mut reader.cases {
        if case.spec.namespaces.is_empty() {
            case.spec.namespaces.push(NamespaceSpec::default());
        }
    }
    Ok(reader.cases)
}

/// Reads one op.
pub fn parse_op(line: &str) -> Result<crate::op::Op, String> {
    let mut fresh = tokens::FIRST_FRESH;
    ops::parse(line, &mut fresh)
}

struct Reader {
    cases: Vec<Case>,
    fresh: u32,
}

impl Reader {
    fn block(&mut self, lines: &[(u32, &str)], round: Option<u32>) -> Result<(), SyntaxError> {
        let mut at = 0;
        while let Some(&(number, raw)) = lines.get(at) {
            at += 1;
            let line = raw.split('#').next().unwrap_or("").trim();
            if let Some(count) = line.strip_prefix("REPEAT ") {
                let fault = |message: &str| SyntaxError { line: number, message: message.into() };
                let count: u32 = count.trim().parse().map_err(|_| fault("REPEAT needs a number"))?;
                let rest = lines.get(at..).unwrap_or_default();
                let end =
                    rest.iter().position(|(_, l)| l.trim() == "END").ok_or_else(|| fault("REPEAT without END"))?;
                let body = rest.get(..end).unwrap_or_default();
                for i in 0..count {
                    self.block(body, Some(i))?;
                }
                at += end + 1;
                continue;
            }
            let replaced = round.map(|i| line.replace("$i", &i.to_string()));
            let line = replaced.as_deref().unwrap_or(line);
            self.line(number, line).map_err(|message| SyntaxError { line: number, message })?;
        }
        Ok(())
    }

    fn line(&mut self, number: u32, line: &str) -> Result<(), String> {
        if line.is_empty() {
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix("CASE ") {
            let (name, title) = rest.split_once(' ').unwrap_or((rest, ""));
            self.fresh = tokens::FIRST_FRESH;
            let mut case = Case { name: name.into(), title: title.trim().into(), ..Case::default() };
            case.spec.namespaces.clear();
            self.cases.push(case);
            return Ok(());
        }
        let case = self.cases.last_mut().ok_or("a file begins with CASE")?;
        if header::parse(line, &mut case.spec)? {
            return if case.steps.is_empty() { Ok(()) } else { Err("configuration after the first op".into()) };
        }
        let (op, expects) = line.split_once("=>").map_or((line, None), |(op, e)| (op.trim(), Some(e)));
        if let Some(mark) = op.strip_prefix("MARK ") {
            case.steps.push(Step { line: number, mark: Some(mark.trim().into()), ..Step::default() });
        } else if !op.is_empty() {
            let op = ops::parse(op, &mut self.fresh)?;
            case.steps.push(Step { line: number, op: Some(op), ..Step::default() });
        }
        let Some(expects) = expects else {
            return Ok(());
        };
        let step = case.steps.last_mut().ok_or("an expectation before the first op")?;
        step.line = number;
        expect::parse(expects, step)
    }
}
