//! dsh-agent
