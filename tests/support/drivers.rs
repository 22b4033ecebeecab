//! The machines that are compared with the model.

use crate::c_machine::CMachine;
use crate::machine::Machine;
use crate::rust_machine::{Flavour, RustMachine};
use crate::spec::Spec;

/// All of them.
///
/// # Errors
/// Says which feature of the configuration a machine lacks.
pub fn all(spec: &Spec) -> Result<Vec<Box<dyn Machine>>, String> {
    Ok(vec![
        Box::new(RustMachine::new(spec, Flavour::Plain)?),
        Box::new(RustMachine::new(spec, Flavour::Sugar)?),
        Box::new(CMachine::new(spec)?),
    ])
}

/// None: the model alone.
///
/// # Errors
/// Never.
pub fn none(_spec: &Spec) -> Result<Vec<Box<dyn Machine>>, String> {
    Ok(Vec::new())
}
