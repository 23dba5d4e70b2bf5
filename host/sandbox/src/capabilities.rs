//! What root keeps of its powers in a sandbox: nothing that undoes a mount, opens
//! a file past one, or looks into a process outside.
//!
//! Bubblewrap keeps *all* of them, without a word, when it is told to keep one
//! that its caller has not (a container's root often lacks some). So only what
//! this process has is named, and the probe looks at what a command really gets.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// Name and number, as `linux/capability.h` has them: what it takes to work on
/// other users' files.
const KEPT: [(&str, u8); 6] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_FOWNER", 3),
    ("CAP_FSETID", 4),
    ("CAP_SETGID", 6),
    ("CAP_SETUID", 7),
];

/// What it keeps besides under full access.
const KEPT_IN_FULL: [(&str, u8); 11] = [
    ("CAP_KILL", 5),
    ("CAP_LINUX_IMMUTABLE", 9),
    ("CAP_NET_BIND_SERVICE", 10),
    ("CAP_NET_ADMIN", 12),
    ("CAP_NET_RAW", 13),
    ("CAP_IPC_LOCK", 14),
    ("CAP_SYS_CHROOT", 18),
    ("CAP_SYS_NICE", 23),
    ("CAP_SYS_RESOURCE", 24),
    ("CAP_AUDIT_WRITE", 29),
    ("CAP_SETFCAP", 31),
];

/// A set of capabilities, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capabilities(pub(crate) u64);

impl Capabilities {
    /// The effective ones, by what the kernel says of a process in `status`.
    pub(crate) fn of(status: &str) -> Option<Self> {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(line.trim(), 16).ok().map(Self)
    }

    /// This process's; none where that cannot be told.
    pub(crate) fn own() -> Self {
        Self(capabilities(None).map_or(0, |sets| sets.permitted.bits()))
    }

    fn has(self, number: u8) -> bool {
        self.0 & (1 << number) != 0
    }

    /// The names of those that a command keeps.
    pub(crate) fn kept(self, full: bool) -> impl Iterator<Item = &'static str> {
        let more: &[(&str, u8)] = if full { &KEPT_IN_FULL } else { &[] };
        let all = KEPT.iter().chain(more);
        all.filter(move |(_, number)| self.has(*number))
            .map(|(name, _)| *name)
    }

    /// Gives up the others, for this thread and what it becomes. Whoever cannot
    /// gain privileges cannot have them back, root or not.
    pub(crate) fn give_up_others(full: bool) -> Result<(), Errno> {
        let mut sets = capabilities(None)?;
        let kept = CapabilitySet::from_bits_retain(bits(full));
        let kept = kept & sets.permitted;
        if sets.permitted == kept && sets.inheritable.is_empty() {
            return Ok(());
        }
        sets.permitted = kept;
        sets.effective = kept & sets.effective;
        sets.inheritable = CapabilitySet::empty();
        set_capabilities(None, sets)
    }

    /// Are there others than a command may ever keep?
    pub(crate) fn exceed(self) -> bool {
        self.0 & !bits(true) != 0
    }
}

fn bits(full: bool) -> u64 {
    let more: &[(&str, u8)] = if full { &KEPT_IN_FULL } else { &[] };
    let all = KEPT.iter().chain(more);
    all.fold(0, |bits, (_, number)| bits | 1 << number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_process_has_is_named() {
        let has = Capabilities(0b1_0010_0011);
        assert_eq!(
            has.kept(false).collect::<Vec<_>>(),
            ["CAP_CHOWN", "CAP_DAC_OVERRIDE"]
        );
        assert_eq!(
            has.kept(true).collect::<Vec<_>>(),
            ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_KILL"]
        );
        assert_eq!(Capabilities(0).kept(true).count(), 0);
        assert_eq!(Capabilities(u64::MAX).kept(true).count(), 17);
    }

    #[test]
    fn what_undoes_a_mount_or_opens_past_one_is_too_much() {
        // DAC_READ_SEARCH, SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_ADMIN, MKNOD, BPF.
        for number in [2, 16, 17, 19, 21, 27, 39] {
            assert!(Capabilities(1 << number).exceed(), "{number}");
        }
        for number in [0, 1, 3, 4, 6, 7, 31] {
            assert!(!Capabilities(1 << number).exceed(), "{number}");
        }
    }

    #[test]
    fn they_are_read_from_a_process_s_status() {
        let status = "Name:\tcat\nCapPrm:\tff\nCapEff:\t00000000000000db\nCapBnd:\tff\n";
        assert_eq!(Capabilities::of(status), Some(Capabilities(0xdb)));
        assert_eq!(Capabilities::of("CapEff:\tx\n"), None);
        assert_eq!(Capabilities::of(""), None);
    }
}
