//! Buys once with the stock Rust client: `retry-client client <client> <wrapper> <url>`, PAYER_PRIVATE_KEY=0x…
use alloy_signer_local::PrivateKeySigner;
use reqwest::Client;
use std::{env, sync::Arc};
use x402_chain_eip155::V2Eip155ExactClient;
use x402_reqwest::{ReqwestWithPayments, ReqwestWithPaymentsBuild, X402Client};

#[tokio::main]
async fn main() {
    let url = env::args().nth(4).expect("a URL");
    let key: PrivateKeySigner = env::var("PAYER_PRIVATE_KEY").expect("PAYER_PRIVATE_KEY").parse().expect("a key");
    let payments = X402Client::new().register(V2Eip155ExactClient::new(Arc::new(key)));
    let http = Client::new().with_payments(payments).build();
    match http.post(url).send().await {
        Ok(answer) if answer.status().is_success() => println!("answered"),
        Ok(answer) => println!("gave up: status {}", answer.status()),
        Err(error) => println!("gave up: {error}"),
    }
}
