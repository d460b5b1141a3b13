/** Checks the options of `svc-pool run` before anything is opened or created. */
import { checkCertificate } from '../../bridge/start-stratum.ts';
import { privateText } from '../../runtime/files/private-file.ts';
import { readSmtpServer, SMTP_URL, type SmtpServer } from '../mail/smtp-server.ts';
import type { PoolValues } from '../options.ts';
import { PoolError } from '../pool-error.ts';

const MIN_SECRET = 16;

export function checkOptions(values: PoolValues): void {
  checkCertificate(values);
  webhookSecret(values);
  mailOptions(values);
  for (const { service } of values.fixedWork)
    if (values[`${service}Listen`] === 'off')
      throw new PoolError('options_disagree', `--fixed-work is on the host of --${service}-listen, which is off`);
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

export type MailOptions = { readonly server: SmtpServer; readonly from: string; readonly publicUrl: string };

/** Undefined where the pool sends no mail. */
export function mailOptions({ smtpUrl, smtpUrlFile, mailFrom, publicUrl }: PoolValues): MailOptions | undefined {
  const disagree = (what: string) => new PoolError('options_disagree', what);
  if (smtpUrl === undefined && smtpUrlFile === undefined) {
    if (mailFrom !== undefined) throw disagree('--mail-from needs --smtp-url or --smtp-url-file');
    return undefined;
  }
  if (smtpUrl !== undefined && smtpUrlFile !== undefined)
    throw disagree('give --smtp-url or --smtp-url-file, not both');
  const text = smtpUrl ?? privateText(smtpUrlFile as string, '--smtp-url-file').trim();
  const server = readSmtpServer(text);
  if (server === undefined) throw disagree(`the text in --smtp-url-file ${SMTP_URL}`);
  if (mailFrom === undefined) throw disagree('--smtp-url needs --mail-from: the sender of the mails');
  if (publicUrl === undefined) throw disagree('--smtp-url needs --public-url: mails have links to the page');
  return { server, from: mailFrom, publicUrl };
}
