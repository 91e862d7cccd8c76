import { z } from "zod";
import { network, SERVICE, url, usd } from "../platform/http/schema.ts";

const named = { path: z.string(), summary: z.string() };

export const HOME = z
  .object({
    service: SERVICE,
    version: z.string(),
    url,
    paid: z.array(z.object({ id: z.string(), method: z.literal("POST"), ...named, price: usd, network })),
    free: z.array(z.object({ method: z.literal("GET"), ...named })),
  })
  .meta({ id: "Home" });
