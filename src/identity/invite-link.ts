/** Purpose that an invite's link is sealed for; bound to the invite's id. */
export const INVITE_LINK_PURPOSE = "invite-link";

/** Link at which an invite is accepted. The token is in the fragment, which no browser sends: no log has it. */
export const inviteLink = (baseUrl: string, token: string): string => `${baseUrl}/invite#token=${token}`;
