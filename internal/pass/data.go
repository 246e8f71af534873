package pass

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

const itemIntro = "# The item\n\nYour work is about this item only. Others work on the other items at the same time." +
	"\n\n"

// dataRequest describes the JSON that a reply ends with.
const dataRequest = "# The JSON of your reply\n\nEnd your reply with one JSON block that fits this JSON Schema:\n\n"

// misfitIntro introduces why the reply before could not be used.
const misfitIntro = "# Your reply before\n\nYour reply before this one could not be used:"

// maxData is the maximum size of the JSON of a reply, in bytes.
const maxData = 4 << 20

// readData reads the JSON of a role with a schema. A reply without JSON that fits is unusable.
func (r *Reading) readData(role pipeline.Role, reply string) {
	if role.Schema == "" || role.Schema == pipeline.SchemaReview {
		return
	}
	data, err := dataOf(role.SchemaText, reply)
	if err != nil {
		r.warn("No JSON: %v", err)
		if r.Outcome == run.CategoryOK {
			r.fail(run.CategoryValidationFailed, "the reply has no JSON that fits the schema %s: %v", role.Schema, err)
			r.Validation.Passed = false
		}
		return
	}
	r.Data = data
	if role.Schema == pipeline.SchemaPlan {
		r.readScope(data)
	}
}

// dataOf returns the JSON of a reply: its last JSON block, or the whole reply.
func dataOf(schema, reply string) ([]byte, error) {
	for _, block := range slices.Backward(append([]string{reply}, jsonBlocks(reply)...)) {
		var compact bytes.Buffer
		err := json.Compact(&compact, []byte(block))
		switch {
		case err != nil && block == reply:
			return nil, errors.New("it has no JSON block")
		case err != nil:
			return nil, fmt.Errorf("its last JSON block is not valid: %w", err)
		case compact.Len() > maxData:
			return nil, fmt.Errorf("its JSON has %d bytes; the maximum is %d", compact.Len(), maxData)
		}
		return compact.Bytes(), pipeline.CheckValue(schema, block)
	}
	return nil, errors.New("it has no JSON block")
}

// maxScope is the maximum number of paths that a plan may declare.
const maxScope = 1000

// readScope reads the paths that a plan declares, those that are valid.
func (r *Reading) readScope(data []byte) {
	var plan struct {
		Files []string `json:"files"`
	}
	if err := json.Unmarshal(data, &plan); err != nil {
		return // it fits the schema
	}
	for _, p := range plan.Files {
		switch err := pipeline.CheckPath(strings.TrimSpace(p)); {
		case err != nil:
			r.warn("The files of the plan have %q, which %v", p, err)
		case len(r.Scope) == maxScope:
			r.warn("The plan has more than %d files; the rest does not count", maxScope)
			return
		default:
			r.Scope = append(r.Scope, strings.TrimSpace(p))
		}
	}
}
