/** Parts of an OpenAPI document that are made from schemas, for the API of the node and that of the pool. */
import type { JsonSchema } from './schema.ts';

export type Json = { readonly [name: string]: unknown };

/** Titled schemas become components, each once; everything else is inlined. */
export class Components {
  readonly schemas = new Map<string, Json>();

  reference(schema: JsonSchema): Json {
    const { title, description, ...rest } = schema;
    const body = (): Json => ({
      ...rest,
      ...(rest.items === undefined ? {} : { items: this.reference(rest.items) }),
      ...(rest.anyOf === undefined ? {} : { anyOf: rest.anyOf.map((choice) => this.reference(choice)) }),
      ...(rest.properties === undefined
        ? {}
        : {
            properties: Object.fromEntries(
              Object.entries(rest.properties).map(([name, property]) => [name, this.reference(property)]),
            ),
          }),
    });
    const described = description === undefined ? {} : { description };
    if (title === undefined) return { ...body(), ...described };
    if (!this.schemas.has(title)) {
      // Reserved first, so that the order is that of first use.
      this.schemas.set(title, {});
      this.schemas.set(title, body());
    }
    return { $ref: `#/components/schemas/${title}`, ...described };
  }
}

export const content = (schema: Json): Json => ({ 'application/json': { schema } });

export function parameters(components: Components, place: 'path' | 'query', schema: JsonSchema): Json[] {
  return Object.entries(schema.properties ?? {}).map(([name, property]) => ({
    name,
    in: place,
    required: place === 'path' || (schema.required ?? []).includes(name),
    schema: components.reference(property),
  }));
}
