/** The operator's routes that change a running pool: its name, its fees, the minimum payout, and its announcement. */
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { object, oneOf, text } from '../../../protocol/api/schema.ts';
import { API_VERSION } from '../../../protocol/api/values.ts';
import { EDITABLE, type Editable, EditRefusal, MAX_WORDS } from '../../edits/editable.ts';
import type { Editor, Edits } from '../../edits/edits.ts';
import { ApiRefusal } from '../api-error.ts';
import { operator, type Route } from '../route.ts';
import * as o from './operator-documents.ts';

const TOKEN_MARK = 8;
const NO_HEIGHT =
  'a higher fee needs its notice, and the pool does not know the height of the chain now: its node does not answer or is not synced';
const NO_HEIGHT_RETRY_MILLIS = 10_000;

/** The token itself is never stored: the start of its hash distinguishes it from a replacement. */
export const editorOf = (request: FastifyRequest): Editor => ({
  host: request.ip,
  token: createHash('sha256')
    .update((request.headers.authorization ?? '').replace(/^Bearer /, ''))
    .digest('hex')
    .slice(0, TOKEN_MARK),
});

export async function edit(edits: Edits, name: Editable, value: string | null, request: FastifyRequest): Promise<void> {
  let outcome: Awaited<ReturnType<Edits['change']>>;
  try {
    outcome = await edits.change(name, value, editorOf(request));
  } catch (error) {
    if (error instanceof EditRefusal) throw new ApiRefusal('bad_request', `${name} ${error.message}`);
    throw error;
  }
  if (outcome.kind === 'no_height') throw new ApiRefusal('unavailable', NO_HEIGHT, NO_HEIGHT_RETRY_MILLIS);
  if (outcome.kind === 'too_many')
    throw new ApiRefusal('conflict', 'too many changes of this fee are announced: take one back first');
}

export function editRoutes({ edits }: { readonly edits: Edits }): Route[] {
  const document = async (): Promise<o.SettingsDocument> => ({
    api_version: API_VERSION,
    settings: (await edits.list()).map(({ name, value, fileValue, isEdited, changes }) => ({
      name,
      value,
      file_value: fileValue,
      edited: isEdited,
      changes: changes.map((one) => ({ value: one.value, from_slice: one.fromSlice, from_height: one.fromHeight })),
    })),
  });
  const change = (name: Editable, value: string | null, request: FastifyRequest) => edit(edits, name, value, request);
  return [
    operator({
      method: 'GET',
      path: '/settings',
      summary: 'What can be changed without a restart: its value, that of the options, and what is announced',
      answer: o.settings,
      handle: document,
    }),
    operator({
      method: 'POST',
      path: '/settings',
      summary:
        'Changes a setting until it is taken back, whatever the options say; a lower fee holds from the next slice on, a higher one a day later',
      body: object({ name: oneOf(EDITABLE), value: text({ maxLength: MAX_WORDS, description: 'as in the options' }) }),
      answer: o.settings,
      handle: async ({ body: { name, value } }, { request }) => {
        await change(name, value, request);
        return document();
      },
    }),
    operator({
      method: 'DELETE',
      path: '/settings',
      summary: 'Takes a change back: the options count again, a fee as if it were changed to theirs',
      body: object({ name: oneOf(EDITABLE) }),
      answer: o.settings,
      handle: async ({ body: { name } }, { request }) => {
        await change(name, null, request);
        return document();
      },
    }),
    operator({
      method: 'POST',
      path: '/notice',
      summary: "Says something to everybody on the pool's page; an empty text takes it away",
      body: object({ text: text({ maxLength: MAX_WORDS, description: 'plain text' }) }),
      answer: o.notice,
      handle: async ({ body }, { request }) => {
        const said = body.text.trim();
        await change('notice', said === '' ? null : said, request);
        return { api_version: API_VERSION, notice: said === '' ? null : said };
      },
    }),
  ];
}
