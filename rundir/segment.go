package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/passbook-run/passbook/run"
)

// SegmentVersion is the version of segments.
const SegmentVersion = 1

// Segment is a closed piece of a journal in the store, linked to the one before it.
type Segment struct {
	Version  int       `json:"version"`
	RunID    string    `json:"run_id"`
	First    int64     `json:"first"`
	Last     int64     `json:"last"`
	Prev     run.Chain `json:"prev_chain"`
	Chain    run.Chain `json:"chain"`
	Previous string    `json:"previous"` // digest of the segment before; empty for the first
	Lines    []string  `json:"lines"`
}

var segmentHead = regexp.MustCompile(`^\{"version":\d+,"run_id":"([^"\\]+)","first":\d+,"last":\d+,"prev_chain":"`)

// SegmentOf gives the run whose events a blob that begins so holds; empty: it is no segment.
func SegmentOf(head []byte) (runID string) {
	if m := segmentHead.FindSubmatch(head); m != nil {
		return string(m[1])
	}
	return ""
}

// ErrShorter says that a directory lacks lines that were on it: it was lost, or put back from an old copy. It is to be rebuilt.
var ErrShorter = errors.New("the directory is shorter than its journal: rebuild it first")

// Seal puts the lines from first to last, as they are on disk, into the store as a segment behind head, and notes it in meta.json. chain is
// what they must end in. The result is the new head; without new lines it is the old one.
func (d Dir) Seal(ctx context.Context, blobs Blobs, runID, head string, first int64, tail run.Tail) (string, error) {
	if tail.Seq < first {
		return head, nil
	}
	if err := d.Disk.Mkdir(d.Root, dirPerm); err != nil {
		return "", err
	}
	lock, err := d.lock(ctx, "seal")
	if err != nil {
		return "", err
	}
	defer lock.Unlock()
	p, err := d.open(ctx, blobs)
	if err != nil {
		return "", err
	}
	seg, err := p.segment(runID, head, first, tail)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(seg)
	if err != nil {
		return "", err
	}
	digest, err := blobs.Put(ctx, raw)
	if err != nil {
		return "", fmt.Errorf("store events %d to %d: %w", first, tail.Seq, err)
	}
	p.meta.SegmentHead = digest
	return digest, p.materialise()
}

func (p *projector) segment(runID, head string, first int64, tail run.Tail) (Segment, error) {
	all, err := p.dir.readStream(0)
	if err != nil {
		return Segment{}, err
	}
	if first < 1 {
		return Segment{}, fmt.Errorf("store events from %d on: the first event of a run is 1", first)
	}
	if int64(len(all.lines)) < tail.Seq {
		return Segment{}, fmt.Errorf("%s ends at event %d, before %d: %w", p.dir.Path(EventsFile), len(all.lines), tail.Seq, ErrShorter)
	}
	prev := run.Chain("").Over(all.lines[:first-1])
	lines := all.lines[first-1 : tail.Seq]
	if got := prev.Over(lines); got != tail.Chain {
		return Segment{}, fmt.Errorf("events %d to %d of %s are not what was projected: check the directory", first, tail.Seq, p.dir.Root)
	}
	return Segment{Version: SegmentVersion, RunID: runID, First: first, Last: tail.Seq, Prev: prev, Chain: tail.Chain, Previous: head, Lines: lines}, nil
}

// SegmentEnd gives the last event that the segments up to head hold. Without a head it is 0.
func SegmentEnd(ctx context.Context, blobs Blobs, head string) (int64, error) {
	if head == "" {
		return 0, nil
	}
	lines, err := Segments(ctx, blobs, head)
	return int64(len(lines)), err
}

// Segments reads the journal that a head stands for, from the first line on.
func Segments(ctx context.Context, blobs Blobs, head string) ([]string, error) {
	var parts [][]string
	var behind *Segment // the one read before, which follows in the journal
	for head != "" {
		raw, err := blobs.Get(ctx, head)
		if err != nil {
			return nil, fmt.Errorf("segment %s: %w", head, err)
		}
		var s Segment
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("segment %s: %w", head, err)
		}
		if s.Version != SegmentVersion {
			return nil, fmt.Errorf("segment %s has version %d; this program reads version %d", head, s.Version, SegmentVersion)
		}
		if s.Prev.Over(s.Lines) != s.Chain {
			return nil, fmt.Errorf("segment %s is %w: its lines do not give its chain", head, ErrDamaged)
		}
		if behind != nil && (behind.Prev != s.Chain || behind.First != s.Last+1 || behind.RunID != s.RunID) {
			return nil, fmt.Errorf("segment %s is %w: it does not end where the next one begins", head, ErrDamaged)
		}
		parts, behind = append(parts, s.Lines), &s
		head = s.Previous
	}
	if behind != nil && (behind.First != 1 || behind.Prev != "") {
		return nil, fmt.Errorf("the first segment is %w: it begins at event %d", ErrDamaged, behind.First)
	}
	slices.Reverse(parts)
	return slices.Concat(parts...), nil
}
