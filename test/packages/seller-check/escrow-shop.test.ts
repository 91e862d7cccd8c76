import { serve } from "@hono/node-server";
import { expect, test } from "vitest";
import { startSaleScene } from "../../support/escrow/sale-scene.ts";
import { haiku, openShop } from "../../support/escrow/shop.ts";
import { forFile } from "../../support/for-file.ts";
import { holdExam, outcomes, untrue } from "../../support/seller/held-exam.ts";

const scene = await forFile(startSaleScene());

test("a shop that sells through an escrow is examined for its terms; what an exam would pay for does not apply", async () => {
  const { app } = await openShop(scene, haiku);
  const url = await new Promise<string>((resolve) => {
    const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
      resolve(`http://127.0.0.1:${port}/haiku`),
    );
    void forFile({ stop: () => server.close() });
  });
  const report = await holdExam(scene.chain, { resource: { url, method: "POST" } });
  expect(untrue(report)).toEqual([]);
  const { terms, ...paid } = outcomes(report);
  expect(terms).toBe("pass");
  expect(new Set(Object.values(paid))).toEqual(new Set(["not_applicable"]));
  expect(report.results[1]?.reason).toBe(
    "an entry has the scheme auth-capture, and this exam pays under exact; an entry has the scheme commerce, and this exam pays under exact",
  );
  expect(report).toMatchObject({ level: null, spent: 0n });
});
