import { describe, expect, test } from "vitest";
import { type Count, withhold } from "../../../api/board/board.ts";

const of = (...wallets: number[]): readonly Count[] => wallets.map((one) => ({ wallets: one, certificates: one }));

describe("of the parts of a published total", () => {
  test.each([
    ["none when each is of five wallets or of nobody", of(5, 0, 6, 0), []],
    ["one of four wallets, with those that are zero", of(9, 4, 0, 0), [1, 2, 3]],
    ["one of one wallet, with the smallest other where none is zero", of(9, 1, 7, 8), [1, 2]],
    ["two of few wallets, and no more", of(9, 1, 7, 4), [1, 3]],
    ["all, where one wallet is all there is", of(1, 0, 0, 0), [0, 1, 2, 3]],
    ["none where there is nothing", of(0, 0), []],
  ])("%s is withheld", (_, parts, hidden) => {
    expect(withhold(parts).flatMap((one, index) => (one ? [index] : []))).toEqual(hidden);
  });

  test("some are withheld when what the total has besides is of few wallets", () => {
    expect(withhold(of(7, 9, 8), { wallets: 4, certificates: 4 })).toEqual([true, false, true]);
    expect(withhold(of(7, 9, 8), { wallets: 5, certificates: 5 })).toEqual([false, false, false]);
  });

  /** Every possible part: a number of certificates, from at most as many wallets. */
  const parts = (most: number): readonly Count[] =>
    Array.from({ length: most + 1 }, (_, certificates) =>
      Array.from({ length: Math.min(certificates, 6) || 1 }, (_, fewer) => ({
        certificates,
        wallets: certificates === 0 ? 0 : fewer + 1,
      })),
    ).flat();

  test.each([
    ["with only shown parts", [0]],
    ["with others besides that are never shown", [0, 1, 5]],
  ])("no withheld one can be worked out from the total, all wallets and the shown ones, %s", (_, besides) => {
    const seen = new Map<string, Set<number>[]>();
    const [most, some] = [11, parts(11)];
    for (const first of some)
      for (const second of some)
        for (const third of some)
          for (const more of besides) {
            const total = first.certificates + second.certificates + third.certificates + more;
            if (total > most) continue;
            const world = [first, second, third];
            const wallets = first.wallets + second.wallets + third.wallets + more;
            const hidden = withhold(world, { wallets: more, certificates: more });
            const shown = world.map(({ certificates }, index) => (hidden[index] ? "?" : certificates));
            const values = seen.get(`${total} ${wallets} ${shown}`) ?? world.map(() => new Set<number>());
            for (const [index, { certificates }] of world.entries()) values[index]?.add(certificates);
            seen.set(`${total} ${wallets} ${shown}`, values);
          }
    const computable = [...seen].filter(([shown, values]) =>
      values.some((possible, index) => shown.split(/[ ,]/)[index + 2] === "?" && possible.size < 2),
    );
    expect(seen.size).toBeGreaterThan(100);
    expect(computable.map(([shown]) => shown)).toEqual([]);
  });
});
