/**
 * Loads the passkey ceremonies on first use: their library takes a fifth of a process's start-up time, and most
 * processes never need it.
 */
export const ceremonies = () => import("./passkey-ceremonies.ts");
