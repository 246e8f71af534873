// Package fsck checks run directories and repairs them.
package fsck

import (
	"context"
	"errors"
	"slices"

	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Check compares the records of a directory with what follows from its events, and reports each contradiction with a
// code. It only reads: it creates and writes nothing, does not block other processes, and needs no server.
//
// A live writer causes no false alarm, and no retry is needed. meta.json is read first, and completely, because it is
// replaced atomically. It records how many bytes of events.jsonl it includes. These bytes never change, because the
// stream only grows and is on disk before meta.json refers to it. So the fold of exactly these bytes must result in
// exactly this meta.json, whatever is appended concurrently. The growing files and state.json were on disk before this
// meta.json too, so they may be ahead of it but not behind.
//
// Being ahead is called lag: lines after those in meta.json, an unterminated end, a newer state.json, artifact or
// checkpoint directory. A projection has lag between its first write and its last write, which is meta.json, and holds
// the lock during that time. So lag is a finding only if, after everything was read, no process holds the lock and
// meta.json, read again after that, is unchanged. Any projection that wrote something of what was read has then either
// replaced meta.json, or still holds the lock, or was interrupted; only in the last case does the lag remain.
//
// An error means that something could not be read: there is no run ([ErrNoRun]), run.json is invalid, or the disk
// fails.
func Check(ctx context.Context, d rundir.Dir, o CheckOptions) (Report, error) {
	x, err := examine(ctx, projector.Dir{Dir: d}, o, false)
	if err != nil {
		return Report{}, err
	}
	return x.report(), nil
}

// examine reads everything and judges it. alone means that the caller holds the directory's lock.
func examine(ctx context.Context, d projector.Dir, o CheckOptions, alone bool) (*examined, error) {
	x := &examined{dir: d, opts: o}
	if err := x.readMeta(); err != nil {
		return nil, err
	}
	x.shadow = projector.NewShadow(ctx, d, o.Deep)
	if err := x.readStream(ctx); err != nil {
		return nil, err
	}
	var err error
	if x.answers, err = d.ReadAnswers(); err != nil {
		return nil, err
	}
	if err = x.readCross(); err != nil {
		return nil, err
	}
	if err = x.readProjects(); err != nil {
		return nil, err
	}
	x.effective = run.NewEffectiveStatus(x.folded(), liveness(o.EffectiveStatus), o.EffectiveStatus.Detail)
	if x.stream.lines+x.stream.beyond == 0 {
		x.effective.ShownStatus = run.Pending.Shown()
	}
	x.judgeStream()
	if err := x.judgeRecorded(); err != nil {
		return nil, err
	}
	x.judgeMeta()
	if err := x.judgeFixed(); err != nil {
		return nil, err
	}
	if err := errors.Join(x.judgeFiles(), x.judgeStore(ctx)); err != nil {
		return nil, err
	}
	return x, x.settle(alone)
}

func liveness(s run.EffectiveStatus) run.Liveness {
	if s.Liveness == "" {
		return run.LiveUnknown
	}
	return s.Liveness
}

// folded is the status according to the events.
func (x *examined) folded() run.Status { return x.stream.want.State.Status }

func (x *examined) find(c Code, message string) { x.findIn(c, "", message) }

// findIn adds a finding about a file that can be rebuilt.
func (x *examined) findIn(c Code, file, message string) {
	x.found = append(x.found, x.issue(c, file, message))
}

// lags adds a finding that counts only if no process is writing.
func (x *examined) lags(c Code, file, message string) {
	x.lag = append(x.lag, x.issue(c, file, message))
}

func (x *examined) has(codes ...Code) bool {
	return slices.ContainsFunc(x.found, func(i Issue) bool { return slices.Contains(codes, i.Code) })
}

func (x *examined) report() Report {
	r := Report{
		Snapshot: run.Snapped(x.stream.want.State, x.stream.want.History), MetaStatus: string(x.meta.status()), OK: true,
		Issues: append([]Issue{}, sorted(x.found)...), EffectiveStatus: x.effective, CrossParent: x.parent,
	}
	for _, i := range r.Issues {
		r.OK = r.OK && i.Severity == SeverityInfo
	}
	return r
}
