import type { ReactElement } from "react";
import { ButtonLink } from "../parts/links.tsx";
import { Card, Empty, Page } from "../parts/parts.tsx";

export const NotFound = (): ReactElement => (
  <Page title="Page not found">
    <Card>
      <Empty
        icon="info"
        title="There is no page at this address"
        action={<ButtonLink to="/">Go to the overview</ButtonLink>}
      >
        The address is mistyped or not complete, or the page has moved.
      </Empty>
    </Card>
  </Page>
);
