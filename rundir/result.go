package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// ResultVersion is the version of result.json.
const ResultVersion = 1

// Kinds of results.
const (
	ResultArtifact = "artifact"
	ResultTree     = "tree"
)

// Result is result.json, the manifest of the result of a completed run. It follows from the event that ended the run.
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

// ResultError describes why the result of a completed run cannot be returned. Nothing was copied.
type ResultError struct {
	Dir, RunID, Why string
}

func (e *ResultError) Error() string {
	return fmt.Sprintf("the result in %s is not taken: %s. Rebuild the directory with `starter rebuild %s "+
		"--output-dir OTHER`, and promote OTHER", e.Dir, e.Why, e.RunID)
}

// ResultOf returns the result of a completed run; false if there is none.
func ResultOf(s run.State, artifact string, chain run.Chain) (Result, bool) {
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

// Result returns the result of a completed run. The manifest, the journal and the segments in the store must agree. If
// they do not, or the manifest is missing, the error is a [*ResultError]; if the run is not completed, it is a
// *run.ConflictError.
func (d Dir) Result(ctx context.Context, blobs Getter) (Result, error) {
	claim, err := d.Claim()
	if err != nil {
		return Result{}, err
	}
	want, err := d.journaledResult(ctx, blobs, claim)
	if err != nil {
		return Result{}, err
	}
	var recorded Result
	err = d.ReadJSON(ResultFile, &recorded)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Result{}, d.refuse(claim, "its manifest %s is missing", ResultFile)
	case errors.Is(err, disk.ErrDamaged):
		return Result{}, d.refuse(claim, "%v", err)
	case err != nil:
		return Result{}, err
	case recorded != want:
		return Result{},
			d.refuse(claim, "its manifest %s differs from the journal (%.12s, and the journal has %.12s)",
				ResultFile, recorded.Digest, want.Digest)
	}
	return want, nil
}

func (d Dir) refuse(claim run.Claim, format string, args ...any) error {
	return &ResultError{Dir: d.Root, RunID: claim.RunID, Why: fmt.Sprintf(format, args...)}
}

// journaledResult returns the result that the events record, if the store has the same events.
func (d Dir) journaledResult(ctx context.Context, blobs Getter, claim run.Claim) (r Result, err error) {
	all, err := ReadStream(d, EventsFile, 0)
	if err != nil {
		return r, err
	}
	f, err := d.folded(all.Lines)
	if err != nil {
		return r, err
	}
	if err := run.May(f.Header.State.Status, run.Promote, run.Terms{}); err != nil {
		return r, err
	}
	file, ended := f.Files[ResultFile]
	switch {
	case f.Header.State.RunID != claim.RunID:
		return r, d.refuse(claim, "its events are those of run %s", f.Header.State.RunID)
	case !ended:
		return r, d.refuse(claim, "its events name none")
	}
	if err := json.Unmarshal(file.Text, &r); err != nil {
		return r, err
	}
	return r, d.confirmed(ctx, blobs, claim, all.Lines, r.Seq)
}

// confirmed checks that the store has the same lines up to the one that ended the run.
func (d Dir) confirmed(ctx context.Context, blobs Getter, claim run.Claim, lines []string, end int64) error {
	meta, err := d.Meta()
	if err != nil {
		return d.refuse(claim, "%v", err)
	}
	sealed, err := Segments(ctx, blobs, meta.SegmentHead)
	if disk.Lost(err) || errors.Is(err, disk.ErrDamaged) {
		return d.refuse(claim, "the store does not confirm its journal: %v", err)
	}
	if err != nil {
		return err
	}
	if int64(len(sealed)) < end {
		return d.refuse(claim, "the store holds events 1 to %d of its journal, and the run ended with event %d",
			len(sealed), end)
	}
	if n := common(sealed, lines); n < min(len(sealed), len(lines)) {
		return d.refuse(claim, "event %d of %s is not the one in the store", n+1, EventsFile)
	}
	return nil
}

// ResultBytes returns the bytes of the artifact of a completed run: from the directory if they match the digest,
// otherwise from the store.
func (d Dir) ResultBytes(ctx context.Context, blobs Getter, r Result) ([]byte, error) {
	if raw, err := d.ReadFile(r.Name); err == nil && disk.Digest(raw) == r.Digest {
		return raw, nil
	}
	raw, err := blobs.Get(ctx, r.Digest)
	if err != nil {
		return nil, fmt.Errorf("%s in %s is no longer the result of the run, and the store does not have it: %w",
			r.Name, d.Root, err)
	}
	return raw, nil
}
