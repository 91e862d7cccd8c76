/**
 * Thrown for a fault that prevents an exam and is not the seller's: a chain that cannot be read to the end, or a payer
 * without money. Nothing is judged then.
 */
export class ExaminersFault extends Error {}
