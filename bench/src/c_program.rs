//! Programs in C that use the library through its header.

use std::{io, path::PathBuf, process::Command};

/// Where the compiled programs and the workload files are.
pub struct Programs {
    /// The folder of both.
    pub folder: PathBuf,
}

/// What `run` prints for one workload.
pub struct Line {
    /// CPU time of its thread.
    pub seconds: f64,
    /// Tokens of prompts that were cached.
    pub hit_tokens: u64,
    /// Pages evicted.
    pub evicted_pages: u64,
    /// The cache's digest at the end.
    pub digest: u64,
}

impl Line {
    fn parse(words: &[String]) -> Option<Self> {
        let [seconds, hits, evicted, digest] = words else { return None };
        Some(Self {
            seconds: seconds.parse().ok()?,
            hit_tokens: hits.parse().ok()?,
            evicted_pages: evicted.parse().ok()?,
            digest: u64::from_str_radix(digest, 16).ok()?,
        })
    }

    fn result(&self) -> (u64, u64, u64) {
        (self.hit_tokens, self.evicted_pages, self.digest)
    }
}

impl Programs {
    /// Words that a program prints.
    fn words(&self, program: &str, arguments: &[PathBuf]) -> io::Result<Vec<String>> {
        let output = Command::new(self.folder.join(program)).args(arguments).output()?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!("{program}: {}", why.trim())));
        }
        Ok(String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect())
    }

    /// The file of a workload.
    pub fn file(&self, workload: &str) -> PathBuf {
        self.folder.join(workload).with_extension("kvw")
    }

    /// Runs a workload, whose file has been written, twice: once to warm a new process up. The better time counts.
    ///
    /// # Errors
    /// What the program says when it fails, output that is none of its, or runs that differ.
    pub fn run(&self, workload: &str) -> io::Result<Line> {
        let words = self.words("run", &[self.file(workload), self.file(workload)])?;
        let mut lines = words.chunks(4).map(Line::parse);
        match (lines.next().flatten(), lines.next().flatten(), lines.next()) {
            (Some(first), Some(second), None) if first.result() == second.result() => {
                Ok(Line { seconds: first.seconds.min(second.seconds), ..first })
            }
            _ => Err(io::Error::other(format!("run: unexpected {words:?}"))),
        }
    }

    /// Numbers that `calls` prints: costs of single calls, in nanoseconds.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn calls(&self) -> io::Result<Vec<f64>> {
        let words = self.words("calls", &[])?;
        let numbers = words.iter().map(|word| word.parse());
        numbers.collect::<Result<_, _>>().map_err(|_| io::Error::other(format!("calls: cannot read {words:?}")))
    }
}
