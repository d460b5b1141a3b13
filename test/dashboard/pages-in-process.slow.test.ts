/** Pages against a node, and against the pool's API and books, in this process, in one browser: the explorer, stakers, an address that is made, and requests that are signed. */
import { withBrowser } from './browser.ts';

withBrowser();

await import('./explorer.ts');
await import('./staking.ts');
await import('./make-address.ts');
await import('./threshold.ts');
