import { expect, test } from "vitest";
import { prefers } from "../../../api/platform/http/accept.ts";

test.each<[accept: string | undefined, isPage: boolean]>([
  ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true],
  ["text/html", true],
  ["TEXT/HTML", true],
  ["text/*", true],
  ["text/html, */*", true],
  ["text/html;q=0.9, application/json;q=0.8", true],
  ["text/html, application/json", true],
  ["application/json;q=0, */*", true],
  ["application/json, text/html;q=0.9", false],
  ["application/json, text/html", false],
  ["text/html;q=0.5, application/json", false],
  ["text/html;q=0, */*", false],
  ["text/html;q=0", false],
  ["application/json, text/plain, */*", false],
  ["*/*", false],
  ["", false],
  [undefined, false],
])("%j prefers a page: %s", (accept, isPage) => expect(prefers(accept, "text/html", "application/json")).toBe(isPage));
