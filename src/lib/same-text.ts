import { timingSafeEqual } from "node:crypto";

/** Compares in constant time: an index match is not trusted to be the presented value. */
export function isSameText(left: string, right: string): boolean {
  const [first, second] = [Buffer.from(left), Buffer.from(right)];
  return first.length === second.length && timingSafeEqual(first, second);
}
