/** The package's main module, which exports this one, writes to the console on runtimes older than Node 22. */
declare module "oidc-provider/lib/provider.js" {
  export { default as Provider } from "oidc-provider";
}

declare module "oidc-provider/lib/helpers/errors.js" {
  import type { errors } from "oidc-provider";
  export const InvalidGrant: typeof errors.InvalidGrant;
  export const InvalidTarget: typeof errors.InvalidTarget;
}
