import { parseSetCookie } from "cookie";
import type { Answer } from "./api.ts";

export interface GivenCookie {
  readonly name: string;
  readonly value: string;
  /** Everything else that it was given with. */
  readonly attributes: Readonly<Record<string, unknown>>;
}

export function cookiesOf({ headers }: Answer): GivenCookie[] {
  return headers.getSetCookie().map((header) => {
    const { name, value = "", ...attributes } = parseSetCookie(header);
    return { name, value, attributes };
  });
}

/** As a browser would send them back. */
export const cookieHeader = (cookies: readonly GivenCookie[]): string =>
  cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
