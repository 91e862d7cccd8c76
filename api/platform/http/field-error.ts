/** One wrong field of a request body: its dotted path and what is expected. */
export interface FieldError {
  readonly path: string;
  readonly message: string;
  /** The number of the arbiter policy rule that rejects it. */
  readonly rule?: number;
}
