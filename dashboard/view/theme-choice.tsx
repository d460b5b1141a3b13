/** The choice of colours at the foot of a page. */
import { useState } from 'preact/hooks';
import { chooseTheme, rememberedTheme, THEMES, type Theme } from '../theme.ts';

export function ThemeChoice() {
  const [theme, setTheme] = useState(rememberedTheme);
  return (
    <label class="inline">
      Colours
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
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
