import type { Address } from "viem";
import { DEMO_WALLET } from "./demo-agent.ts";
import { devAccount, privateKeyOf } from "./dev-accounts.ts";
import type { StartSettings } from "./settings.ts";

export interface BannerFacts {
  readonly settings: StartSettings;
  readonly baseUrl: string;
  readonly certificateUrl: string;
  readonly smartWallet: Address | null;
}

/** What a developer needs to get started: where everything is, and an account that can pay. */
export function renderBanner({ settings, baseUrl, certificateUrl, smartWallet }: BannerFacts): string {
  const payer = devAccount(0);
  return `
  Home                 ${baseUrl}/
  Certificate          ${certificateUrl}
                       (just bought over x402 by the demo agent)
  Its wallet           ${baseUrl}/verify?wallet=${DEMO_WALLET}
  Status               ${baseUrl}/status
  Base RPC             http://127.0.0.1:${settings.baseRpcPort}  (chain id 8453)
  Base Sepolia RPC     http://127.0.0.1:${settings.baseSepoliaRpcPort}  (chain id 84532)
  Data and logs        ${settings.dataDirectory}

  An account to pay with, 10,000 USDC and 100 ETH on both chains at first:
  Address              ${payer.address}
  Private key          ${privateKeyOf(payer)}${smartWallet === null ? "" : `\n  Smart wallet         ${smartWallet}  (ERC-1271, owned by ${devAccount(8).address})`}

  WARNING: these are local chains, but their ids, 8453 and 84532, are the real ones. What you sign here is
  valid on the real Base. Never sign here with a key that holds real money.
`;
}
