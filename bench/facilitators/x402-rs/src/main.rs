//! x402-rs's own facilitator for `exact` on one chain. Reads `BASE_RPC_URL`, `FACILITATOR_PRIVATE_KEY`, `CHAIN_ID`, `PORT`.
use std::{collections::HashMap, env, error::Error, sync::Arc};

use serde_json::{from_value, json};
use x402_chain_eip155::{
    V2Eip155Exact,
    chain::{Eip155ChainProvider, Eip155ChainReference, config::Eip155ChainConfig},
};
use x402_facilitator_local::{FacilitatorLocal, handlers};
use x402_types::{
    chain::{ChainRegistry, FromConfig},
    scheme::{
        SchemeBlueprints, SchemeRegistry, X402SchemeFacilitator, X402SchemeFacilitatorBuilder,
        X402SchemeId,
    },
};

type Provider = Arc<Eip155ChainProvider>;

/// The crate's scheme, for the provider of one chain.
struct Exact;

impl X402SchemeId for Exact {
    fn namespace(&self) -> &str {
        "eip155"
    }
    fn scheme(&self) -> &str {
        "exact"
    }
}

impl X402SchemeFacilitatorBuilder<&Provider> for Exact {
    fn build(
        &self,
        provider: &Provider,
        config: Option<serde_json::Value>,
    ) -> Result<Box<dyn X402SchemeFacilitator>, Box<dyn Error>> {
        V2Eip155Exact.build(provider.clone(), config)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let chain_id: u64 = env::var("CHAIN_ID")?.parse()?;
    let chain = Eip155ChainConfig {
        chain_reference: Eip155ChainReference::new(chain_id),
        inner: from_value(
            json!({ "signers": ["$FACILITATOR_PRIVATE_KEY"], "rpc": [{ "http": "$BASE_RPC_URL" }] }),
        )?,
    };
    let provider = Arc::new(Eip155ChainProvider::from_config(&chain).await?);
    let schemes = from_value(json!([{ "id": "v2-eip155-exact", "chains": chain.chain_id() }]))?;
    let registry = SchemeRegistry::build(
        ChainRegistry::new(HashMap::from([(chain.chain_id(), provider)])),
        SchemeBlueprints::new().and_register(Exact),
        &schemes,
    );
    let app = handlers::routes().with_state(Arc::new(FacilitatorLocal::new(registry)));
    let port: u16 = env::var("PORT")?.parse()?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("ready");
    axum::serve(listener, app).await?;
    Ok(())
}
