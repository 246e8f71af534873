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

// listForm describes the list that a role is to return.
func listForm(schema string) string {
	if schema == "" {
		return "a text or an object for each item"
	}
	return "it must fit this JSON Schema:\n\n" + fence("json", strings.TrimSpace(schema))
}

// readList checks the list of a role that returns one. A reply without a valid list is unusable.
func (r *Reading) readList(role pipeline.Role, reply string) {
	if role.Gives != pipeline.GivesList || r.Outcome != run.CategoryOK {
		return
	}
	if _, err := Items(reply, role.SchemaText); err != nil {
		r.warn("No list: %v", err)
		r.fail(run.CategoryValidationFailed, "the reply has no valid list: %v", err)
		r.Validation.Passed = false
	}
}

// Items returns the list in a reply: its last JSON block that is an array, or the whole reply. Each item is compact
// JSON.
func Items(reply, schema string) ([]json.RawMessage, error) {
	for _, block := range slices.Backward(append([]string{reply}, jsonBlocks(reply)...)) {
		var items []json.RawMessage
		if json.Unmarshal([]byte(block), &items) == nil && items != nil {
			return checkedItems(block, items, schema)
		}
	}
	return nil, errors.New("no JSON block is an array")
}

func checkedItems(block string, items []json.RawMessage, schema string) ([]json.RawMessage, error) {
	if len(items) > pipeline.MaxLanes {
		return nil, fmt.Errorf("it has %d items; the maximum is %d", len(items), pipeline.MaxLanes)
	}
	for i, item := range items {
		var compact bytes.Buffer
		if err := json.Compact(&compact, item); err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
		if items[i] = compact.Bytes(); len(items[i]) > maxItem {
			return nil, fmt.Errorf("item %d has %d bytes; the maximum is %d", i+1, len(items[i]), maxItem)
		}
	}
	if schema == "" {
		return items, nil
	}
	return items, pipeline.CheckList(schema, block)
}

// maxItem is the maximum size of an item in bytes.
const maxItem = 16 << 10
