import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";
import { type Address, concat, type Hex, hexToNumber, type PublicClient, pad, size, slice } from "viem";

/** The expected code on a chain. */
export interface ExpectedCode {
  readonly address: Address;
  /** The contract's name in the sources. */
  readonly contract: string;
  /** The values of the immutables, in order of declaration. */
  readonly immutables: readonly Hex[];
}

/** Returns whether the code on the chain is the compiler's output, ignoring the metadata at its end. */
export async function isCompilersOutput(
  hre: HardhatRuntimeEnvironment,
  client: PublicClient,
  expected: ExpectedCode,
): Promise<boolean> {
  const code = await client.getCode({ address: expected.address });
  return code !== undefined && withoutMetadata(code) === withoutMetadata(await fillIn(hre, expected));
}

/** Returns the runtime code with the immutables filled in. */
async function fillIn(hre: HardhatRuntimeEnvironment, { contract, immutables }: ExpectedCode): Promise<Hex> {
  const { deployedBytecode, immutableReferences = {} } = await hre.artifacts.readArtifact(contract);
  const inOrder = Object.keys(immutableReferences).toSorted((a, b) => Number(a) - Number(b));
  return inOrder.reduce<Hex>((code, id, index) => {
    const places = immutableReferences[id] ?? [];
    return places.reduce((text, place) => fill(text, place.start, immutables[index] ?? "0x"), code);
  }, deployedBytecode as Hex);
}

/** Removes the metadata that solc appends, a hash of the sources including comments. Its last two bytes are its length. */
const withoutMetadata = (code: Hex): Hex => slice(code, 0, size(code) - hexToNumber(slice(code, -2)) - 2);

function fill(code: Hex, start: number, value: Hex): Hex {
  const from = 2 + start * 2;
  return concat([code.slice(0, from) as Hex, pad(value).toLowerCase() as Hex, `0x${code.slice(from + 64)}`]);
}
