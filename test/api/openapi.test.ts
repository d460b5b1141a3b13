/** docs/openapi.json is made from the route table, is a valid OpenAPI 3.1 document, and a client made from it reads every route. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { openApiDocument } from '../../protocol/api/openapi.ts';
import { ROUTE_NAMES } from '../../protocol/api/routes.ts';
import { toHex } from '../../protocol/bytes.ts';
import { ApiBed, addressOf, treasury } from './api-bed.ts';

const text = `${JSON.stringify(openApiDocument(packageJson.version), undefined, 2)}\n`;

type Parameter = { name: string; in: string; required: boolean; schema: object };
type Operation = {
  operationId: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: object }> };
  responses: Record<string, { description: string; content: Record<string, { schema: object }> }>;
};
type Document = {
  openapi: string;
  info: { title: string; version: string };
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object> };
};
const document = JSON.parse(text) as Document;
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

test('docs/openapi.json is up to date', async () => {
  await expect(text).toMatchFileSnapshot('../../docs/openapi.json');
});

/** The rules of OpenAPI 3.1 that concern what this document uses, as a schema. */
const OPENAPI_RULES = {
  type: 'object',
  required: ['openapi', 'info', 'paths'],
  properties: {
    openapi: { type: 'string', pattern: '^3\\.1\\.\\d+$' },
    info: {
      type: 'object',
      required: ['title', 'version'],
      properties: { title: { type: 'string' }, version: { type: 'string' }, description: { type: 'string' } },
      additionalProperties: false,
    },
    servers: {
      type: 'array',
      items: { type: 'object', required: ['url'], properties: { url: { type: 'string', format: 'uri' } } },
    },
    paths: {
      type: 'object',
      patternProperties: { '^/': { $ref: '#/$defs/path' } },
      additionalProperties: false,
    },
    components: {
      type: 'object',
      properties: {
        schemas: {
          type: 'object',
          propertyNames: { pattern: '^[a-zA-Z0-9._-]+$' },
          additionalProperties: { type: 'object' },
        },
      },
      additionalProperties: false,
    },
  },
  additionalProperties: false,
  $defs: {
    path: {
      type: 'object',
      properties: { get: { $ref: '#/$defs/operation' }, post: { $ref: '#/$defs/operation' } },
      additionalProperties: false,
    },
    operation: {
      type: 'object',
      required: ['operationId', 'responses'],
      properties: {
        operationId: { type: 'string' },
        summary: { type: 'string' },
        parameters: {
          type: 'array',
          items: {
            type: 'object',
            required: ['name', 'in', 'schema'],
            properties: {
              name: { type: 'string' },
              in: { enum: ['path', 'query'] },
              required: { type: 'boolean' },
              schema: { type: 'object' },
            },
            additionalProperties: false,
            anyOf: [
              { properties: { in: { const: 'query' } } },
              { required: ['required'], properties: { required: { const: true } } },
            ],
          },
        },
        requestBody: {
          type: 'object',
          required: ['content'],
          properties: { required: { type: 'boolean' }, content: { $ref: '#/$defs/content' } },
          additionalProperties: false,
        },
        responses: {
          type: 'object',
          minProperties: 1,
          patternProperties: {
            '^[1-5]\\d\\d$': {
              type: 'object',
              required: ['description'],
              properties: { description: { type: 'string' }, content: { $ref: '#/$defs/content' } },
              additionalProperties: false,
            },
          },
          additionalProperties: false,
        },
      },
      additionalProperties: false,
    },
    content: {
      type: 'object',
      additionalProperties: { type: 'object', required: ['schema'], properties: { schema: { type: 'object' } } },
    },
  },
};

const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { uri: true } });
ajv.addSchema(document, 'api');

test('the document follows the rules of OpenAPI 3.1', () => {
  const validate = ajv.compile(OPENAPI_RULES);
  expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
  const names = operations.map(({ operation }) => operation.operationId);
  expect(new Set(names).size).toBe(names.length);
  expect(names.sort()).toEqual([...ROUTE_NAMES, 'routeList', 'health'].sort());
  for (const { path, operation } of operations) {
    const declared = (operation.parameters ?? []).filter((p) => p.in === 'path').map((p) => p.name);
    expect(declared.sort(), path).toEqual([...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort());
  }
  const references = [...text.matchAll(/"\$ref": "#\/components\/schemas\/(\w+)"/g)].map((match) => match[1] as string);
  for (const name of references) expect(document.components.schemas, name).toHaveProperty(name);
  for (const name of Object.keys(document.components.schemas)) expect(references, `${name} is unused`).toContain(name);
});

test('every schema is a JSON schema of draft 2020-12', () => {
  for (const [name, schema] of Object.entries(document.components.schemas))
    expect(ajv.validateSchema(schema), name).toBe(true);
});

/** A client that knows the document and nothing else of this project. */
async function callByDocument(base: string, operationId: string, input: Record<string, unknown>) {
  const found = operations.find(({ operation }) => operation.operationId === operationId);
  if (found === undefined) throw new Error(`no operation ${operationId}`);
  const { path, method, operation } = found;
  const rest = { ...input };
  let target = path;
  const query = new URLSearchParams();
  for (const parameter of operation.parameters ?? []) {
    if (rest[parameter.name] === undefined) continue;
    if (parameter.in === 'path') target = target.replace(`{${parameter.name}}`, String(rest[parameter.name]));
    else query.set(parameter.name, String(rest[parameter.name]));
    delete rest[parameter.name];
  }
  const answer = await fetch(`${base}${target}${query.size === 0 ? '' : `?${query}`}`, {
    method: method.toUpperCase(),
    ...(operation.requestBody === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(rest) }),
  });
  const described = operation.responses[String(answer.status)];
  if (described === undefined) throw new Error(`${operationId} answered ${answer.status}, which is not described`);
  const type = (answer.headers.get('content-type') ?? '').split(';')[0] as string;
  const body = type === 'application/json' ? await answer.json() : await answer.text();
  const pointer = (part: string) => part.replaceAll('~', '~0').replaceAll('/', '~1');
  const place = `api#/paths/${pointer(path)}/${method}/responses/${answer.status}/content/${pointer(type)}/schema`;
  const validate =
    ajv.getSchema(encodeURI(place).replaceAll('%7B', '{').replaceAll('%7D', '}')) ?? ajv.compile({ $ref: place });
  expect(validate(body), `${operationId}: ${JSON.stringify(validate.errors)}`).toBe(true);
  return { status: answer.status, body };
}

test('a client made from the document reads every route', async () => {
  const bed = await ApiBed.forTest();
  const id = await bed.pay(0, 'alice', 5n);
  const block = toHex(await bed.bed.mine(developmentKey('miner').address));
  await bed.bed.seal(98);
  const wire = bed.bed.payment([bed.bed.treasury(3)], [{ address: developmentKey('alice').address, amount: 9n }]);
  const addresses = { addresses: [treasury(), addressOf('alice')] };
  const inputs: Record<string, Record<string, unknown>> = {
    addressBalance: { address: treasury() },
    addressUtxos: { address: treasury(), limit: 5 },
    addressHistory: { address: treasury(), limit: 5 },
    cutTransactions: { height: 1 },
    cutChanges: { height: 1 },
    cutRewards: { height: 1 },
    addressBalances: addresses,
    addressesUtxos: addresses,
    addressChanges: { ...addresses, after_height: 0 },
    mempoolPending: addresses,
    stakingPositions: { addresses: [addressOf('validator 0')] },
    registeredKeys: addresses,
    transactionStatuses: { transaction_ids: [id] },
    utxoProofs: { outpoints: [{ transaction_id: id, output_index: 0 }] },
    stakingProofs: { position_ids: [id], validator_ids: [] },
    submitTransaction: { api_version: 1, wire_hex: toHex(wire) },
    transactionStatus: { id },
    block: { id: block },
    stakingEstimate: { amount: '100' },
    stakingValidator: { id: (await bed.client.stakingValidators({})).validators[0]?.validator_id ?? '' },
  };
  for (const { operation } of operations) {
    const answer = await callByDocument(bed.base, operation.operationId, inputs[operation.operationId] ?? {});
    expect(answer.status, operation.operationId).toBe(200);
  }
  expect((await callByDocument(bed.base, 'block', { id: '0'.repeat(96) })).status).toBe(404);
  expect((await callByDocument(bed.base, 'addressBalance', { address: 'x' })).status).toBe(400);
  const spent = bed.bed.payment([bed.bed.treasury(0)], [{ address: developmentKey('alice').address, amount: 9n }]);
  const refused = await callByDocument(bed.base, 'submitTransaction', { api_version: 1, wire_hex: toHex(spent) });
  expect(refused.body).toMatchObject({ error: { code: 'input_spent', failure: 'conflict' } });
});
