import { expect, test } from "vitest";
import { NETWORKS } from "../../api/platform/networks.ts";
import { SOURCES, textOf } from "./sources.ts";

const HOME = "api/platform/networks.ts";
/** Ponder keeps the name of its chain in its own tables. */
const NAMES_ITS_CHAIN = "indexer/ponder.config.ts";
const WORDS = Object.values(NETWORKS).flatMap(({ id, key, chainId, rpcVariable, explorer, publicRpcUrl, usdc }) => [
  id,
  `"${key}"`,
  `\\b${chainId}\\b`,
  `"${rpcVariable}"`,
  explorer,
  publicRpcUrl,
  usdc.address,
]);

test("only the table of networks tells one chain from another: the service and the indexer name none elsewhere", () => {
  const tells = new RegExp(WORDS.join("|"), "i");
  expect(tells.test(textOf(HOME))).toBe(true);
  const telling = SOURCES.filter(
    (file) => /^(api|indexer)\/.*\.ts$/.test(file) && ![HOME, NAMES_ITS_CHAIN].includes(file),
  ).filter((file) => tells.test(textOf(file)));
  expect(telling).toEqual([]);
});
