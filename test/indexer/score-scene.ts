import { type Address, encodeFunctionData, type Hex, keccak256, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { MULTICALL3 } from "../../api/platform/chain/read-at-block.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import type { TestChain } from "../support/chain/chain.ts";
import { authorization, signAuthorization } from "../support/payments/signing.ts";
import { MULTICALL_ABI, SERVICE } from "./history.ts";

const DAY_SECONDS = 86_400;
const RELAYER = devAccount(9).address;
/** The sources of money: accounts with funds before the first transfer. */
const EXCHANGES = [0, 1, 2, 3, 4, 5, 6].map((index) => devAccount(index));

/** Numbered names: `names("merchant", 3)` are `merchant 1` to `merchant 3`. */
export const names = (kind: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${kind} ${index + 1}`);

/** The key of each name. `exchange 1` to `exchange 7` are the chain's funded accounts instead. */
const keyOf = (name: string) => privateKeyToAccount(keccak256(toHex(name)));
const accountOf = (name: string) => {
  const exchange = EXCHANGES[Number(name.match(/^exchange (\d)$/)?.[1] ?? 0) - 1];
  return exchange ?? keyOf(name);
};
export const walletOf = (name: string): Address => accountOf(name).address.toLowerCase() as Address;

interface Terms {
  readonly from: string;
  readonly to: Address;
  readonly value: bigint;
}

async function authorizedCall(chain: TestChain, { from, to, value }: Terms): Promise<Hex> {
  const payer = keyOf(from);
  const message = authorization({ from: payer.address, to, value });
  const signature = await signAuthorization(payer, chain.network, message);
  const args = [payer.address, to, value, message.validAfter, message.validBefore, message.nonce, signature] as const;
  return encodeFunctionData({ abi: USDC_ABI, functionName: "transferWithAuthorization", args });
}

export type Scene = ReturnType<typeof createScene>;

/**
 * An economy on a chain that mines on request. Payments wait until `mine` and then share a block in the given order.
 */
export function createScene(chain: TestChain) {
  const usdc = chain.network.usdc.address;
  let waiting: Promise<Hex>[] = [];
  const sent: Hex[] = [];
  const send = async (account: Address, to: Address, data: Hex) => {
    sent.push(await chain.client.sendTransaction({ account, to, data, gas: 4_000_000n }));
  };
  const authorize = (terms: Terms) => waiting.push(authorizedCall(chain, terms));
  const flush = async () => {
    const calls = await Promise.all(waiting);
    waiting = [];
    for (let n = 0; n < calls.length; n += 25) {
      const args = [
        calls.slice(n, n + 25).map((callData) => ({ target: usdc, allowFailure: false, callData })),
      ] as const;
      await send(RELAYER, MULTICALL3, encodeFunctionData({ abi: MULTICALL_ABI, functionName: "aggregate3", args }));
    }
  };
  return {
    /** Authorized payments in atomic USDC, relayed in batches. */
    pay: (from: string, payees: readonly string[], value: bigint) => {
      for (const payee of payees) authorize({ from, to: walletOf(payee), value });
    },
    payService: (from: string, value: bigint) => authorize({ from, to: SERVICE, value }),
    /** Plain transfers from an exchange. */
    fund: async (exchange: string, wallets: readonly string[], value: bigint) => {
      for (const name of wallets) {
        const args = [walletOf(name), value] as const;
        await send(
          accountOf(exchange).address,
          usdc,
          encodeFunctionData({ abi: USDC_ABI, functionName: "transfer", args }),
        );
      }
    },
    /** Mines a block at noon of the day, counted from 1970. @throws if one of its transactions failed */
    mine: async (day: number) => {
      await flush();
      await chain.client.setNextBlockTimestamp({ timestamp: BigInt(day * DAY_SECONDS + DAY_SECONDS / 2) });
      await chain.mine();
      for (const hash of sent.splice(0)) {
        const { status } = await chain.client.getTransactionReceipt({ hash });
        if (status !== "success") throw new Error(`${hash} failed`);
      }
    },
  };
}
