/** Starts the page. */
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { App } from './app.tsx';
import { rememberedTheme, showTheme } from './theme.ts';
import { firstLanguage, onLanguage, showLanguage, shownLanguage } from './words/language.ts';
import './theme.css';

/** Another language is another page: nothing of the one before is left. */
function Page() {
  const [language, setLanguage] = useState(shownLanguage);
  useEffect(() => onLanguage(setLanguage), []);
  return <App key={language} />;
}

showTheme(rememberedTheme());

const root = document.getElementById('app');
const begin = (): void => {
  if (root === null) return;
  root.replaceChildren();
  render(<Page />, root);
};
const language = firstLanguage();
// English is here already: its page waits for nothing.
if (language === 'en') begin();
else void showLanguage(language).then(begin);
