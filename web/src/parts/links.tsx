import { Anchor, type AnchorProps, Button, type ButtonProps } from "@mantine/core";
import { createLink } from "@tanstack/react-router";
import type { ComponentProps, ReactElement } from "react";

/** Links to the dashboard's own pages, with Mantine's look. */

type Native = Omit<ComponentProps<"a">, "style" | "color">;

const RoutedButton = (props: ButtonProps & Native): ReactElement => <Button component="a" {...props} />;
export const ButtonLink = createLink(RoutedButton);

const RoutedAnchor = (props: AnchorProps & Native): ReactElement => <Anchor {...props} />;
export const TextLink = createLink(RoutedAnchor);
