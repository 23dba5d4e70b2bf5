//! Rival processes in a small dose; `cargo xtask torture` lets them append a million times.

use std::path::Path;
use std::time::Duration;

use dsh_torture::writers::fight;

#[test]
fn rivals_never_write_a_seq_twice() {
    let program = Path::new(env!("CARGO_BIN_EXE_dsh-torture"));
    for rivals in [2, 4] {
        let done = fight(program, rivals, 1_500, 3, 11, Duration::from_secs(120)).unwrap();
        assert!(done.appends >= 1_500 && done.checks > 0, "{done:?}");
    }
}
