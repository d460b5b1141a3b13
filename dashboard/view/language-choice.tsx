/** The choice of a language at the foot of the page. */
import { LANGUAGES, type Language } from '../../protocol/languages.ts';
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
