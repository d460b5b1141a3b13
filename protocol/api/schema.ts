/**
 * JSON schemas as values that carry their TypeScript type: one source for the node's checks, the client's checks, the
 * types of both, and the OpenAPI document. The subset of JSON Schema is the one that `check` knows.
 */

export type JsonSchema = {
  readonly title?: string;
  readonly description?: string;
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'null';
  readonly const?: string | number | boolean;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: number;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly anyOf?: readonly JsonSchema[];
};

declare const shape: unique symbol;
/** A schema of values of type T; the type exists for the compiler alone. */
export type Schema<T> = JsonSchema & { readonly [shape]?: T };
export type Optional<T> = { readonly optional: Schema<T> };

export type Infer<S> = S extends { readonly [shape]?: infer T } ? Exclude<T, undefined> : never;

type Field = Schema<unknown> | Optional<unknown>;
type OptionalKeys<P> = { [K in keyof P]: P[K] extends Optional<unknown> ? K : never }[keyof P];
type Shape<P> = { readonly [K in Exclude<keyof P, OptionalKeys<P>>]: Infer<P[K]> } & {
  readonly [K in OptionalKeys<P>]?: (P[K] extends Optional<infer T> ? T : never) | undefined;
};
/** Flattens an intersection, so that editors and error messages show fields. */
type Flat<T> = { [K in keyof T]: T[K] };

export const text = (rules: JsonSchema = {}): Schema<string> => ({ type: 'string', ...rules });
export const integer = (rules: JsonSchema = {}): Schema<number> => ({
  type: 'integer',
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  ...rules,
});
/** A number that need not be an integer, such as a rate. */
export const number = (rules: JsonSchema = {}): Schema<number> => ({ type: 'number', ...rules });
/** A value of any kind. */
export const anything = (description: string): Schema<unknown> => ({ description });
export const flag = (description?: string): Schema<boolean> => ({
  type: 'boolean',
  ...(description === undefined ? {} : { description }),
});
export const exactly = <const T extends string | number | boolean>(value: T): Schema<T> => ({
  type: typeof value === 'string' ? 'string' : typeof value === 'number' ? 'integer' : 'boolean',
  const: value,
});
export const oneOf = <const T extends string>(values: readonly T[], description?: string): Schema<T> => ({
  type: 'string',
  enum: values,
  ...(description === undefined ? {} : { description }),
});
export const list = <T>(items: Schema<T>, rules: JsonSchema = {}): Schema<readonly T[]> => ({
  type: 'array',
  items,
  ...rules,
});
export const nullable = <T>(schema: Schema<T>): Schema<T | null> => ({ anyOf: [schema, { type: 'null' }] });
export const either = <A, B>(a: Schema<A>, b: Schema<B>): Schema<A | B> => ({ anyOf: [a, b] });
export const optional = <T>(schema: Schema<T>): Optional<T> => ({ optional: schema });

export function object<const P extends Record<string, Field>>(fields: P, title?: string): Schema<Flat<Shape<P>>> {
  const properties: Record<string, JsonSchema> = {};
  const required: string[] = [];
  for (const [name, field] of Object.entries(fields)) {
    if ('optional' in field && field.optional !== undefined) properties[name] = (field as Optional<unknown>).optional;
    else {
      properties[name] = field as JsonSchema;
      required.push(name);
    }
  }
  return {
    ...(title === undefined ? {} : { title }),
    type: 'object',
    properties,
    required,
    additionalProperties: false,
  };
}

export const described = <T>(schema: Schema<T>, description: string): Schema<T> => ({ ...schema, description });

/**
 * Converts fields of a request line to the types of their schema. A value that cannot be converted stays text and fails
 * the check. Without a prototype: a field called __proto__ is a field like any other, and refused.
 */
export function typedFields(schema: JsonSchema, fields: Readonly<Record<string, string>>): Record<string, unknown> {
  const values = Object.create(null) as Record<string, unknown>;
  for (const [name, text] of Object.entries(fields)) {
    const isNumber = schema.properties?.[name]?.type === 'integer' && /^(0|[1-9]\d{0,15})$/.test(text);
    values[name] = isNumber ? Number(text) : text;
  }
  return values;
}

export type SchemaProblem = { readonly field: string; readonly problem: string };

export type CheckOptions = {
  /** A client accepts unknown fields, which a newer server may have added; a server refuses them. */
  readonly unknownFields: 'refuse' | 'ignore';
};

const patterns = new Map<string, RegExp>();
function matches(pattern: string, value: string): boolean {
  let compiled = patterns.get(pattern);
  if (compiled === undefined) {
    compiled = new RegExp(pattern, 'u');
    patterns.set(pattern, compiled);
  }
  return compiled.test(value);
}

const at = (path: string, problem: string): SchemaProblem => ({ field: path === '' ? '(document)' : path, problem });

function checkText(schema: JsonSchema, value: unknown, path: string): SchemaProblem | undefined {
  if (typeof value !== 'string') return at(path, 'must be a string');
  if (schema.maxLength !== undefined && value.length > schema.maxLength)
    return at(path, `has at most ${schema.maxLength} characters`);
  if (schema.minLength !== undefined && value.length < schema.minLength)
    return at(path, `has at least ${schema.minLength} characters`);
  if (schema.const !== undefined && value !== schema.const) return at(path, `must be ${schema.const}`);
  if (schema.enum !== undefined && !schema.enum.includes(value))
    return at(path, `must be one of ${schema.enum.join(', ')}`);
  if (schema.pattern !== undefined && !matches(schema.pattern, value)) return at(path, `must match ${schema.pattern}`);
  return undefined;
}

function checkInteger(schema: JsonSchema, value: unknown, path: string): SchemaProblem | undefined {
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) return at(path, 'must be an integer');
  if (schema.const !== undefined && value !== schema.const) return at(path, `must be ${schema.const}`);
  if (schema.minimum !== undefined && value < schema.minimum) return at(path, `must be at least ${schema.minimum}`);
  if (schema.maximum !== undefined && value > schema.maximum) return at(path, `must be at most ${schema.maximum}`);
  return undefined;
}

function checkList(schema: JsonSchema, value: unknown, path: string, options: CheckOptions): SchemaProblem | undefined {
  if (!Array.isArray(value)) return at(path, 'must be an array');
  if (schema.maxItems !== undefined && value.length > schema.maxItems)
    return at(path, `has at most ${schema.maxItems} entries`);
  if (schema.minItems !== undefined && value.length < schema.minItems)
    return at(path, `has at least ${schema.minItems} entries`);
  if (schema.items !== undefined)
    for (let i = 0; i < value.length; i++) {
      const problem = check(schema.items, value[i], `${path}[${i}]`, options);
      if (problem !== undefined) return problem;
    }
  return undefined;
}

function checkObject(
  schema: JsonSchema,
  value: unknown,
  path: string,
  options: CheckOptions,
): SchemaProblem | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return at(path, 'must be an object');
  const properties = schema.properties ?? {};
  const prefix = path === '' ? '' : `${path}.`;
  for (const name of schema.required ?? [])
    if (!Object.hasOwn(value, name)) return at(`${prefix}${name}`, 'is missing');
  for (const [name, entry] of Object.entries(value)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property === undefined) {
      if (options.unknownFields === 'refuse')
        return at(`${prefix}${name.slice(0, 64)}`, 'is not a field of this document');
      continue;
    }
    const problem = check(property, entry, `${prefix}${name}`, options);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** The first thing wrong with a value, or nothing. */
export function check(
  schema: JsonSchema,
  value: unknown,
  path = '',
  options: CheckOptions = { unknownFields: 'refuse' },
): SchemaProblem | undefined {
  if (schema.anyOf !== undefined) {
    let first: SchemaProblem | undefined;
    for (const choice of schema.anyOf) {
      const problem = check(choice, value, path, options);
      if (problem === undefined) return undefined;
      first ??= problem;
    }
    return first;
  }
  switch (schema.type) {
    case 'object':
      return checkObject(schema, value, path, options);
    case 'array':
      return checkList(schema, value, path, options);
    case 'string':
      return checkText(schema, value, path);
    case 'integer':
      return checkInteger(schema, value, path);
    case 'number':
      if (typeof value !== 'number' || !Number.isFinite(value)) return at(path, 'must be a number');
      return schema.minimum === undefined || value >= schema.minimum
        ? undefined
        : at(path, `must be at least ${schema.minimum}`);
    case 'boolean':
      if (typeof value !== 'boolean') return at(path, 'must be true or false');
      return schema.const === undefined || value === schema.const ? undefined : at(path, `must be ${schema.const}`);
    case 'null':
      return value === null ? undefined : at(path, 'must be null');
    case undefined:
      return undefined;
  }
}
