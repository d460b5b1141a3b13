/** Draws a page in the reader's language, and draws it anew when another is chosen. */
import { type ComponentType, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { firstLanguage, onLanguage, showLanguage, shownLanguage } from './words/language.ts';

export function showPage(root: HTMLElement, App: ComponentType): void {
  /** Another language is another page: nothing of the one before is left. */
  function Page() {
    const [language, setLanguage] = useState(shownLanguage);
    useEffect(() => onLanguage(setLanguage), []);
    return <App key={language} />;
  }
  const begin = (): void => {
    root.replaceChildren();
    render(<Page />, root);
  };
  const language = firstLanguage();
  // English is here already: its page waits for nothing.
  if (language === 'en') begin();
  else void showLanguage(language).then(begin);
}
