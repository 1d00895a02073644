import type { ReactElement } from "react";
import { Page } from "../../parts/parts.tsx";

export const Settings = (): ReactElement => <Page title="Settings">{null}</Page>;
