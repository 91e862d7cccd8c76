import { type Address, type Hex, parseAbi, toHex } from "viem";

/** The whole ABI of `contracts/LogAnchor.sol`, which documents it. */
export const logAnchorAbi = parseAbi([
  "function anchor(bytes32 origin, uint64 size, bytes32 root)",
  "function latest(address by, bytes32 origin) view returns (uint64 size, uint64 blockNumber, bytes32 root)",
  "event Anchored(address indexed by, bytes32 indexed origin, uint64 size, bytes32 root)",
  "error NotLonger(uint64 anchored)",
]);

/** The address of `contracts/LogAnchor.sol` on every chain, derived like {@link SETTLEMENT_BATCH}. */
export const LOG_ANCHOR: { readonly address: Address; readonly codeHash: Hex; readonly salt: Hex } = {
  address: "0xb6BfC092e0E3C3803ba4133f84E4ef420BB532Fa",
  codeHash: "0x82a1a36c7e075c5e1761d56cc0898b76ae4aa10b632dfb39afa64c00a056b332",
  salt: toHex("LogAnchor 1", { size: 32 }),
};
