//! The official components, inside the binary, so that nothing has to be
//! installed beside it.

/// A component as the build left it.
pub(crate) struct Embedded {
    /// Without the namespace: `tool-bash` of `dsh:tool-bash`.
    pub(crate) name: &'static str,
    pub(crate) wasm: &'static [u8],
    /// Machine code for this engine; empty where the build made none.
    pub(crate) code: &'static [u8],
}

static COMPONENTS: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/components.rs"));

/// The component of that name, `dsh:NAME`.
pub(crate) fn find(name: &str) -> Option<&'static Embedded> {
    let name = name.strip_prefix("dsh:")?;
    COMPONENTS.iter().find(|component| component.name == name)
}

/// Each with its machine code.
pub(crate) fn codes() -> Vec<(&'static str, &'static [u8])> {
    let all = COMPONENTS.iter();
    all.map(|component| (component.name, component.code))
        .collect()
}

/// The names of all of them.
pub(crate) fn names() -> Vec<String> {
    COMPONENTS
        .iter()
        .map(|component| format!("dsh:{}", component.name))
        .collect()
}
