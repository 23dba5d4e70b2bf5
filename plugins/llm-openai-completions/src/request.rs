//! The request.

use adapter_support::profile::Switch;
use adapter_support::{Call, Entry, Error, HttpRequest, Model, Pictures, Profile, error};

pub(crate) const SWITCHES: &[Switch] = &[Switch::flag("supportsStore")];

pub(crate) fn build(
    _profile: &Profile,
    _model: &Model,
    _call: &Call<'_>,
    _history: &[Entry<'_>],
    _pictures: &mut dyn Pictures,
) -> Result<HttpRequest, Error> {
    Err(error("UNAVAILABLE", "not written"))
}
