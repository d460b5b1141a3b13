/** What can be found wrong in the options of `svc-pool run` before anything is opened or made. */
import { checkCertificate } from '../bridge/start-stratum.ts';
import { privateText } from '../runtime/private-file.ts';
import type { PoolValues } from './options.ts';
import { PoolError } from './pool-error.ts';

const MIN_SECRET = 16;

export function checkOptions(values: PoolValues): void {
  checkCertificate(values);
  webhookSecret(values);
  if (values.wallet !== undefined && values.walletTokenFile === undefined)
    throw new PoolError('options_disagree', '--wallet needs --wallet-token-file');
}

export function webhookSecret({ webhook, webhookSecretFile }: PoolValues): string {
  if (webhook.length === 0) return '';
  const text = webhookSecretFile === undefined ? '' : privateText(webhookSecretFile, '--webhook-secret-file').trim();
  if (text.length < MIN_SECRET)
    throw new PoolError(
      'webhook_secret',
      `--webhook needs --webhook-secret-file with at least ${MIN_SECRET} characters: openssl rand -hex 32 > FILE; chmod 600 FILE`,
    );
  return text;
}
