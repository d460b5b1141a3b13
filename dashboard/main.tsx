/** Starts the page. */
import { App } from './app.tsx';
import { showPage } from './show-page.tsx';
import { rememberedTheme, showTheme } from './theme.ts';
import './theme.css';

showTheme(rememberedTheme());

const root = document.getElementById('app');
if (root !== null) showPage(root, App);
