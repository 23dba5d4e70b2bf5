//! Opening a file of a granted folder: files and folders, nothing else.
//!
//! Opening a pipe waits for its other end, on a thread that nothing can take
//! back, and a device may do anything. So what lies at the path is looked at
//! first. Who could put a pipe there in between is no component: none can make
//! one.

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView as _};
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, DescriptorFlags, DescriptorType, ErrorCode, Host as _, HostDescriptor as _, OpenFlags,
    PathFlags,
};

use crate::instance::State;

/// As the library that implements it names it; later and earlier patches of it are
/// found under this name, too.
const INTERFACE: &str = "wasi:filesystem/types@0.2.12";

type Arguments = (
    Resource<Descriptor>,
    PathFlags,
    String,
    OpenFlags,
    DescriptorFlags,
);

/// Links `wasi:filesystem/types`.
pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, wasmtime_wasi::filesystem::WasiFilesystem>(
        linker,
        State::files_counted,
    )?;
    linker.allow_shadowing(true);
    let mut instance = linker.instance(INTERFACE)?;
    instance.func_wrap_async(
        "[method]descriptor.open-at",
        |mut store, arguments: Arguments| {
            Box::new(async move {
                let opened = open(store.data_mut(), arguments).await;
                let opened = match opened {
                    Ok(opened) => Ok(opened),
                    Err(error) => Err(store.data_mut().filesystem().convert_error_code(error)?),
                };
                Ok((opened,))
            })
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

async fn open(
    state: &mut State,
    (folder, path_flags, path, how, flags): Arguments,
) -> Result<Resource<Descriptor>, FsError> {
    let mut files = state.files_counted();
    let same = Resource::new_borrow(folder.rep());
    // What is not there may be made.
    if let Ok(found) = files.stat_at(same, path_flags, path.clone()).await
        && !ordinary(found.type_)
    {
        return Err(ErrorCode::NotPermitted.into());
    }
    files.open_at(folder, path_flags, path, how, flags).await
}

/// Whether opening it does not wait for anybody.
fn ordinary(kind: DescriptorType) -> bool {
    matches!(
        kind,
        DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink
    )
}
