/** Loads the passkey ceremonies on first use: they cost a fifth of a process's start, and most never need them. */
export const ceremonies = () => import("./passkey-ceremonies.ts");
