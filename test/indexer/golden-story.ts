import type { Address, Hex } from "viem";
import { MULTICALL3 } from "../../api/platform/chain/read-at-block.ts";
import { operatorAbi } from "../../contracts/abi.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { openOperator, reclaim } from "../support/escrow/auth-capture.ts";
import { deployEscrow, type Held, hold } from "../support/escrow/contract.ts";
import { createEscrowActor, MERCHANTS, planBlocks } from "./escrow-actor.ts";
import { fundPayers } from "./escrow-record.ts";
import { type RecordedChain, recordChain } from "./golden-chain.ts";
import { createActor } from "./history.ts";

const RECORD: Hex = `0x${"ab".repeat(32)}`;
const DAY_SECONDS = 86_400;
const wallet = (n: number): Address => `0x${(0x90de00 + n).toString(16).padStart(40, "0")}`;
/** More payees than a payer has slots for. */
const CROWD = Array.from({ length: 66 }, (_, n) => wallet(n));

/** Plays a chain with every case that the handlers distinguish. */
export async function recordStory(): Promise<RecordedChain> {
  const chain = await startTestChain();
  await chain.fund(MULTICALL3, 10n ** 9n);
  const actor = createActor(chain, 2026);
  await actor.payAll(CROWD, { from: 3, value: 50_000n });
  for (const days of [0, 1, 2, 91]) {
    await chain.increaseTime(days * DAY_SECONDS + 1);
    for (let n = 0; n < 10; n += 1) await actor.act();
  }
  const escrow = await deployEscrow(chain);
  const sales = await createEscrowActor(chain, escrow);
  const blocks = planBlocks(33, 10);
  await sales.play(blocks.slice(0, 14));
  await fundPayers(chain);
  await sales.play(blocks.slice(14));
  for (const end of ["release", "refund"] as const)
    for (const payer of [1, 2, 3]) await sales.mineSale(end, payer, MERCHANTS[4] as Address, 50_000n);

  const operator = await openOperator(chain);
  await chain.client.impersonateAccount({ address: operator.arbiter });
  const finish = async (held: Held, functionName: "release" | "refund") => {
    const call = {
      address: operator.address,
      abi: operatorAbi,
      functionName,
      args: [held.info, RECORD, "0x"],
    } as const;
    await chain.client.writeContract({ ...call, account: operator.arbiter });
  };
  const scene = { chain, escrow: operator };
  const soon = Number((await chain.client.getBlock()).timestamp) + 3_600;
  const held = [wallet(1), wallet(2)].map((merchant) => hold(scene, merchant));
  const lost = await hold(scene, wallet(3), { authorizationExpiry: soon });
  await finish(await (held[0] as Promise<Held>), "release");
  await finish(await (held[1] as Promise<Held>), "refund");
  await chain.increaseTime(3_700);
  await reclaim(chain, lost);
  // Makes every earlier block final.
  await chain.client.mine({ blocks: 40 });
  const recorded = await recordChain(chain, [escrow.address, operator.address]);
  await chain.stop();
  return recorded;
}
