import { expect } from "chai";
import { type Answer, onceReachable, repeatsSoFar } from "./api.ts";
import { codeOf } from "./contract-api.ts";
import { tally, times } from "./world.ts";

/** Calls that do nothing twice. On a busy machine some may be told to come again, the one that does it as well. */
export const atOnce = (count: number, call: (index: number) => Promise<Answer>): Promise<Answer[]> =>
  Promise.all(times(count, (index) => onceReachable(() => call(index))));

/** How often something was done by calls of which one may do it; none where its caller was told to come again. */
export function expectOnce(done: number): void {
  if (repeatsSoFar() === 0) expect(done).to.equal(1);
  else expect(done).to.be.at.most(1);
}

/** One 201, or what else says that it was done, and all others so. */
export function expectDoneOnce(answers: readonly Answer[], others: string, done: 200 | 201 = 201): void {
  const { [done]: count = 0, ...rest } = tally(answers.map((answer) => codeOf(answer) ?? answer.status));
  expect(rest).to.deep.equal({ [others]: answers.length - count });
  expectOnce(count);
}

/** Of different payloads under one idempotency key one is made. */
export function expectOneMade(answers: readonly Answer[]): void {
  // 200: the one that was made, and told to come again.
  const again = answers.filter(({ status }) => status === 200);
  const { 201: made = 0, ...rest } = tally(
    answers.filter(({ status }) => status !== 200).map((answer) => codeOf(answer) ?? answer.status),
  );
  expect(rest).to.deep.equal({ IDEMPOTENCY_KEY_REUSED: answers.length - made - again.length });
  expectOnce(made + again.length);
}
