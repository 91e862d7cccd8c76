import { type Fault, refuse, replyTo } from "../chain/rpc.ts";

/** A provider of nodes that show nothing of old blocks but their state; of each kind of call, every so many-th is answered by one that does. */
export function pruned(knows: number): Fault {
  const asked = new Map<string, number>();
  return async (call, pass) => {
    const times = (asked.get(call.method) ?? 0) + 1;
    asked.set(call.method, times);
    if (times % knows === 0) return pass(call);
    switch (call.method) {
      case "eth_getLogs":
        return replyTo(call, []);
      case "eth_getTransactionReceipt":
        return replyTo(call, null);
      case "eth_getBlockByHash":
        return refuse(call, 4444, "pruned history unavailable");
      case "eth_getBlockByNumber":
        return String(call.params?.[0]).startsWith("0x") ? replyTo(call, null) : pass(call);
      default:
        return pass(call);
    }
  };
}
