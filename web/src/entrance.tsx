import { Text, Title } from "@mantine/core";
import type { ReactElement, ReactNode } from "react";
import { Logo } from "./icons.tsx";

interface EntranceProps {
  readonly title: string;
  readonly about?: ReactNode;
  readonly children: ReactNode;
  readonly foot?: ReactNode;
}

export function Entrance({ about, children, foot, title }: EntranceProps): ReactElement {
  return (
    <div className="entrance">
      <main className="entrance-card">
        <div className="entrance-head">
          <Logo size={40} />
          <Title order={1} mt="md">
            {title}
          </Title>
          {about === undefined ? null : (
            <Text c="dimmed" size="sm" mt={6}>
              {about}
            </Text>
          )}
        </div>
        {children}
      </main>
      {foot === undefined ? null : <footer className="entrance-foot">{foot}</footer>}
    </div>
  );
}
