/** The page of payment.html. The words stay in a worker, and never leave this machine. */
const worker = new Worker(new URL('payment-worker.mjs', import.meta.url), { type: 'module' });
const output = document.querySelector('output');
worker.addEventListener('message', ({ data }) => {
  output.textContent = data;
});
document.querySelector('form').addEventListener('submit', (event) => {
  event.preventDefault();
  worker.postMessage(Object.fromEntries(new FormData(event.target)));
});
