/** The choice of colours at the foot of a page. */

import { useState } from 'preact/hooks';
import { chooseTheme, rememberedTheme, THEMES, type Theme } from '../theme.ts';
import { word } from '../words/language.ts';

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
