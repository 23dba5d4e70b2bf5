//! Recorded cases, played natively. The test plays the host's part: it sends
//! nothing, feeds the recorded body, and makes the last chunk where the adapter
//! leaves that to it.
