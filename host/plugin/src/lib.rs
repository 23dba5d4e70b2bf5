//! dsh-plugin
