/** Sealing purpose of an invite's link, which is bound to the invite's id. */
export const INVITE_LINK_PURPOSE = "invite-link";

/** Returns the link that accepts an invite. Browsers never send the fragment, so the token is in no log. */
export const inviteLink = (baseUrl: string, token: string): string => `${baseUrl}/invite#token=${token}`;
