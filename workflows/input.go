// Package workflows contains the Pipeline workflow: the journal, the stages and the messages. It is deterministic
// and does no IO: that is done by the activities whose types are in package contract.
package workflows

import (
	"fmt"
	"path"
	"strings"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/workflows/contract"
)

// checkInput validates an input that was written by hand. The error names everything that is missing.
func checkInput(in contract.Input, workflowID string, continued bool) error {
	var wrong []string
	if in.Snapshot != nil && in.Reopen == nil && !continued {
		wrong = append(wrong, "carry is only for an execution that continues another one")
	}
	for _, f := range []struct {
		name    string
		missing bool
	}{
		{"target.run_id", in.Target.RunID == ""},
		{"target.dir", in.Target.Dir == ""},
		{"target.store", in.Target.Store == ""},
		{"claim.run_id", in.Claim.RunID == ""},
		{"start.run_id", in.Start.RunID == ""},
		{"start.plan", in.Start.Plan == ""},
		{"start.stages", len(in.Start.Stages) == 0},
		{"dir_queue", in.DirQueue == ""},
		{"calls", in.Calls == ""},
	} {
		if f.missing {
			wrong = append(wrong, f.name+" is missing")
		}
	}
	for _, f := range []struct{ name, id string }{
		{"target", in.Target.RunID}, {"claim", in.Claim.RunID}, {"start", in.Start.RunID},
	} {
		// a second workflow would take the directory and the decisions of the run
		if f.id != "" && f.id != workflowID {
			wrong = append(wrong, fmt.Sprintf("%s.run_id %q is not the workflow id", f.name, f.id))
		}
	}
	if dir := in.Target.Dir; dir != "" && !path.IsAbs(dir) {
		wrong = append(wrong, fmt.Sprintf("target.dir %q is not absolute", dir))
	}
	if len(wrong) == 0 {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf("start workflow %s: invalid input: %s; start runs "+
		"with "+
		"the starter binary: starter run --config FILE",
		workflowID, strings.Join(wrong, ", ")), contract.ErrBadInput, nil)
}
