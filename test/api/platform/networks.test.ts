import { afterEach, expect, test } from "vitest";
import {
  explorerAddressUrl,
  explorerTransactionUrl,
  linkLocally,
  sampleRpcUrl,
} from "../../../api/platform/networks.ts";

const [HASH, WALLET] = [`0x${"ab".repeat(32)}`, `0x${"cd".repeat(20)}`];

afterEach(() => linkLocally(null));

test("Links point to the network's explorer, or to the records of a local instance", () => {
  expect(explorerTransactionUrl("eip155:8453", HASH)).toBe(`https://basescan.org/tx/${HASH}`);
  expect(explorerAddressUrl("eip155:84532", WALLET)).toBe(`https://sepolia.basescan.org/address/${WALLET}`);
  linkLocally("http://localhost:4020");
  expect(explorerTransactionUrl("eip155:8453", HASH)).toBe(`http://localhost:4020/receipt?transaction=${HASH}`);
  expect(explorerAddressUrl("eip155:84532", WALLET)).toBe(`http://localhost:4020/verify?wallet=${WALLET}`);
});

test("Code samples use a public node, or the node of a local instance", () => {
  expect(sampleRpcUrl("eip155:8453")).toBe("https://mainnet.base.org");
  linkLocally("http://localhost:4020", { "eip155:8453": "http://127.0.0.1:8545" });
  expect(sampleRpcUrl("eip155:8453")).toBe("http://127.0.0.1:8545");
  expect(sampleRpcUrl("eip155:84532")).toBe("https://sepolia.base.org");
});
