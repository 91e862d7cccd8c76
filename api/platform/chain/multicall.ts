/** Deployed at one address on Base, Base Sepolia and the local chains (multicall3.com). */
export const MULTICALL3 = "0xca11bde05977b3631167028862be2a173976ca11";
