import type { ReactElement } from "react";
import { Page } from "../parts/parts.tsx";

export const AgentPage = (): ReactElement => <Page title="AgentPage">{null}</Page>;
