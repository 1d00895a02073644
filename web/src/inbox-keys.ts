import { useEffect } from "react";

const CARD = "[data-approval]";

/** Navigates the cards by keyboard. The approve key only focuses the button, so approving takes a second key. */
export function useKeys(isOn: boolean): void {
  useEffect(() => {
    if (!isOn) return;
    const listen = (event: KeyboardEvent): void => {
      const { target } = event;
      const isTyping =
        target instanceof HTMLElement && target.closest("input[type=text], textarea, [role=dialog]");
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      if (act(event.key)) event.preventDefault();
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, [isOn]);
}

function act(key: string): boolean {
  const cards = [...document.querySelectorAll<HTMLElement>(CARD)];
  const current = document.activeElement?.closest<HTMLElement>(CARD) ?? null;
  const at = current === null ? -1 : cards.indexOf(current);
  if (key === "j" || key === "k") {
    const next = cards[key === "j" ? Math.min(at + 1, cards.length - 1) : Math.max(at - 1, 0)];
    next?.focus();
    return next !== undefined;
  }
  const button = { a: "approve", d: "deny", x: "choose" }[key];
  const found = button === undefined ? null : current?.querySelector<HTMLElement>(`[data-key=${button}]`);
  if (!found) return false;
  if (key === "a") found.focus();
  else found.click();
  return true;
}
