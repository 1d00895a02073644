/**
 * The ceremonies of passkeys, loaded with the first of them: the library behind them takes a fifth of the time in which a
 * process starts, and most processes never meet a passkey.
 */
export const ceremonies = () => import("./passkey-ceremonies.ts");
