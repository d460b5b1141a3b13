/** Any text as a part of HTML or XML, in an element or in an attribute with quotes. */
export const markupText = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
