import { useInsertionEffect } from "react";
import { adopt } from "./adopted-style.tsx";

/** Replaces the package of the same name, which writes a style element, by one adopted sheet for all users. */
export function styleSingleton() {
  let users = 0;
  let remove: (() => void) | null = null;
  return function Style({ styles }: { readonly styles: string; readonly dynamic?: boolean }): null {
    useInsertionEffect(() => {
      users += 1;
      remove ??= adopt(styles);
      return () => {
        users -= 1;
        if (users > 0) return;
        remove?.();
        remove = null;
      };
    }, [styles]);
    return null;
  };
}
