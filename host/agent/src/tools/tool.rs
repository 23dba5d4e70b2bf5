//! What a tool is, native or component.

use async_trait::async_trait;
use dsh_plugin::api::{Concurrency, PluginError, ToolCall, ToolOutcome};
use dsh_session::Json;
use tokio_util::sync::CancellationToken;

use super::schema::Schema;
use crate::dispatch::Standing;
use crate::error::AgentError;

/// A tool as the model and the scheduler know it.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// The name that the model calls.
    pub name: String,
    /// `{name, description, parameters}`, as it goes on the wire and into the header.
    pub wire: Json,
    /// Of the arguments.
    pub parameters: Schema,
    /// Of the structured result, where the tool declares one.
    pub output: Option<Schema>,
    /// The timeout policy's bound on one run, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Whether calls may overlap others.
    pub concurrency: Concurrency,
}

impl ToolSpec {
    /// A tool that nothing but its schema is known of: exclusive, without a bound.
    ///
    /// # Errors
    /// [`AgentError::UnsupportedSchema`], [`AgentError::Json`].
    pub fn new(name: &str, description: &str, parameters: &str) -> Result<Self, AgentError> {
        let parameters = read(name, "parameters", parameters)?;
        let unsupported = |what| AgentError::UnsupportedSchema {
            tool: name.to_owned(),
            what,
        };
        let compiled = Schema::compile_parameters(parameters.value()).map_err(unsupported)?;
        let wire = Json::object(|tool| {
            tool.str("name", name)
                .str("description", description)
                .json("parameters", &parameters);
        });
        Ok(Self {
            name: name.to_owned(),
            wire,
            parameters: compiled,
            output: None,
            timeout_ms: None,
            concurrency: Concurrency::Never,
        })
    }

    /// With a schema for the structured result.
    ///
    /// # Errors
    /// As [`ToolSpec::new`].
    pub fn with_output(mut self, schema: &str) -> Result<Self, AgentError> {
        let schema = read(&self.name, "output", schema)?;
        let unsupported = |what| AgentError::UnsupportedSchema {
            tool: self.name.clone(),
            what,
        };
        self.output = Some(Schema::compile(schema.value()).map_err(unsupported)?);
        Ok(self)
    }

    /// With a bound on one run.
    #[must_use]
    pub fn with_timeout_ms(mut self, timeout_ms: Option<u64>) -> Self {
        self.timeout_ms = timeout_ms;
        self
    }

    /// With another rule for overlapping.
    #[must_use]
    pub fn with_concurrency(mut self, concurrency: Concurrency) -> Self {
        self.concurrency = concurrency;
        self
    }
}

fn read(tool: &str, what: &str, text: &str) -> Result<Json, AgentError> {
    Json::normalise(text).map_err(|source| AgentError::Json {
        subject: format!("{what} of tool \"{tool}\""),
        source,
    })
}

/// For whom a call runs, and when to give up.
#[derive(Clone, Debug, Default)]
pub struct CallScope {
    /// Cancelled when the turn is, or when the call's time is over. A tool that
    /// sees it ends soon; the scheduler waits for it either way.
    pub cancel: CancellationToken,
    /// The time of the log's newest event, milliseconds since the epoch.
    pub time_ms: i64,
}

/// One tool.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What it is called and takes. Does not change while the tool is registered.
    fn spec(&self) -> &ToolSpec;

    /// Whose words the context messages of its outcomes are.
    fn standing(&self) -> Standing {
        Standing::Host
    }

    /// Whether this call may overlap others; asked only where the spec says
    /// [`Concurrency::Ask`], and again before each start.
    async fn may_overlap(&self, _call: &ToolCall, _scope: &CallScope) -> bool {
        false
    }

    /// Runs one call, whose arguments are valid by the spec's schema.
    ///
    /// # Errors
    /// Becomes the text `Error: <message>`, with the code where there is one.
    async fn run(&self, call: ToolCall, scope: &CallScope) -> Result<ToolOutcome, PluginError>;
}
