package rundir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/passbook-run/passbook/run"
)

// ResultFile names what a run that is done has come to.
const ResultFile = "result.json"

// ResultVersion is the version of result.json.
const ResultVersion = 1

// Kinds of results.
const (
	ResultArtifact = "artifact"
	ResultTree     = "tree"
)

// Result is result.json, the manifest of what a run has come to. It follows from the event that ended the run, and is written with it.
type Result struct {
	Version int       `json:"version"`
	RunID   string    `json:"run_id"`
	Seq     int64     `json:"seq"`    // of the event that ended the run
	Chain   run.Chain `json:"chain"`  // up to that event
	Kind    string    `json:"kind"`   // artifact or tree
	Name    string    `json:"name"`   // of the artifact's file, or of the folder that was worked on
	Digest  string    `json:"sha256"` // of the artifact, or of the tree's root, which names every file with its digest
	Size    int64     `json:"size"`   // bytes of the artifact
}

// ResultError says why the result of a run that is done cannot be had. Nothing was copied.
type ResultError struct {
	Dir, RunID, Why string
}

func (e *ResultError) Error() string {
	return fmt.Sprintf("the result in %s is not taken: %s. Write the directory again with `starter rebuild %s --output-dir OTHER`, and promote OTHER", e.Dir, e.Why, e.RunID)
}

// resultOf is what a state that is done has come to; false: nothing.
func resultOf(s run.State, artifact string, chain run.Chain) (Result, bool) {
	r := Result{Version: ResultVersion, RunID: s.RunID, Seq: s.Seq, Chain: chain}
	switch {
	case s.Status != run.Done:
		return r, false
	case s.Artifact != nil:
		r.Kind, r.Name, r.Digest, r.Size = ResultArtifact, artifact, s.Artifact.Digest, s.Artifact.Size
	case s.Tree != nil:
		r.Kind, r.Name, r.Digest = ResultTree, WorkspaceDir, s.Tree.Digest
	default:
		return r, false
	}
	return r, true
}

// result queues result.json with the end of a run that is done.
func (p *projector) result(w *batchWriter) error {
	r, any := resultOf(p.meta.State, p.book.CurrentArtifactPath, p.chainAt(p.meta.State.Seq))
	if !any {
		return nil
	}
	raw, err := marshal(r)
	if err != nil {
		return err
	}
	w.add(wholeFile{path: p.dir.Path(ResultFile), data: raw})
	return nil
}

// Result gives what a run that is done has come to. The manifest, the journal and the segments in the store must all say the same; if they do
// not, or the manifest is missing, the error is a ResultError, and a *run.ConflictError where the run is not done.
func (d Dir) Result(ctx context.Context, blobs Blobs) (Result, error) {
	claim, err := d.Claim()
	if err != nil {
		return Result{}, err
	}
	want, err := d.journaledResult(ctx, blobs, claim)
	if err != nil {
		return Result{}, err
	}
	var said Result
	err = d.readJSON(ResultFile, &said)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Result{}, d.untaken(claim, "its manifest %s is missing", ResultFile)
	case errors.Is(err, ErrDamaged):
		return Result{}, d.untaken(claim, "%v", err)
	case err != nil:
		return Result{}, err
	case said != want:
		return Result{}, d.untaken(claim, "its manifest %s is not what the journal says (%.12s, and the journal has %.12s)", ResultFile, said.Digest, want.Digest)
	}
	return want, nil
}

func (d Dir) untaken(claim run.Claim, format string, args ...any) error {
	return &ResultError{Dir: d.Root, RunID: claim.RunID, Why: fmt.Sprintf(format, args...)}
}

// journaledResult is what the events say, when the store says that they are the ones.
func (d Dir) journaledResult(ctx context.Context, blobs Blobs, claim run.Claim) (Result, error) {
	all, err := d.readStream(0)
	if err != nil {
		return Result{}, err
	}
	var s run.State
	var r Result
	var chain run.Chain
	artifact, ended := "", false
	for i, line := range all.lines {
		chain = chain.Then(line)
		e := lenient(line)
		e.Seq = int64(i + 1)
		s = run.Apply(s, e)
		if e.Kind == run.KindRunStart {
			var p run.RunStart
			if e.Decode(&p); p.Artifact != nil {
				artifact = p.Artifact.File
			}
		}
		if e.Kind == run.KindRunEnd {
			r, ended = resultOf(s, artifact, chain)
		}
	}
	if err := run.May(s.Status, run.Promote, run.Terms{}); err != nil {
		return r, err
	}
	switch {
	case s.RunID != claim.RunID:
		return r, d.untaken(claim, "its events are those of run %s", s.RunID)
	case !ended:
		return r, d.untaken(claim, "its events name none")
	}
	return r, d.vouched(ctx, blobs, claim, all.lines, r.Seq)
}

// vouched says whether the store holds the same lines, up to the one that ended the run.
func (d Dir) vouched(ctx context.Context, blobs Blobs, claim run.Claim, lines []string, end int64) error {
	meta, err := d.Meta()
	if err != nil {
		return d.untaken(claim, "%v", err)
	}
	sealed, err := Segments(ctx, blobs, meta.SegmentHead)
	if lost(err) || errors.Is(err, ErrDamaged) {
		return d.untaken(claim, "the store does not vouch for its journal: %v", err)
	}
	if err != nil {
		return err
	}
	if int64(len(sealed)) < end {
		return d.untaken(claim, "the store holds events 1 to %d of its journal, and the run ended with event %d", len(sealed), end)
	}
	for i := range min(len(sealed), len(lines)) {
		if sealed[i] != lines[i] {
			return d.untaken(claim, "event %d of %s is not the one in the store", i+1, EventsFile)
		}
	}
	return nil
}

// ResultBytes gives the bytes of a run's artifact: the directory's, if they are the ones, or the store's.
func (d Dir) ResultBytes(ctx context.Context, blobs Blobs, r Result) ([]byte, error) {
	if raw, err := os.ReadFile(d.Path(r.Name)); err == nil && digest(raw) == r.Digest {
		return raw, nil
	}
	raw, err := blobs.Get(ctx, r.Digest)
	if err != nil {
		return nil, fmt.Errorf("%s in %s is not the result of the run any more, and the store does not give it: %w", r.Name, d.Root, err)
	}
	return raw, nil
}
