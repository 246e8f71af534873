package pipeline

import (
	"bytes"
	"encoding/json"
	"maps"
)

//go:generate go test -run ^TestTheSchemaIsPublished$ . -update

// schema is one JSON Schema, or a part of one.
type schema map[string]any

// Schema is the JSON Schema (draft 2020-12) of a definition, for editors: docs/pipeline.schema.json. It is written by hand, beside the
// parser, because the types of this package are what a definition becomes, not how it is written; tests hold the two together.
// Whatever Parse accepts is valid. What a schema cannot say (files that must be there, names that refer to one another) only Parse says.
func Schema() ([]byte, error) {
	s := schemaOfDefinition()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Passbook pipeline"
	s["$defs"] = schemaDefs()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(s)
	return out.Bytes(), err
}

func schemaDefs() schema {
	return schema{
		"name":   schema{"type": "string", "pattern": `^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?$`},
		"text":   schema{"type": "string", "pattern": `\S`},
		"texts":  schema{"type": "array", "minItems": 1, "items": ref("text")},
		"label":  schema{"type": "string", "pattern": `^[^\r\n]*\S[^\r\n]*$`, "maxLength": 200},
		"path":   schemaOfPath(),
		"file":   schema{"allOf": []schema{ref("name"), {"not": schema{"enum": taken}}}},
		"files":  schemaOfFiles(),
		"wait":   schemaOfDuration(),
		"pair":   schema{"type": "array", "minItems": 2, "maxItems": 2, "items": schema{"type": "number"}},
		"find":   schema{"type": "string", "pattern": `\(`},
		"agent":  schemaOfAgent(),
		"limits": schemaOfLimits(),
		"role":   schemaOfRole(),
		"check":  schemaOfCheck(),
		"order":  schemaOfOrder(),
		"stage":  schemaOfStage(),
		"step":   schemaOfStep(),
	}
}

// schemaOfPath says what the letters of a path can tell; whether it leads out of the folder by a detour, only Parse sees.
func schemaOfPath() schema {
	return schema{"type": "string", "pattern": `\S`, "not": schema{"pattern": `^(?:/|[A-Za-z]:|\.\.(?:/|$))|[\\\x00\r\n]`}}
}

func schemaOfFiles() schema {
	one := schema{"type": "object", "minProperties": 1, "maxProperties": 1, "propertyNames": ref("label"), "additionalProperties": ref("path")}
	return schema{"type": "array", "minItems": 1, "items": one}
}

// schemaOfDuration is time.ParseDuration's language, above zero.
func schemaOfDuration() schema {
	number := `(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)`
	return schema{
		"type": "string", "pattern": `^\+?(?:` + number + `(?:ns|us|µs|μs|ms|s|m|h))+$`,
		"allOf": []schema{{"pattern": "[1-9]"}}, "examples": []string{"5s", "10m", "1h30m"},
	}
}

func ref(def string) schema { return schema{"$ref": "#/$defs/" + def} }

// told is s with a description.
func told(description string, s schema) schema {
	out := maps.Clone(s)
	out["description"] = description
	return out
}

// closed is a mapping with a closed set of keys.
func closed(properties schema, required ...string) schema {
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// mapOf is a mapping of names to things.
func mapOf(thing schema) schema {
	return schema{"type": "object", "minProperties": 1, "propertyNames": ref("name"), "additionalProperties": thing}
}

func oneWord(all ...string) schema { return schema{"type": "string", "enum": all} }

func wholeFrom(lo, hi int) schema { return schema{"type": "integer", "minimum": lo, "maximum": hi} }

func numberFrom(lo, hi float64) schema { return schema{"type": "number", "minimum": lo, "maximum": hi} }

// without holds when none of the keys is there.
func without(keys ...string) schema {
	none := schema{}
	for _, k := range keys {
		none[k] = false
	}
	return schema{"properties": none}
}

func has(key string) schema { return schema{"required": []string{key}} }

// unless lays a rule down for mappings without the key.
func unless(key string, rule schema) schema { return schema{"if": has(key), "else": rule} }

// oneKey holds when exactly one of the keys is there.
func oneKey(keys ...string) schema {
	var each []schema
	for _, k := range keys {
		each = append(each, has(k))
	}
	return schema{"oneOf": each}
}
