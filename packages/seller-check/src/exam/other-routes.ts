import type { Resource } from "./visit.ts";

/** Another request of the same seller that may be for sale too. */
export interface OtherRoute extends Pick<Resource, "url" | "method" | "body"> {
  /** What of the seller's shows it; absent where the order names it. */
  readonly shownBy?: string;
}
