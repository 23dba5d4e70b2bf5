//! libFuzzer around the targets of `tests/fuzz`. `DSH_FUZZ_TARGET` names one; with `DSH_FUZZ_SEEDS` its seeds are
//! first written into that directory.

#![no_main]

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use dsh_fuzz::{Target, corpus};
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<Target> = OnceLock::new();

fn target() -> &'static Target {
    TARGET.get_or_init(|| {
        let name = std::env::var("DSH_FUZZ_TARGET").expect("DSH_FUZZ_TARGET names a target");
        dsh_fuzz::target(&name).unwrap_or_else(|| panic!("there is no target {name:?}"))
    })
}

fuzz_target!(
    init: {
        let target = target();
        if let Some(dir) = std::env::var_os("DSH_FUZZ_SEEDS") {
            for (number, seed) in corpus::seeds(target).iter().enumerate() {
                let path = Path::new(&dir).join(format!("seed-{number:04}"));
                fs::write(path, seed).expect("the seeds' directory can be written");
            }
        }
    },
    |bytes: &[u8]| (target().run)(bytes)
);
