// Package workflows holds the Pipeline workflow: the journal, the stages, the messages. It is deterministic and does nothing itself; what it
// asks of the world are the activities of package work.
package workflows

import (
	"fmt"
	"path"
	"strings"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// Input starts one execution of a run.
type Input struct {
	Target   work.Target  `json:"target"`
	Claim    run.Claim    `json:"claim"`
	Start    run.RunStart `json:"start"`
	DirQueue string       `json:"dir_queue"` // where the directory is written
	Calls    string       `json:"calls"`     // where passes run
	Options  Options      `json:"options"`
	Carry    *Carry       `json:"carry,omitempty"`  // from the execution before, after continue-as-new or a close
	Reopen   *Reopen      `json:"reopen,omitempty"` // a closed run goes on in a new epoch; then Carry is what its directory holds
}

// Reopen opens epoch n+1 of a run that has closed, or whose workflow was lost.
type Reopen struct {
	Epoch int        `json:"epoch"`
	From  run.Status `json:"from"`           // as shown: interrupted where the events say live and the workflow is not
	Torn  string     `json:"torn,omitempty"` // what became of the workflow of a run that its events leave open; it is journaled as interrupted first
	By    string     `json:"by,omitempty"`
	Note  string     `json:"note,omitempty"`
	Force bool       `json:"force,omitempty"`
	Why   string     `json:"reason,omitempty"` // of a forced resume
	Host  string     `json:"host"`
	Build string     `json:"build"`

	Cluster  string `json:"cluster,omitempty"`  // id of the Temporal cluster that the epoch is opened on
	Embedded bool   `json:"embedded,omitempty"` // the cluster is the embedded server of that host
	Address  string `json:"address,omitempty"`  // of that cluster; empty: embedded

	Overruled []string            `json:"overruled,omitempty"` // differences of policy that force overrules
	Repaired  []run.JournalDamage `json:"repaired,omitempty"`  // lines of the directory that were written again, as they were

	Decision *Message   `json:"decision,omitempty"` // of the hand-off that the last epoch left undecided
	Revert   *Reverting `json:"revert,omitempty"`   // first of all the run goes back
	Cancel   bool       `json:"cancel,omitempty"`   // the epoch closes the run as cancelled, and does nothing else
}

// Options tune an execution. Zero values are replaced by defaults.
type Options struct {
	HeartbeatMS   int64   `json:"heartbeat_ms"`   // a worker is lost after this long without a sign; 10 s
	ContinueAfter int     `json:"continue_after"` // steps in one execution; 0: when the server suggests it
	TimeScale     float64 `json:"time_scale"`     // multiplies waits before another attempt; 1
	Attributes    bool    `json:"attributes"`     // the namespace knows the search attributes
}

// Carry is what continue-as-new hands on.
type Carry struct {
	State   run.State `json:"state"`
	Tail    run.Tail  `json:"tail"`
	Head    string    `json:"head"`   // newest segment
	Sealed  int64     `json:"sealed"` // last line in it
	Control Control   `json:"control"`

	Refusals Refusals          `json:"refusals,omitzero"`
	Waiting  *Waiting          `json:"waiting,omitempty"` // for a person's answer
	Permits  map[string]string `json:"permits,omitempty"` // what a person has said of a replay's calls
}

// Waiting is a wait for an answer that goes on in the next execution.
type Waiting struct {
	ID     string    `json:"id"` // of the question
	At     run.Place `json:"at"`
	Spoken string    `json:"spoken"` // when it was asked, or last spoken of: what is due follows from that
	Permit string    `json:"permit,omitempty"`
}

// Result is how a run ended.
type Result struct {
	RunID    string     `json:"run_id"`
	Status   run.Status `json:"status"`
	Reason   string     `json:"reason,omitempty"`
	Artifact string     `json:"artifact,omitempty"` // digest
	USD      float64    `json:"usd"`
	Score    *float64   `json:"score,omitempty"`
	Tail     run.Tail   `json:"tail"`
	Head     string     `json:"head"`
}

func (o Options) complete() Options {
	if o.HeartbeatMS <= 0 {
		o.HeartbeatMS = 10_000
	}
	if o.TimeScale <= 0 {
		o.TimeScale = 1
	}
	return o
}

// check refuses an input that no attempt can run: one that was written by hand. It names everything that is missing.
func (in Input) check(workflowID string) error {
	var wrong []string
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
	if dir := in.Target.Dir; dir != "" && !path.IsAbs(dir) {
		wrong = append(wrong, fmt.Sprintf("target.dir %q is not absolute", dir))
	}
	if len(wrong) == 0 {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf("start workflow %s: invalid input: %s; start runs with the starter binary: starter run --config FILE",
		workflowID, strings.Join(wrong, ", ")), work.ErrBadInput, nil)
}
