/** Settings that a miner changes with the key of its address, and the links in its mails. */
import { flag, object, oneOf, optional, text } from '../../../protocol/api/schema.ts';
import { API_VERSION } from '../../../protocol/api/values.ts';
import { CHANNELS } from '../../../protocol/notices.ts';
import { MAX_MAILBOX } from '../../mail/mailbox.ts';
import { MAX_WEBHOOK_URL } from '../../webhooks/webhook-target.ts';
import * as d from '../documents.ts';
import { COSTS, FIELDS, type Route, route } from '../route.ts';
import type { MinerMail } from './miner-mail.ts';
import type { MinerView } from './miner-view.ts';
import type { MinerWebhook } from './miner-webhook.ts';
import type { NamedWorkers } from './named-workers.ts';
import type { PayoutThreshold } from './payout-threshold.ts';

export type SignedDependencies = {
  readonly miners: MinerView;
  readonly thresholds: PayoutThreshold;
  readonly workers: NamedWorkers;
  readonly webhooks: MinerWebhook;
  readonly mails: MinerMail;
  /** Whether the pool sends them to miners. */
  readonly offers: { readonly webhooks: boolean; readonly mail: boolean };
};

/** Of the links in mails. */
export const MAIL_CODE = '^[A-Za-z0-9_-]{32}$';
const ofAddress = object({ address: FIELDS.address });
const threshold = text({ maxLength: 32, description: 'atoms, decimal' });
const proven = { request: d.proofRequest, proof: d.addressProof };
const webhook = {
  channel: optional(oneOf(CHANNELS, 'what kind of place the URL is; webhook where it is missing')),
  url: text({ maxLength: MAX_WEBHOOK_URL, description: 'empty: none' }),
  events: optional(d.newsGroups),
};
const mail = {
  email: text({ maxLength: MAX_MAILBOX, description: 'empty: none' }),
  events: optional(d.newsGroups),
};
const namedWorker = {
  worker: text({ maxLength: 64, description: 'its name' }),
  named: flag('false: it is not named any more'),
};
const ofCode = object({ code: text({ pattern: MAIL_CODE, description: 'of the link in a mail' }) });

export const signedRoutes = (dependencies: SignedDependencies): Route[] => [
  ...thresholdRoutes(dependencies),
  ...workerRoutes(dependencies),
  ...webhookRoutes(dependencies),
  ...mailRoutes(dependencies),
];

function thresholdRoutes({ miners, thresholds }: SignedDependencies): Route[] {
  return [
    route({
      method: 'POST',
      path: '/miners/:address/payout-threshold/request',
      group: 'Miners',
      summary: "Asks for what the address's key must sign to change its payout threshold",
      params: ofAddress,
      body: object({ threshold_atoms: threshold }),
      answer: d.proofRequest,
      handle: ({ params, body }) => thresholds.request(params.address, body.threshold_atoms),
    }),
    route({
      method: 'POST',
      path: '/miners/:address/payout-threshold',
      group: 'Miners',
      summary: 'Changes the payout threshold of an address, proven by its key (svc-wallet prove)',
      params: ofAddress,
      body: object({ threshold_atoms: threshold, ...proven }),
      answer: d.thresholdChange,
      cost: COSTS.signature,
      handle: async ({ params, body }) => {
        const account = await miners.account(params.address);
        return thresholds.change(account, body.threshold_atoms, body.request, body.proof);
      },
    }),
  ];
}

function workerRoutes({ miners, workers }: SignedDependencies): Route[] {
  return [
    route({
      method: 'POST',
      path: '/miners/:address/workers/request',
      group: 'Miners',
      summary: "Asks for what the address's key must sign to name a worker as its own, or to take that back",
      params: ofAddress,
      body: object(namedWorker),
      answer: d.proofRequest,
      handle: ({ params, body }) => workers.request(params.address, body),
    }),
    route({
      method: 'POST',
      path: '/miners/:address/workers',
      group: 'Miners',
      summary: 'Names a worker as its own, proven by the key of the address: its news need no day of trust',
      params: ofAddress,
      body: object({ ...namedWorker, ...proven }),
      answer: d.workerChange,
      cost: COSTS.signature,
      handle: async ({ params, body }) =>
        workers.change(await miners.account(params.address), body, body.request, body.proof),
    }),
  ];
}

function webhookRoutes({ miners, webhooks, offers }: SignedDependencies): Route[] {
  return [
    route({
      method: 'GET',
      path: '/miners/:address/notifications',
      group: 'Miners',
      summary: 'Whether the pool sends webhooks and e-mail to miners, and whether those of this address work',
      params: ofAddress,
      answer: d.notifications,
      handle: async ({ params }) => ({
        api_version: API_VERSION,
        ...offers,
        ...(await webhooks.states(await miners.account(params.address))),
      }),
    }),
    route({
      method: 'POST',
      path: '/miners/:address/webhook/request',
      group: 'Miners',
      summary: "Asks for what the address's key must sign to set its webhook, or to take it away",
      params: ofAddress,
      body: object(webhook),
      answer: d.proofRequest,
      handle: ({ params, body }) => webhooks.request(params.address, body),
    }),
    route({
      method: 'POST',
      path: '/miners/:address/webhook',
      group: 'Miners',
      summary:
        'Sets the webhook of an address, or its channel of Discord, Telegram or ntfy, proven by its key; answers with the secret that requests to a webhook are signed with',
      params: ofAddress,
      body: object({ ...webhook, ...proven }),
      answer: d.webhookChange,
      cost: COSTS.signature,
      handle: async ({ params, body }) => {
        const account = await miners.account(params.address);
        return webhooks.change(account, body, body.request, body.proof);
      },
    }),
  ];
}

function mailRoutes({ miners, mails }: SignedDependencies): Route[] {
  return [
    route({
      method: 'POST',
      path: '/miners/:address/mail/request',
      group: 'Miners',
      summary: "Asks for what the address's key must sign to set its e-mail address, or to take it away",
      params: ofAddress,
      body: object(mail),
      answer: d.proofRequest,
      handle: ({ params, body }) => mails.request(params.address, body),
    }),
    route({
      method: 'POST',
      path: '/miners/:address/mail',
      group: 'Miners',
      summary: 'Sets the e-mail address of a miner, proven by its key; a mail with a link confirms it',
      params: ofAddress,
      body: object({ ...mail, ...proven }),
      answer: d.mailChange,
      cost: COSTS.signature,
      handle: async ({ params, body }) => {
        const account = await miners.account(params.address);
        return mails.change(account, body, body.request, body.proof);
      },
    }),
    route({
      method: 'POST',
      path: '/mail/confirm',
      group: 'Miners',
      summary: 'Confirms an e-mail address with the code that was sent to it',
      body: ofCode,
      answer: d.mailChange,
      handle: ({ body }) => mails.confirm(body.code),
    }),
    route({
      method: 'POST',
      path: '/mail/stop',
      group: 'Miners',
      summary: 'Takes an e-mail address away with the code that is in every mail to it',
      body: ofCode,
      answer: d.mailChange,
      handle: ({ body }) => mails.stop(body.code),
    }),
    route({
      method: 'POST',
      path: '/mail/stop/:code',
      group: 'Miners',
      summary:
        'The same in one step, for mail programs: the List-Unsubscribe address of every mail (RFC 8058); its body is not read',
      params: ofCode,
      answer: d.mailChange,
      handle: ({ params }) => mails.stop(params.code),
    }),
  ];
}
