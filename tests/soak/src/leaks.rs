//! What a process holds, to be compared with what it held before.

use std::time::Duration;

use anyhow::{Context, Result, bail};

/// What must not grow, however many calls were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Open descriptors, without the memory images of components.
    pub descriptors: usize,
    /// Tasks of the runtime that are not done.
    pub tasks: usize,
}

impl Held {
    /// Now, of this process and the runtime that this runs on.
    ///
    /// # Errors
    /// A system without `/proc`.
    pub fn now() -> Result<Self> {
        let folder = std::fs::read_dir("/proc/self/fd").context("reading /proc/self/fd")?;
        // A component's memory image is made at its first use and stays as long as the component does: which of them a
        // warm-up uses is chance. The listing itself is one that is gone by now.
        let counts = |entry: &std::fs::DirEntry| {
            std::fs::read_link(entry.path())
                .is_ok_and(|to| !to.to_string_lossy().contains("wasm-memory-image"))
        };
        let descriptors = folder.filter_map(Result::ok).filter(counts).count() - 1;
        Ok(Self {
            descriptors,
            tasks: tokio::runtime::Handle::current()
                .metrics()
                .num_alive_tasks(),
        })
    }

    /// Waits until no more is held than here: closing goes on for a moment behind whoever asked for it.
    ///
    /// # Errors
    /// What is still held after ten seconds.
    pub async fn again(self) -> Result<()> {
        const LOOKS: u32 = 2000;
        let mut now = Self::now()?;
        for _ in 0..LOOKS {
            if now.descriptors <= self.descriptors && now.tasks <= self.tasks {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            now = Self::now()?;
        }
        bail!("before the calls {self:?}, afterwards {now:?}")
    }
}

/// Memory that is resident, in KiB.
///
/// # Errors
/// A system without `/proc`.
pub fn resident_kib() -> Result<u64> {
    let status =
        std::fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let word = line.and_then(|line| line.split_whitespace().nth(1));
    word.context("no VmRSS in /proc/self/status")?
        .parse()
        .context("VmRSS is no number")
}
