/** Starts the page. */
import { render } from 'preact';
import { App } from './app.tsx';
import { rememberedTheme, showTheme } from './theme.ts';
import './theme.css';

showTheme(rememberedTheme());

const root = document.getElementById('app');
if (root !== null) {
  root.replaceChildren();
  render(<App />, root);
}
