/** The token of the link that led here: in the fragment, which no browser sends. */
export const tokenOfTheLink = (): string => new URLSearchParams(location.hash.slice(1)).get("token") ?? "";

/** Removes the used token from the address. */
export const forgetToken = (): void => history.replaceState(null, "", location.pathname);
