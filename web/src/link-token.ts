/** Returns the token of the link that led here. It is in the fragment, which browsers do not send. */
export const tokenOfTheLink = (): string => new URLSearchParams(location.hash.slice(1)).get("token") ?? "";

export const forgetToken = (): void => history.replaceState(null, "", location.pathname);
