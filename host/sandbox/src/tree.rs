//! The processes below a process, and how they are signalled.
//!
//! Groups and sessions are no trees: a child leaves them as it likes. Parents
//! are, as long as orphans go to somebody below the root, which is what both
//! runners see to (a PID namespace, or a supervisor that is a subreaper).

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process, told from a later one with its number by its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Member {
    pub(crate) pid: i32,
    start: u64,
}

/// All that descend from `root`, without it. Those that end or fork meanwhile
/// may be missed; whoever kills looks again.
pub(crate) fn descendants(root: i32) -> Vec<Member> {
    let all: Vec<(Member, i32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| look(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    let mut below = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for (member, _) in all.iter().filter(|(_, of)| *of == parent) {
            // A number that was used twice during the scan must not loop.
            if !below.contains(member) {
                below.push(*member);
                parents.push(member.pid);
            }
        }
    }
    below
}

/// Sends a signal, unless the number means another process by now.
pub(crate) fn signal(member: Member, signal: Signal) {
    let Some(pid) = Pid::from_raw(member.pid) else {
        return;
    };
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    if look(member.pid).is_some_and(|(now, _)| now == member) {
        let _ = pidfd_send_signal(pidfd, signal);
    }
}

/// A process and its parent.
fn look(pid: i32) -> Option<(Member, i32)> {
    parse(
        pid,
        &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?,
    )
}

/// The name in parentheses may hold anything, so fields count from the last one.
fn parse(pid: i32, stat: &str) -> Option<(Member, i32)> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some((Member { pid, start }, parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_is_no_obstacle() {
        let stat = "7 (a) b (c) S 3 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        assert_eq!(
            parse(7, stat),
            Some((
                Member {
                    pid: 7,
                    start: 12345
                },
                3
            ))
        );
        assert_eq!(parse(7, "7 nonsense"), None);
    }

    #[test]
    fn a_child_is_found_below_its_parent_and_signalled() {
        use std::os::unix::process::ExitStatusExt;
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let me = i32::try_from(std::process::id()).unwrap();
        let member = descendants(me)
            .into_iter()
            .find(|member| member.pid == pid)
            .unwrap();
        signal(
            Member {
                start: member.start + 1,
                ..member
            },
            Signal::KILL,
        );
        assert_eq!(child.try_wait().unwrap(), None);
        signal(member, Signal::TERM);
        assert_eq!(child.wait().unwrap().signal(), Some(15));
    }
}
