import { ADDRESS, DEVICE_TOKEN, EXAMPLE_ID, LATER, note, ULID, type Note } from "./notes.ts";

/** The 65 bytes of a plain key's signature. */
const SIGNATURE = `0x${"3f".repeat(65)}`;

export const peopleNotes: Readonly<Record<string, Note>> = {
  email: note("The e-mail address.", "ada@example.com"),
  emailVerified: note("Whether the person has proved that they receive mail at this address.", false),
  "Invite.delivery": note(
    "`link`: you hand the link on; `mailing`: the mail is on its way to the mail server, which is tried until the invite expires; " +
      "`mailed`: the mail server has taken it; `refused`: it takes no mail for this address.",
  ),
  "createInvite.token": note(
    "Shown only once; null: the invite was mailed.",
    "cGxlYXNlLWRvLW5vdC11c2UtdGhpcy1leGFtcGxl",
  ),
  "signIn.organizationId": note("The organization, if the e-mail has accounts in several.", EXAMPLE_ID),
  "signIn.deviceToken": note(
    "The `deviceToken` of an earlier sign-in, so that failed attempts of strangers do not lock this device out.",
    DEVICE_TOKEN,
  ),
  deviceToken: note(
    "Returned by a sign-in: store it, and send it with the next sign-in from this device. It is not a credential.",
    DEVICE_TOKEN,
  ),
  password: note("The password.", "quartz lantern under nine bridges"),
  "signIn.code": note("Six digits of the authenticator app, if TOTP is enrolled.", "492039"),
  code: note("Six digits of the authenticator app.", "492039"),
  "result.code": note("The error's code; null: it succeeded.", null),
  currentPassword: note("The current password.", "quartz lantern under nine bridges"),
  newPassword: note("The new password.", "seven pale otters argue quietly"),
  role: note("The person's role."),
  secondFactorEnrolment: note(
    "`required`: the organization requires a second factor and the person has none, so nothing else is permitted; `recommended`: an owner or admin has none; null: one is enrolled, or none is needed.",
  ),
  notifications: note("Your notifications."),
  approvalMails: note("Whether you are mailed about payments that wait for approval.", true),
  mailAvailable: note("Whether the service sends mail; without it `approvalMails` has no effect.", true),
  requireSecondFactor: note("Whether people must have a second factor.", false),
  sso: note("The organization's identity provider; null: none."),
  issuer: note("The provider's issuer, exactly as its metadata names it.", "https://login.example.com"),
  clientId: note("The client's id at the provider.", "agent-spending-control"),
  clientSecret: note("The client's secret at the provider; it is never shown.", "rT8v-q2mWn5x"),
  domains: note("E-mail domains whose people sign in there.", ["example.com"]),
  required: note("Whether people other than owners sign in there alone.", false),
  jit: note(
    "Whether a person with a verified address becomes a member by signing in; null: people are invited.",
  ),
  "jit.role": note("The role that they get.", "member"),
  callbackUrl: note(
    "The client's redirect URI.",
    "https://spend.example.com/sso/01a21bf9-3189-7493-82f9-f8489f2af53b",
  ),
  logoutUrl: note("The client's back-channel logout URI.", "https://spend.example.com/v1/auth/sso/logout"),
  identityProvider: note("Whether the person can join by the organization's identity provider.", false),
  "startSso.url": note(
    "Where the browser goes.",
    "https://login.example.com/authorize?client_id=agent-spending-control",
  ),
  "finishSso.code": note("The provider's code.", "SplxlOBeZQQYbYS6WxSbIA"),
  "finishSso.error": note("The provider's error, if it sent no code.", "access_denied"),
  "finishSso.state": note("The provider's `state`.", "af0ifjsldkj"),
  iss: note("The provider's `iss`.", "https://login.example.com"),
  flow: note("The cookie that the start has set; browsers leave it out.", "c2VhbGVk"),
  logout_token: note("The provider's logout token.", "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"),
  keepKeys: note("`true`: the organization keys that the person created stay valid."),
  revokedOrganizationKeys: note("The person's organization keys that were revoked."),
  "revokedOrganizationKeys.id": note("The key's id.", `okey_${ULID}`),
  sessions: note("The sessions."),
  "sessions.id": note("The session's id.", EXAMPLE_ID),
  lastSeenAt: note("When it was last used, to the minute.", LATER),
  userAgent: note("The client's name at sign-in; null: it sent none.", "Mozilla/5.0 (X11; Linux x86_64)"),
  current: note("Whether it is the caller's own session.", true),
  secondFactors: note("Which second factors are enrolled.", ["totp"]),
  token: note("Shown only once.", "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJleGFtcGxlIn0.c2lnbmF0dXJl"),
  refreshToken: note(
    "Can be used once, for the next pair of tokens.",
    "eyJhbGciOiJIUzI1NiJ9.eyJzaWQiOiJleGFtcGxlIn0.c2lnbmF0dXJl",
  ),
  stepUpExpiresAt: note("When the step-up expires; null: the session is not stepped up.", LATER),
  organizationName: note("The organization's name.", "Analytical Engines"),
  plan: note("The subscription plan, which sets the rate limits."),
  "Organization.status": note("`ready` once it can be used."),
  walletOwnerSignature: note(
    "The owner's signature (EIP-191, or EIP-1271 of a contract) of the `challenge` that a request without it is refused with.",
    SIGNATURE,
  ),
  walletOwner: note("The address that owns the wallets of new agents; null: none.", ADDRESS),
  secret: note("Shown only once.", "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"),
  otpauthUrl: note(
    "The URL for a QR code.",
    "otpauth://totp/Spending:ada@example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Spending",
  ),
  method: note("The second factor."),
};
