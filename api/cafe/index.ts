import type { Config } from "../platform/config/config.ts";
import { type Platform, type Slice, under } from "../platform/slice.ts";
import { cafeRoutes } from "./routes.ts";
import { createCafe as createOrders } from "./serve-order.ts";
import { createCafeStore } from "./store.ts";

export const createCafe = ({ pool, now }: Platform, { baseUrl }: Config): Slice => ({
  routes: under("Café", cafeRoutes({ cafe: createOrders({ store: createCafeStore(pool), now }), baseUrl })),
  jobs: [],
});
