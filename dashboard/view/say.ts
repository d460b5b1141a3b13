/** Short news for those who have the page read aloud, such as 'Copied'. One place for all: it is part of the page's file, since a live region that comes together with its text is often not read. */
const SHOWN_MILLIS = 6_000;
/** The same words twice are read twice only when they were gone between. */
const GAP_MILLIS = 100;

export function say(text: string): void {
  const region = document.getElementById('said');
  if (region === null) return;
  region.textContent = '';
  setTimeout(() => {
    region.textContent = text;
  }, GAP_MILLIS);
  setTimeout(() => {
    if (region.textContent === text) region.textContent = '';
  }, SHOWN_MILLIS);
}
