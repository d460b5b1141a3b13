/** The keyboard's place on the page. A control that goes, or is disabled, while it has the focus would send its user back to the top of the page. */
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

/** For a list: the focus of a row that goes stays with the list, and that of the last row with the heading above. */
export function useHeldFocus<E extends HTMLElement>(): RefObject<E | null> {
  const list = useRef<E>(null);
  const hasFocus = () => list.current?.contains(document.activeElement) ?? false;
  const held = hasFocus();
  useLayoutEffect(() => {
    if (held && document.activeElement === document.body) list.current?.focus({ preventScroll: true });
  });
  useLayoutEffect(
    () => () => {
      const heading = list.current?.closest('.card')?.querySelector<HTMLElement>('h2');
      if (!hasFocus() || heading == null) return;
      heading.tabIndex = -1;
      heading.focus({ preventScroll: true });
    },
    [],
  );
  return list;
}

/** For the heading (with `tabIndex={-1}`) of what takes the place of what was pressed: it gets the focus with each new `stage`. */
export function useHeadFocus(stage: unknown): RefObject<HTMLHeadingElement | null> {
  const head = useRef<HTMLHeadingElement>(null);
  const shown = useRef(stage);
  useEffect(() => {
    if (shown.current === stage) return;
    shown.current = stage;
    head.current?.focus();
  }, [stage]);
  return head;
}
