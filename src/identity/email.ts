import { withAsciiDomain } from "../contract/email.ts";

/**
 * Maximum length of an e-mail in UTF-16 units: 254 characters. Longer texts must not be normalized, since sorting
 * their combining marks takes time by the square of their number: seconds for those of one body.
 */
export const EMAIL_UNITS_MAX = 508;

/**
 * Form in which two e-mail addresses are compared: without surrounding space and case, the domain in ASCII. More
 * (dots, plus signs) would be one provider's rule, and would let one person sit on another's address.
 */
export const normalizeEmail = (email: string): string =>
  withAsciiDomain(email.trim().normalize("NFC").toLowerCase());
