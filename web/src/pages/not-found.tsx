import type { ReactElement } from "react";
import { ButtonLink } from "../parts/links.tsx";
import { Empty } from "../parts/parts.tsx";

export function NotFound(): ReactElement {
  return (
    <main className="landed">
      <Empty icon="info" title="There is no such page" action={<ButtonLink to="/">To the start</ButtonLink>}>
        The address is not complete, or the page has moved.
      </Empty>
    </main>
  );
}
