package testenv

import (
	"bytes"
	"encoding/json"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema reads the JSON Schema of an MCP tool as a client gets it, and validates it. Another library writes them.
func Schema(schema any) (*jsonschema.Schema, error) {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020) // that of the protocol
	if err := c.AddResource("tool.json", value); err != nil {
		return nil, err
	}
	return c.Compile("tool.json")
}
