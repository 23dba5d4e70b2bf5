//! Credentials for model routes, from the profile's store.

use dsh_model::{Credentials, LlmFailure, Secret};
use dsh_profile::CredentialStore;

/// The store as the model layer asks for it: anew for each request.
pub(crate) struct FromStore(pub(crate) CredentialStore);

impl Credentials for FromStore {
    fn resolve(&self, reference: &str) -> Result<Option<Secret>, LlmFailure> {
        match self.0.resolve(reference) {
            Ok(found) => Ok(found.map(|(secret, _)| Secret::new(secret.expose()))),
            Err(error) => Err(LlmFailure::new("INVALID_CREDENTIAL", error.to_string())),
        }
    }
}
