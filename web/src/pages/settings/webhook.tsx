import type { ReactElement } from "react";
import { Page } from "../../parts/parts.tsx";

export const WebhookPage = (): ReactElement => <Page title="WebhookPage">{null}</Page>;
