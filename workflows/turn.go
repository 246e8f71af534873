package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// maxTurn is the maximum size in bytes of the lines of a turn, whose input contains a call too.
const maxTurn = 32 << 10

// turnWait is the time a turn waits for a worker. After it, or if all calls of the host are taken, the events are
// written without the call.
const turnWait = 5 * time.Second

// takesTurn reports whether the activity of the call can write the pending events first: it executes on the host of
// the directory, and no notice is about them. Members of a group begin together, after one projection.
func (p *pass) takesTurn() bool {
	return p.e.in.Options.Turns && p.member == "" && p.e.hostBound() && p.e.j.fitTurn()
}

// fitTurn reports whether a turn can take all pending events, and no other projection is in progress.
func (j *journal) fitTurn() bool {
	if j.newer || j.mu.IsLocked() || j.waiting > 0 || len(j.pending) == 0 {
		return false
	}
	size, after := 0, j.disk.state
	for _, ev := range j.pending {
		line, err := ev.Line()
		if size += len(line); err != nil || size > maxTurn {
			return false
		}
		after = run.Apply(after, ev)
		if len(j.e.receivers(ev, after)) > 0 {
			return false
		}
	}
	return true
}

// deliver makes one delivery of the call. A turn writes the pending events first. They stay pending meanwhile: another
// projection carries them again and learns that they are on disk. If the turn did not write them, the pass stays
// unwritten and no call was made.
func (p *pass) deliver(calls, ctx, opts workflow.Context, turn bool) (*contract.PassResult, error) {
	if !turn {
		var res contract.PassResult
		err := workflow.ExecuteActivity(opts, contract.RunPass, p.input()).Get(calls, &res)
		return &res, err
	}
	batch, _, err := p.e.j.batch()
	if err != nil {
		return nil, err
	}
	var res contract.TurnResult
	err = workflow.ExecuteActivity(opts, contract.Turn, contract.TurnInput{Project: batch, Call: p.input()}).Get(calls,
		&res)
	if err != nil || res.Pass == nil {
		return &contract.PassResult{}, err
	}
	p.unwritten = false
	return res.Pass, p.e.j.tookTurn(ctx, batch, res.Project)
}

// tookTurn records that the events of a turn are on disk, unless another projection does.
func (j *journal) tookTurn(ctx workflow.Context, batch contract.ProjectInput, res contract.ProjectResult) error {
	if !j.mu.IsLocked() && len(j.pending) >= len(batch.Lines) && j.pending[0].Seq == batch.First &&
		j.disk.tail.Chain == batch.Prev {
		j.markWritten(len(batch.Lines), batch.Tail())
	}
	return j.e.journalRecovered(ctx, "", res.Recovered, 0)
}
