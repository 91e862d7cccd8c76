import { buildModule } from "@nomicfoundation/hardhat-ignition/modules";

/** A smart wallet for trying ERC-1271 payments; `owner` comes from `ignition/parameters/`. */
export default buildModule("SmartWallet", (m) => {
  const wallet = m.contract("SmartWallet", [m.getParameter("owner")]);
  return { wallet };
});
