import type { Hex } from "../platform/wallet.ts";

/** A place in a wallet's purchases, newest first: right after this one. */
export interface Place {
  readonly receivedAt: Date;
  readonly nonce: Hex;
}

const FORM = /^(\d{1,14})\.(0x[0-9a-f]{64})$/;

/** The opaque cursor of a place. It grants nothing: the next page takes a sign-in of its own. */
export const encodeCursor = ({ receivedAt, nonce }: Place): string =>
  Buffer.from(`${receivedAt.getTime()}.${nonce}`).toString("base64url");

/** Null if this service never issued such a cursor. */
export function parseCursor(text: string): Place | null {
  const [, time, nonce] = FORM.exec(Buffer.from(text, "base64url").toString("latin1")) ?? [];
  const place = { receivedAt: new Date(Number(time)), nonce: nonce as Hex };
  return time !== undefined && encodeCursor(place) === text ? place : null;
}
