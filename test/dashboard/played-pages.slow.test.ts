/** Pages whose answers are made up, in one browser: lists, the keyboard, the operator, the first page, other languages, the miner of the page, the status page, and what the watch sees of a page. */
import { withBrowser } from './browser.ts';

withBrowser();

await import('./lists.ts');
await import('./keyboard.ts');
await import('./operator.ts');
await import('./start-mining.ts');
await import('./languages.ts');
await import('./mine-page.ts');
await import('./status-page.ts');
await import('./still-page.ts');
