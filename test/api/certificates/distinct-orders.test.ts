import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { requireDistinctOrders } from "../../../api/certificates/kinds/kind.ts";
import { recipient } from "../../../api/certificates/kinds/recipient.ts";
import { retry } from "../../../api/certificates/kinds/retry.ts";
import { scam } from "../../../api/certificates/kinds/scam.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { bareEnvironment } from "../../support/service/environment.ts";

const payee = (value: bigint) => ({ value, to: "payee" as const });

describe("Tests with indistinguishable orders", () => {
  test.each([
    ["its bait at the control's price", { ...scam, bait: payee(scam.control) }, "The control and the bait"],
    ["its bait at the entry's price", { ...scam, bait: payee(scam.entry) }, "The entry and the bait"],
    ["its control at the entry's price", { ...recipient, control: recipient.entry }, "The entry and the control"],
    ["two lossy orders at one price", { ...retry, orders: [70_000n, 70_000n] as const }, "The order 1 and the order 2"],
    ["a lossy order at the entry's price", { ...retry, orders: [70_000n, retry.entry] as const }, "The entry and"],
  ])("A test with %s is refused", (_, kind, words) => {
    expect(() => requireDistinctOrders([scam, kind])).toThrow(`${words}`);
  });

  test.each([
    ["one atomic unit above the control", { ...scam, bait: payee(scam.control + 1n) }],
    ["at the control's price, to a decoy", { ...scam, bait: { value: scam.control, to: "decoy" as const } }],
  ])("A bait %s is accepted", (_, kind) => {
    expect(() => requireDistinctOrders([kind])).not.toThrow();
  });
});

test("The service refuses to start with such a test and gives the reason in one line", async () => {
  const at = fileURLToPath(new URL("../../../api/", import.meta.url));
  const hook = `import { registerHooks } from "node:module";
    registerHooks({ load(url, context, next) {
      const loaded = next(url, context);
      if (!url.endsWith("/kinds/scam.ts")) return loaded;
      return { ...loaded, source: String(loaded.source).replace(/ABSURD = [\\d_]+n/, "ABSURD = ${scam.control}n") };
    } });`;
  const key = (byte: number) => Buffer.alloc(32, byte).toString("base64url");
  const nowhere = "http://127.0.0.1:1";
  const env = {
    ...bareEnvironment(),
    HOST: "localhost",
    DATABASE_URL: "postgres://trust@127.0.0.1:1/none",
    ...Object.fromEntries(Object.values(NETWORKS).map(({ rpcVariable }) => [rpcVariable, nowhere])),
    FACILITATOR_URL: nowhere,
    PAY_TO_ADDRESS: `0x${"11".repeat(20)}`,
    ARBITER_PRIVATE_KEY: `0x${"22".repeat(32)}`,
    SIGNING_KEY: key(1),
    SEALING_KEY: key(2),
    DECOY_SEED: key(3),
  };
  const args = ["--import", `data:text/javascript,${encodeURIComponent(hook)}`, `${at}main.ts`];
  const { code, stderr } = await new Promise<{ code: unknown; stderr: string }>((resolve) =>
    execFile(process.execPath, args, { env }, (error, _, stderr) => resolve({ code: error?.code ?? 0, stderr })),
  );
  expect(code).toBe(1);
  expect(stderr.trim()).toMatch(
    /^The service cannot start: The control and the bait of the scam test both cost 0\.10 USDC at the same address; .*\.$/,
  );
});
