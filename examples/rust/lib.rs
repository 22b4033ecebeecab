//! Examples of kvfolio: engines, firmware and tools.
