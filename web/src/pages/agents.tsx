import type { ReactElement } from "react";
import { Page } from "../parts/parts.tsx";

export const Agents = (): ReactElement => <Page title="Agents">{null}</Page>;
