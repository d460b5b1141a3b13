/** Starts the page. */
import { render } from 'preact';
import { App } from './app.tsx';
import './theme.css';

const root = document.getElementById('app');
if (root !== null) {
  root.replaceChildren();
  render(<App />, root);
}
