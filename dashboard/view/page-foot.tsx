/** The foot of a page: its language, its colours, and a stop for the figures that change by themselves. */
import { useState } from 'preact/hooks';
import { LANGUAGES, type Language } from '../../protocol/languages.ts';
import { usePaused } from '../data/pause.ts';
import { chooseTheme, rememberedTheme, THEMES, type Theme } from '../theme.ts';
import { chooseLanguage, shownLanguage, word } from '../words/language.ts';

export const LanguageChoice = () => (
  <label class="inline">
    {word('frame.language')}
    <select value={shownLanguage()} onChange={(event) => chooseLanguage(event.currentTarget.value as Language)}>
      {Object.entries(LANGUAGES).map(([language, name]) => (
        <option key={language} value={language} lang={language}>
          {name}
        </option>
      ))}
    </select>
  </label>
);

export function ThemeChoice() {
  const [theme, setTheme] = useState(rememberedTheme);
  return (
    <label class="inline">
      {word('frame.colours')}
      <select
        value={theme}
        onChange={(event) => {
          const chosen = event.currentTarget.value as Theme;
          setTheme(chosen);
          chooseTheme(chosen);
        }}
      >
        {THEMES.map((name) => (
          <option key={name} value={name}>
            {word(`frame.${name}`)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Stops the figures that change by themselves. */
export function PauseButton() {
  const [paused, setPaused] = usePaused();
  return (
    <>
      <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
        {word('frame.pause')}
      </button>
      {paused ? <strong class="warn"> {word('frame.figures_paused')}</strong> : null}
    </>
  );
}
