/**
 * What keeps an exam from being held, and is no doing of the seller: a chain that cannot be read to the end, or a payer
 * without money. Nothing is judged then.
 */
export class ExaminersFault extends Error {}
