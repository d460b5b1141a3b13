/** The worker of payment-page.mjs. */
import { pay } from './payment.mjs';

addEventListener('message', async ({ data: { api, words, recipient, coins } }) => {
  try {
    postMessage(`paid: ${await pay(api, words, recipient, coins)}`);
  } catch (error) {
    postMessage(`refused: ${error.code ?? ''} ${error.message}`);
  }
});
