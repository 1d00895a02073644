/** The package's main module writes to the console where the runtime is older than Node 22; this one is what it exports. */
declare module "oidc-provider/lib/provider.js" {
  export { default as Provider } from "oidc-provider";
}

declare module "oidc-provider/lib/helpers/errors.js" {
  import type { errors } from "oidc-provider";
  export const InvalidGrant: typeof errors.InvalidGrant;
  export const InvalidTarget: typeof errors.InvalidTarget;
}
