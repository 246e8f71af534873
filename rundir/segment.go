package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/run"
)

// SegmentVersion is the version of segments.
const SegmentVersion = 1

// Segment is a closed part of a journal in the store, linked to the one before it.
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

var segmentHead = lazyregexp.New(`^\{"version":\d+,"run_id":"([^"\\]+)","first":\d+,"last":\d+,"prev_chain":"`)

// SegmentOf returns the run of a segment that begins with head; empty if it is not a segment.
func SegmentOf(head []byte) (runID string) {
	if m := segmentHead.FindSubmatch(head); m != nil {
		return string(m[1])
	}
	return ""
}

// ErrShorter means that a directory lacks lines that it had: it was lost or restored from an old copy. A rebuild
// restores it.
var ErrShorter = errors.New("the directory is shorter than its journal: rebuild it first")

// Getter reads blobs of a store.
type Getter interface {
	Get(ctx context.Context, digest string) ([]byte, error)
}

// SegmentEnd returns the number of the last event in the segments up to head; 0 without a head.
func SegmentEnd(ctx context.Context, blobs Getter, head string) (int64, error) {
	if head == "" {
		return 0, nil
	}
	lines, err := Segments(ctx, blobs, head)
	return int64(len(lines)), err
}

// SegmentError names a segment that cannot be read, with the cause.
type SegmentError struct {
	Digest string
	Err    error
}

func (e *SegmentError) Error() string { return fmt.Sprintf("segment %s: %v", e.Digest, e.Err) }

// Unwrap returns the cause.
func (e *SegmentError) Unwrap() error { return e.Err }

// Segments reads the journal up to a head, from the first line.
func Segments(ctx context.Context, blobs Getter, head string) ([]string, error) {
	var parts [][]string
	var behind *Segment // the one read before, which follows in the journal
	for head != "" {
		raw, err := blobs.Get(ctx, head)
		if err != nil {
			return nil, &SegmentError{head, err}
		}
		var s Segment
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, &SegmentError{head, fmt.Errorf("it is %w: %v", disk.ErrDamaged, err)}
		}
		if s.Version != SegmentVersion {
			return nil, fmt.Errorf("segment %s has version %d; this program reads version %d", head, s.Version,
				SegmentVersion)
		}
		if s.Prev.Over(s.Lines) != s.Chain {
			return nil, &SegmentError{head, fmt.Errorf("it is %w: its lines do not give its chain", disk.ErrDamaged)}
		}
		if behind != nil && (behind.Prev != s.Chain || behind.First != s.Last+1 || behind.RunID != s.RunID) {
			return nil, &SegmentError{head, fmt.Errorf("it is %w: it does not end where the next one begins",
				disk.ErrDamaged)}
		}
		parts, behind = append(parts, s.Lines), &s
		head = s.Previous
	}
	if behind != nil && (behind.First != 1 || behind.Prev != "") {
		return nil, fmt.Errorf("the first segment is %w: it begins at event %d", disk.ErrDamaged, behind.First)
	}
	slices.Reverse(parts)
	return slices.Concat(parts...), nil
}

// HistoryGapError means that segments and history do not contain all events.
type HistoryGapError struct{ First, Last int64 }

func (e *HistoryGapError) Error() string {
	return fmt.Sprintf("history has no events %d to %d: they cannot be restored", e.First, e.Last)
}
