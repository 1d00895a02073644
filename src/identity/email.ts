import { withAsciiDomain } from "../contract/email.ts";

/**
 * Maximum length of an e-mail in UTF-16 units: 254 characters. Longer texts must not be normalized: sorting their
 * combining marks takes quadratic time, seconds for a whole request body.
 */
export const EMAIL_UNITS_MAX = 508;

/**
 * Returns the form in which two e-mail addresses are compared: no surrounding space, lower case, domain in ASCII.
 * Folding dots or plus signs would be one provider's rule, and would let one person claim another's address.
 */
export const normalizeEmail = (email: string): string =>
  withAsciiDomain(email.trim().normalize("NFC").toLowerCase());
