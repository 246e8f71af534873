package rundir

import (
	"context"
	"errors"
	"slices"

	"github.com/passbook-run/passbook/run"
)

// CheckOptions is what a check is told from outside.
type CheckOptions struct {
	// Standing brings what Temporal says of the run, asked before the check. Its zero value says that nobody was asked. The status in it is
	// not used: a check reads that itself. A run that was resumed between the two is named as running without its workflow: ask again.
	Standing run.Standing
	// ReadTree reads the manifest of a tree, and fails if its lines are not those of the tree that it names; nil: none can be read.
	ReadTree func(manifest []byte) error
	// Deep is the run's store: what events, checkpoints and segments name must be in it, with the bytes that it was stored with. nil: it is not asked.
	Deep Blobs
}

// Report is what a check has found.
type Report struct {
	Snapshot   run.Snapshot `json:"snapshot"`    // what the events come to, as far as meta.json has seen them
	MetaStatus string       `json:"meta_status"` // as it stands in meta.json; empty if that cannot be read
	OK         bool         `json:"ok"`          // no error and no warning
	Issues     []Issue      `json:"issues"`
	Standing   run.Standing `json:"standing"`

	CrossParent *run.CrossParent `json:"cross_parent"` // of a run across projects; nil: it is of one project
}

// NeedsOperator says that something was found which only an operator's decision ends.
func (r Report) NeedsOperator() bool {
	return r.Has(InterruptedWithActiveHandoff) && r.Has(ActiveHandoffWithoutDecision) || r.Has(CheckpointPendingWithoutActiveHandoff)
}

// Has says whether something was found under a code.
func (r Report) Has(c Code) bool {
	return slices.ContainsFunc(r.Issues, func(i Issue) bool { return i.Code == c })
}

// Check compares what was recorded with what follows from it, and names each contradiction by its code. It only reads: nothing is created,
// written or kept waiting, and no server is asked. It takes directories of Passbook and of other writers of this format (see [Dir.Foreign]).
//
// Beside a live writer there is no false alarm, and nothing is tried until it fits. meta.json is read first and whole, for it is replaced
// atomically. It says how many bytes of events.jsonl it has seen; those never change afterwards, since the stream only grows and is on disk before
// meta.json names it. So the fold of exactly these bytes must give exactly this meta.json, whatever is appended meanwhile. The growing
// files and state.json were on disk before this meta.json as well and only move on, so they may be further, never less far.
//
// What may be further is lag: lines behind those that meta.json has seen, an unterminated end, a newer state.json, artifact or checkpoint
// directory. A projection leaves these between its first write and its last, which is meta.json, and all that time it holds the lock. So lag is
// a finding only if, after everything was read, nobody holds the lock, and meta.json, read once more after that, is still the same. Any
// projection that wrote something of what was read has then either replaced meta.json, or still holds the lock, or was cut off: and only in the
// last case is the lag there to stay.
//
// An error says that something could not be read at all: no run ([ErrNoRun]), a run.json that is none, a disk that fails.
func (d Dir) Check(ctx context.Context, o CheckOptions) (Report, error) {
	x, err := d.examine(ctx, o, false)
	if err != nil {
		return Report{}, err
	}
	return x.report(), nil
}

// examined is a directory as one check has read it, and what it has found.
type examined struct {
	dir      Dir
	opts     CheckOptions
	own      bool
	child    bool    // another program's, of a project: the events are in the directory of its parent
	shadow   *shadow // what the projector would write; nil: in directories of other programs
	meta     metaRead
	stream   scanned
	answers  []answer
	cross    *crossCheckpoint
	parent   *run.CrossParent
	standing run.Standing
	found    []Issue
	lag      []Issue  // findings only if no process is writing
	lost     []string // damaged files that nothing can make again; see findLost

	whole  []string            // the lines of a damaged events.jsonl as they were written; nil: not known, or not asked for
	broken []run.JournalDamage // how events.jsonl differs from them
}

// examine reads everything and judges it. alone says that the caller holds the directory's lock.
func (d Dir) examine(ctx context.Context, o CheckOptions, alone bool) (*examined, error) {
	x := &examined{dir: d, opts: o}
	if err := x.readMeta(); err != nil {
		return nil, err
	}
	if x.own {
		x.shadow = newShadow(ctx, d, o.Deep)
	}
	if err := x.readStream(ctx); err != nil {
		return nil, err
	}
	var err error
	if x.answers, err = d.readAnswers(); err != nil {
		return nil, err
	}
	if x.child, err = d.isChild(); err != nil {
		return nil, err
	}
	if err = x.readCross(); err != nil {
		return nil, err
	}
	if err = x.readProjects(); err != nil {
		return nil, err
	}
	x.standing = run.Stands(x.recorded(), liveness(o.Standing), o.Standing.Detail)
	if x.own && x.stream.lines+x.stream.beyond == 0 {
		x.standing.Status = run.Pending
	}
	x.judgeStream()
	if err := x.judgeRecorded(); err != nil {
		return nil, err
	}
	x.judgeMeta()
	if err := x.judgeFixed(); err != nil {
		return nil, err
	}
	if x.own {
		if err := errors.Join(x.judgeFiles(), x.judgeStore(ctx)); err != nil {
			return nil, err
		}
	}
	return x, x.settle(alone)
}

func liveness(s run.Standing) run.Liveness {
	if s.Liveness == "" {
		return run.LiveUnknown
	}
	return s.Liveness
}

// folded is the status that the events give.
func (x *examined) folded() run.Status { return x.stream.state().Status }

func (x *examined) find(c Code, message string) { x.findIn(c, "", message) }

// findIn is a finding in a file that is to be made again.
func (x *examined) findIn(c Code, file, message string) {
	x.found = append(x.found, x.issue(c, file, message))
}

// lags is a finding only if nobody is writing.
func (x *examined) lags(c Code, file, message string) {
	x.lag = append(x.lag, x.issue(c, file, message))
}

func (x *examined) has(codes ...Code) bool {
	return slices.ContainsFunc(x.found, func(i Issue) bool { return slices.Contains(codes, i.Code) })
}

func (x *examined) report() Report {
	r := Report{
		Snapshot: x.stream.snapshot(), MetaStatus: string(x.meta.status()), OK: true,
		Issues: append([]Issue{}, sorted(x.found)...), Standing: x.standing, CrossParent: x.parent,
	}
	for _, i := range r.Issues {
		r.OK = r.OK && i.Severity == SeverityInfo
	}
	return r
}
