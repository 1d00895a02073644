import { InvalidArgumentError } from "commander";

export const SEED_MAX = 2 ** 32 - 1;

/** Reads the value of an option: a whole number from 1 to so much. Anything else is refused in words. */
export const wholeUpTo =
  (max: number) =>
  (value: string): number => {
    const number = Number(value);
    if (Number.isInteger(number) && number > 0 && number <= max) return number;
    throw new InvalidArgumentError(`must be a whole number from 1 to ${String(max)}`);
  };
