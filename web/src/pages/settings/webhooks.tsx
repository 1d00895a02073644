import type { ReactElement } from "react";
import { Page } from "../../parts/parts.tsx";

export const Webhooks = (): ReactElement => <Page title="Webhooks">{null}</Page>;
