/** Why a payment was not sent: every place for it is taken, or too much gas was lost to failed payments today. */
export type Because = "no place" | "gas lost";

/** A payment that was not sent, and of which nothing is stored that could be sent later. */
export class TurnedAway extends Error {
  readonly because: Because;

  constructor(because: Because, message: string) {
    super(message);
    this.because = because;
  }
}
