import { afterAll, afterEach } from "vitest";
import { endLeftovers } from "../for-file.ts";
import { expectDescribed, heldFetch } from "../openapi/answers.ts";
import { forgetWitnessed } from "../payments/signing.ts";
import { printProblemsOfFailedTests } from "../service/problems.ts";

// Vitest's setup for every file that may start a service. Each response must match the service's OpenAPI document.
globalThis.fetch = heldFetch;
await endLeftovers();
printProblemsOfFailedTests();
// The first registered hook runs last.
afterAll(endLeftovers);
afterEach(expectDescribed);
afterAll(expectDescribed);
afterAll(forgetWitnessed);
