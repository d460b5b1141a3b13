/** Puts text on the clipboard; false when the browser did not let it. Pages of plain http have no `navigator.clipboard`, only the older command. */
export async function copyText(text: string): Promise<boolean> {
  const isWritten = await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  );
  return isWritten === true || copyMarked(text);
}

/** Marks the text in a field that is not seen, and has it copied as Ctrl-C would. */
function copyMarked(text: string): boolean {
  const focused = document.activeElement;
  const field = document.createElement('textarea');
  field.value = text;
  field.readOnly = true;
  field.setAttribute('aria-hidden', 'true');
  field.style.position = 'fixed';
  field.style.opacity = '0';
  document.body.append(field);
  try {
    field.select();
    return document.execCommand('copy');
  } catch {
    return false;
  } finally {
    field.remove();
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  }
}
