import type { ReactElement } from "react";
import { ButtonLink } from "../parts/links.tsx";
import { Empty } from "../parts/parts.tsx";

export function NotFound(): ReactElement {
  return (
    <main className="landed">
      <Empty icon="info" title="Page not found" action={<ButtonLink to="/">Go to the overview</ButtonLink>}>
        The address is not complete, or the page has moved.
      </Empty>
    </main>
  );
}
