package pass

import (
	"encoding/json"
	"slices"

	"github.com/passbook-run/passbook/pipeline"
)

// scopeRequest describes how a role declares the scope of the work.
const scopeRequest = "# The scope of the work\n\nEnd your reply with one JSON block of this form. It lists the files " +
	"and folders, below the root of the workspace, that the work will add, change, rename or delete. `*` stands for any " +
	"part of a name, `**` for any folders. Changes outside of it will be reported.\n\n" +
	"```json\n{\"scope\": [\"src/parse.go\", \"src/testdata/\", \"**/*_test.go\"]}\n```"

// maxScope is the maximum number of paths that a reply may declare.
const maxScope = 1000

// readScope reads the paths that a reply declares: the last JSON block with scope counts. A reply without one is
// accepted: then nothing is declared.
func (r *Reading) readScope(scope, reply string) {
	if scope != pipeline.ScopeReply {
		return
	}
	for _, block := range slices.Backward(jsonBlocks(reply)) {
		var found struct {
			Scope json.RawMessage `json:"scope"`
		}
		if json.Unmarshal([]byte(block), &found) != nil || found.Scope == nil {
			continue
		}
		var paths []string
		if err := json.Unmarshal(found.Scope, &paths); err != nil {
			r.warn("No scope: the JSON block has no list of paths: %v", err)
			return
		}
		r.declare(paths)
		return
	}
	r.warn("No scope: no JSON block has scope")
}

// declare takes over the paths that are valid.
func (r *Reading) declare(paths []string) {
	for _, p := range paths {
		switch err := pipeline.CheckPath(p); {
		case err != nil:
			r.warn("The scope has %q, which %v", p, err)
		case len(r.Scope) == maxScope:
			r.warn("The scope has more than %d paths; the rest does not count", maxScope)
			return
		default:
			r.Scope = append(r.Scope, p)
		}
	}
}
