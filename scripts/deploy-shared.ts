import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";
import { type Address, type Hex, keccak256 } from "viem";
import { LOG_ANCHOR } from "../contracts/log-anchor.ts";
import { SETTLEMENT_BATCH } from "../contracts/settlement-batch.ts";
import LogAnchor from "../ignition/modules/LogAnchor.ts";
import SettlementBatch from "../ignition/modules/SettlementBatch.ts";
import { asDeployer, type Connection } from "./deploy-connection.ts";
import type { DeploySettings } from "./deploy-settings.ts";

interface Plan {
  readonly deploymentId: string;
  readonly strategy: "create2";
  readonly strategyConfig: { readonly salt: Hex };
}

/** A contract without an owner, at the same address on every chain. */
interface SharedContract {
  readonly title: string;
  /** Of Ignition's journal. */
  readonly journal: string;
  readonly place: { readonly address: Address; readonly codeHash: Hex; readonly salt: Hex };
  readonly create: (ignition: Connection["ignition"], plan: Plan) => Promise<unknown>;
}

/**
 * Deploys a shared contract through CreateX, or finds it: its address is the same for every deployer, and nothing is
 * sent if it has code. Returns that address.
 * @throws Error if the chain has no CreateX, or the code at the address is another one.
 */
const deployShared =
  ({ title, journal, place: { address, codeHash, salt }, create }: SharedContract) =>
  (hre: HardhatRuntimeEnvironment, settings: DeploySettings): Promise<Address> =>
    asDeployer(hre, settings, async (connection) => {
      const client = await connection.viem.getPublicClient();
      if ((await client.getCode({ address })) === undefined)
        await create(connection.ignition, {
          deploymentId: `${journal}-${settings.facts.chainId}`,
          strategy: "create2",
          strategyConfig: { salt },
        });
      const code = await client.getCode({ address });
      if (code === undefined) throw new Error(`The ${title} was not deployed to ${address}.`);
      if (keccak256(code) !== codeHash) throw new Error(`The code at ${address} is not the ${title}'s.`);
      return address;
    });

export const deploySettlementBatch = deployShared({
  title: "settlement batch",
  journal: "settlement-batch",
  place: SETTLEMENT_BATCH,
  create: (ignition, plan) => ignition.deploy(SettlementBatch, plan),
});

export const deployLogAnchor = deployShared({
  title: "log anchor",
  journal: "log-anchor",
  place: LOG_ANCHOR,
  create: (ignition, plan) => ignition.deploy(LogAnchor, plan),
});
