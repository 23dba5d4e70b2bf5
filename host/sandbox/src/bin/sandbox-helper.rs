//! The helper alone, for this crate's tests; `dsh` is its own.

fn main() {
    let mut args = std::env::args_os().skip(1);
    assert_eq!(
        args.next().as_deref(),
        Some(std::ffi::OsStr::new(dsh_sandbox::HELPER_ARGUMENT))
    );
    dsh_sandbox::landlock_exec_main(args.collect())
}
