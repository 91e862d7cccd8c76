import { afterAll, afterEach } from "vitest";
import { endLeftovers } from "../for-file.ts";
import { expectDescribed, heldFetch } from "../openapi/answers.ts";
import { forgetWitnessed } from "../openapi/witnessed.ts";

// Vitest's setup of every file that may start a service: each of its answers has to be one that its OpenAPI document describes.
globalThis.fetch = heldFetch;
await endLeftovers();
afterEach(expectDescribed);
afterAll(expectDescribed);
afterAll(forgetWitnessed);
