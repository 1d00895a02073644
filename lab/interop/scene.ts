/** The service that clients are tried on, and an organization's key for it. */
export interface Scene {
  readonly baseUrl: string;
  readonly organizationKey: string;
  readonly teamId: string;
  /** An owner of a new organization, whose session is elevated for some minutes. */
  readonly newOwner: () => Promise<{ readonly token: string; readonly teamId: string }>;
}
