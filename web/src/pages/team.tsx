import type { ReactElement } from "react";
import { Page } from "../parts/parts.tsx";

export const TeamPage = (): ReactElement => <Page title="TeamPage">{null}</Page>;
