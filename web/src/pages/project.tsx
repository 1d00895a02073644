import type { ReactElement } from "react";
import { Page } from "../parts/parts.tsx";

export const ProjectPage = (): ReactElement => <Page title="ProjectPage">{null}</Page>;
