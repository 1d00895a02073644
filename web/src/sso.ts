import type { Refused } from "../../src/client/types.ts";
import { api } from "./api.ts";

const PAGE = "sso-page";

/** Goes to the identity provider and remembers the current page. Returns only a refusal. */
export async function goToProvider(body: { email: string } | { token: string }): Promise<Refused | null> {
  const begun = await api.startSso({ body });
  if (!begun.ok) return begun.refused;
  const { pathname, search } = location;
  sessionStorage.setItem(PAGE, "token" in body ? "/" : `${pathname}${search}`);
  location.assign(begun.value.url);
  return null;
}

/** Returns the page on which a sign-in began: a path of this origin. */
export function pageBefore(): string {
  const page = sessionStorage.getItem(PAGE) ?? "/";
  sessionStorage.removeItem(PAGE);
  return /^\/(?![/\\])/.test(page) ? page : "/";
}
