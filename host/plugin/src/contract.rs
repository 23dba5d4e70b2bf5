//! The versions of the contract that this host serves.
//!
//! A version is a module that adapts its bindings to `api` and `port`; what is
//! outside of `contract/` and `capability/` sees only those. Interfaces are
//! matched on the compatible track: a component for 0.1.7 runs on 0.1.0 as long
//! as it uses nothing that 0.1.0 has not.

use crate::component::Interface;
use crate::error::Error;

pub(crate) mod v0_1;

/// The newest version served.
pub(crate) const SERVED: &str = "0.1.0";

/// Refuses an interface of a contract version that this host does not serve.
pub(crate) fn check_version(interface: &Interface) -> Result<(), Error> {
    let Some(rest) = interface.name().strip_prefix("dsh:plugin/") else {
        return Ok(());
    };
    let version = rest
        .split_once('@')
        .map_or("(none)", |(_, version)| version);
    let patch = version.strip_prefix("0.1.");
    if patch
        .is_some_and(|patch| !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return Ok(());
    }
    Err(Error::ContractVersion {
        interface: interface.name().to_owned(),
        wanted: version.to_owned(),
        served: SERVED,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_served_track_is_taken_and_both_versions_are_named() {
        for name in [
            "dsh:plugin/tool@0.1.0",
            "dsh:plugin/tool@0.1.12",
            "wasi:cli/exit@0.2.6",
            "init",
        ] {
            check_version(&Interface::new(name)).unwrap();
        }
        for version in [
            "0.2.0", "1.0.0", "0.1", "0.1.", "0.1.0-rc", "0.10.0", "(none)",
        ] {
            let name = if version == "(none)" {
                "dsh:plugin/tool".to_owned()
            } else {
                format!("dsh:plugin/tool@{version}")
            };
            let error = check_version(&Interface::new(name)).unwrap_err();
            assert!(
                error.to_string().contains(version) && error.to_string().contains(SERVED),
                "{error}"
            );
        }
    }
}
