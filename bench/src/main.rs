//! `kvf-bench FOLDER [W1 .. W6]... [operations]`: kvfolio beside other managers on the same work.
//!
//! The folder has the programs `run` and `calls`; workload files are written there for as long as they are needed. Without
//! names everything runs. `RUNS` (default 5) is how often; contestants take turns. A missed budget is printed and is no
//! failure, since time is noisy; wrong results are.

mod budget;
mod c_program;
mod calls;
mod compare;
mod floor;
mod kvbm;
mod operations;
mod ours;
mod peer;
mod router;

use core::error::Error;
use std::env;

use kvfolio_examples::workload::Workload;

use c_program::Programs;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let usage = "usage: kvf-bench FOLDER [W1 .. W6]... [operations]";
    let programs = Programs { folder: arguments.next().ok_or(usage)?.into() };
    let names: Vec<String> = arguments.collect();
    if let Some(name) = names.iter().find(|name| *name != "operations" && !Workload::NAMES.contains(&name.as_str())) {
        return Err(format!("{name}: not a workload; {usage}").into());
    }
    let asked = |name: &str| names.is_empty() || names.iter().any(|known| known == name);
    let runs = env::var("RUNS").ok().map_or(Ok(5), |runs| runs.parse::<u32>())?.max(1);
    println!("best of {runs} runs, contestants in turn; * = the floor that counts");
    for name in Workload::NAMES.into_iter().filter(|name| asked(name)) {
        match Workload::named(name)? {
            Some(work) => compare::workload(&work, &programs, runs)?,
            None => println!("\n{name}  skipped: no trace below KVF_DATA"),
        }
    }
    if asked("operations") {
        operations::run(&programs, runs)?;
    }
    Ok(())
}
