/** The service that clients are tried on, and an organization's key for it. */
export interface Scene {
  readonly baseUrl: string;
  readonly organizationKey: string;
  readonly teamId: string;
}
