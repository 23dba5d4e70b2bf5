//! libFuzzer around the targets of `tests/fuzz` and `plugins/fuzz`. `DSH_FUZZ_TARGET` names one; with `DSH_FUZZ_SEEDS`
//! its seeds are first written into that directory.

#![no_main]

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

struct Target {
    run: fn(&[u8]),
    seeds: Vec<Vec<u8>>,
}

static TARGET: OnceLock<Target> = OnceLock::new();

fn target() -> &'static Target {
    TARGET.get_or_init(|| {
        let name = std::env::var("DSH_FUZZ_TARGET").expect("DSH_FUZZ_TARGET names a target");
        let of_log = dsh_fuzz::target(&name).map(|target| Target {
            run: target.run,
            seeds: dsh_fuzz::corpus::seeds(&target),
        });
        let of_adapter = || {
            adapter_fuzz::target(&name).map(|target| Target {
                run: target.run,
                seeds: adapter_fuzz::seeds::of(&target),
            })
        };
        of_log
            .or_else(of_adapter)
            .unwrap_or_else(|| panic!("there is no target {name:?}"))
    })
}

fuzz_target!(
    init: {
        let target = target();
        if let Some(dir) = std::env::var_os("DSH_FUZZ_SEEDS") {
            for (number, seed) in target.seeds.iter().enumerate() {
                let path = Path::new(&dir).join(format!("seed-{number:04}"));
                fs::write(path, seed).expect("the seeds' directory can be written");
            }
        }
    },
    |bytes: &[u8]| (target().run)(bytes)
);
