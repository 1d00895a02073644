import { domainToASCII } from "node:url";

const LOCAL = String.raw`(?:[A-Za-z0-9_'+-]+\.)*[A-Za-z0-9_'+-]*[A-Za-z0-9_+-]`;
/** A top-level domain may be internationalized, as in `xn--p1ai`. */
const DOMAIN = String.raw`(?:[A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]`;

/** Zod's pattern without lookaheads, which some readers of the reference do not support. */
export const EMAIL_PATTERN = `${LOCAL}@${DOMAIN}`;

/** Converts an internationalized domain to its ASCII form, which mail servers know: `ada@bücher.example`. */
export function withAsciiDomain(email: string): string {
  const at = email.lastIndexOf("@") + 1;
  const domain = email.slice(at);
  if (at === 0 || /^[ -~]*$/.test(domain)) return email;
  const ascii = domainToASCII(domain.trim());
  return ascii === "" ? email : email.slice(0, at) + ascii;
}
