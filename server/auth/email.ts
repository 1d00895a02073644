/**
 * What two e-mail addresses are compared by: without surrounding space and without case. More (dots, plus signs) would
 * be one provider's rule, and would let one person sit on another's address.
 */
export const normalizeEmail = (email: string): string => email.trim().normalize("NFC").toLowerCase();
