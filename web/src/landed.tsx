import type { ReactElement } from "react";
import { Failed } from "./parts/problem.tsx";

/** Replaces a page that could not be shown, for example because its script is gone after an update. */
export function Landed({ error }: { readonly error: unknown }): ReactElement {
  return (
    <main className="landed">
      <Failed error={error} retry={() => location.reload()} />
    </main>
  );
}
