import type { Address } from "viem";
import { DEMO_WALLET } from "./demo-agent.ts";
import { devAccount, privateKeyOf } from "./dev-accounts.ts";
import type { StartSettings } from "./settings.ts";

export interface BannerFacts {
  readonly settings: StartSettings;
  readonly baseUrl: string;
  readonly certificateUrl: string;
  readonly smartWallet: Address;
}

/** Renders the URLs, and an account that can pay, for a developer to get started. */
export function renderBanner({ settings, baseUrl, certificateUrl, smartWallet }: BannerFacts): string {
  const payer = devAccount(0);
  return `
  Home                 ${baseUrl}/
  Certificate          ${certificateUrl}
                       (the demo agent just bought it over x402)
  Its wallet           ${baseUrl}/verify?wallet=${DEMO_WALLET}
  Status               ${baseUrl}/status
  Rehearsals           ${baseUrl}/docs#behavioral-tests
                       (POST /rehearsal/scam/start, paid on the local Base Sepolia; nothing is recorded)
  Base RPC             http://127.0.0.1:${settings.baseRpcPort}  (chain id 8453)
  Base Sepolia RPC     http://127.0.0.1:${settings.baseSepoliaRpcPort}  (chain id 84532)
  Data and logs        ${settings.dataDirectory}

  An account to pay with, funded with 10,000 USDC and 100 ETH on both chains:
  Address              ${payer.address}
  Private key          ${privateKeyOf(payer)}
  Smart wallet         ${smartWallet}  (ERC-1271, owned by ${devAccount(8).address})

  WARNING: these are local chains, but they use the real chain ids, 8453 and 84532. Anything you sign here is
  valid on the real chains. Never sign here with a key that holds real money.
`;
}
