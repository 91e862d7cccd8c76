import { readFileSync } from "node:fs";
import { type Address, type Hex, parseAbi } from "viem";
import { CREATEX, SETTLEMENT_BATCH } from "../../../contracts/settlement-batch.ts";
import type { AnvilClient } from "../../../scripts/embedded/anvil.ts";
import { installCreateX } from "../../../scripts/embedded/createx.ts";

const ARTIFACT = new URL("../../../artifacts/contracts/SettlementBatch.sol/SettlementBatch.json", import.meta.url);
const DEPLOYER: Address = "0x00000000000000000000000000000000000ba7c4";
const CREATEX_ABI = parseAbi(["function deployCreate2(bytes32 salt, bytes initCode) payable returns (address)"]);

/** Deploys the settlement batch, which has been compiled, to where it is on every chain. Faster than Ignition. */
export async function deploySettlementBatch(client: AnvilClient): Promise<void> {
  await installCreateX(client);
  const { bytecode } = JSON.parse(readFileSync(ARTIFACT, "utf8")) as { bytecode: Hex };
  await client.impersonateAccount({ address: DEPLOYER });
  await client.setBalance({ address: DEPLOYER, value: 10n ** 18n });
  const hash = await client.writeContract({
    account: DEPLOYER,
    address: CREATEX,
    abi: CREATEX_ABI,
    functionName: "deployCreate2",
    args: [SETTLEMENT_BATCH.salt, bytecode],
  });
  const { status } = await client.waitForTransactionReceipt({ hash });
  if (status !== "success") throw new Error("CreateX did not deploy the settlement batch.");
}
