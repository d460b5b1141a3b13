/** Light, dark, or as the system has it; remembered in this browser. */
const REMEMBERED = 'svc-theme';
export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

/** Told to what draws by itself, such as charts. */
export const THEME_EVENT = 'svc-theme';

export function rememberedTheme(): Theme {
  try {
    const kept = localStorage.getItem(REMEMBERED);
    return THEMES.find((theme) => theme === kept) ?? 'system';
  } catch {
    return 'system';
  }
}

export function showTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  dispatchEvent(new Event(THEME_EVENT));
}

export function chooseTheme(theme: Theme): void {
  try {
    localStorage.setItem(REMEMBERED, theme);
  } catch {
    // Without storage it holds until the page is closed.
  }
  showTheme(theme);
}
