//! A row's grants as they are written: what [`Grants::parse`] reads back as the
//! same.

use serde_json::{Map, Value, json};

use super::{Budget, Grants, KvGrant, Programs, WorkspaceGrant};

impl Grants {
    /// An object by name, with each grant's parameters in their full shape.
    #[must_use]
    pub fn to_value(&self) -> Map<String, Value> {
        self.names
            .iter()
            .map(|name| (name.clone(), self.parameters(name)))
            .collect()
    }

    fn parameters(&self, name: &str) -> Value {
        match name {
            "spill" => quota(self.spill_quota),
            "attachments" => quota(self.attachments_quota),
            "workspace" => workspace(&self.workspace),
            "process" => match &self.programs {
                Programs::Shell => json!("shell"),
                Programs::Named(programs) => json!(programs),
            },
            "journal" => json!(self.kinds),
            "inbox" => json!({"wake": self.wakes}),
            "kv" => kv(&self.kv),
            "agents" => budget(self.agents),
            "jobs" => budget(self.jobs),
            "llm" => match self.llm_tokens {
                Some(tokens) => json!({"tokens": tokens}),
                None => json!(true),
            },
            "http" => json!(self.http),
            "secret" => self
                .secrets
                .iter()
                .map(|secret| {
                    json!({"name": secret.name, "header": secret.header, "host": secret.host})
                })
                .collect(),
            "route" => self
                .routes
                .iter()
                .map(|route| {
                    let mut value = json!({"provider": route.provider, "origins": route.origins});
                    if let Some(credential) = &route.credential {
                        value["credential"] = json!(credential);
                    }
                    value
                })
                .collect(),
            "observe" => json!(self.observe),
            "decide" => json!(self.decide),
            "tool-names" => json!(self.tool_names),
            "dir" => self
                .dirs
                .iter()
                .map(|dir| json!({"path": dir.path, "mode": if dir.write { "rw" } else { "ro" }}))
                .collect(),
            "env" => json!(self.env),
            _ => json!(true),
        }
    }
}

fn quota(quota: Option<u64>) -> Value {
    quota.map_or(json!(true), |quota| json!({"quota": quota}))
}

fn workspace(grant: &WorkspaceGrant) -> Value {
    match (&grant.roots, grant.write) {
        (None, false) => json!(true),
        (None, true) => json!({"write": true}),
        (Some(roots), write) => json!({"read": roots, "write": write}),
    }
}

fn kv(grant: &KvGrant) -> Value {
    let scopes: Vec<_> = grant.scopes.iter().map(|scope| scope.as_str()).collect();
    json!({"quota": grant.quota, "scopes": scopes})
}

fn budget(budget: Budget) -> Value {
    let members = [
        ("depth", budget.depth),
        ("number", budget.number),
        ("budget", budget.budget),
    ];
    let members: Map<String, Value> = members
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), json!(value?))))
        .collect();
    if members.is_empty() {
        json!(true)
    } else {
        Value::Object(members)
    }
}
