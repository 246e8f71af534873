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

// Sealing asks for the events from First to Tail to be put into the store behind the segment Head.
type Sealing struct {
	RunID string
	Head  string
	First int64
	Tail  run.Tail
	Truth Truth // nil: only the segments and the directory are asked what was written
}

// Sealed is what came of it: the newest segment, the last event in it, and what was found damaged on the way.
type Sealed struct {
	Head   string
	Last   int64
	Damage []run.JournalDamage
}

// Seal puts events into the store as a segment, and notes it in meta.json. What is stored is what was written: where lines on disk are damaged, they are
// taken from elsewhere, and the damage is named. Where nothing has them, nothing is stored: Last is then before First. Where an earlier segment is lost or
// damaged, all events are stored again. Damage is no error: trying again would find it again. A directory that lacks lines is [ErrShorter].
func (d Dir) Seal(ctx context.Context, blobs Blobs, s Sealing) (Sealed, error) {
	done := Sealed{Head: s.Head, Last: s.First - 1}
	if s.Tail.Seq < s.First {
		return done, nil
	}
	if err := d.Disk.Mkdir(d.Root, dirPerm); err != nil {
		return done, err
	}
	lock, err := d.lock(ctx, "seal")
	if err != nil {
		return done, err
	}
	defer lock.Unlock()
	p, err := d.open(ctx, blobs)
	if err != nil {
		return done, err
	}
	seg, err := p.segment(s, &done)
	if err != nil || seg == nil {
		return done, err
	}
	raw, err := json.Marshal(seg)
	if err != nil {
		return done, err
	}
	digest, err := blobs.Put(ctx, raw)
	if err != nil {
		return done, fmt.Errorf("store events %d to %d: %w", seg.First, seg.Last, err)
	}
	done.Head, done.Last = digest, seg.Last
	if p.meta.SegmentHead == digest && len(p.unseen) == 0 && p.meta.Behind == nil {
		return done, nil // it was noted before
	}
	p.meta.SegmentHead = digest
	return done, p.materialise()
}

// segment makes the segment; nil: what is to be in it is lost. Damage is noted in done.
func (p *projector) segment(s Sealing, done *Sealed) (*Segment, error) {
	all, err := p.dir.readStream(0)
	if err != nil {
		return nil, err
	}
	if s.First < 1 {
		return nil, fmt.Errorf("store events from %d on: the first event of a run is 1", s.First)
	}
	if int64(len(all.lines)) < s.Tail.Seq {
		return nil, fmt.Errorf("%s ends at event %d, before %d: %w", p.dir.Path(EventsFile), len(all.lines), s.Tail.Seq, ErrShorter)
	}
	stored, err := Segments(p.ctx, p.blobs, s.Head)
	if unreadable(err) {
		done.Damage = append(done.Damage, segmentDamage(s.Head, err))
	} else if err != nil {
		return nil, err
	}
	disk := all.lines[:s.Tail.Seq]
	lines, err := p.intact(s.Tail, disk, stored, s.Truth)
	if err != nil {
		return nil, err
	}
	if lines == nil || run.Chain("").Over(disk) != s.Tail.Chain {
		done.Damage = append(done.Damage, lineDamage(disk, lines, s.Tail)...)
	}
	if lines == nil {
		return nil, nil
	}
	first, head := s.First, s.Head
	if int64(len(stored)) != first-1 || !slices.Equal(stored, lines[:first-1]) {
		first, head = 1, "" // no segment is there that this one could follow
	}
	return &Segment{
		Version: SegmentVersion, RunID: s.RunID, First: first, Last: s.Tail.Seq, Prev: run.Chain("").Over(lines[:first-1]), Chain: s.Tail.Chain, Previous: head,
		Lines: lines[first-1:],
	}, nil
}

// SegmentEnd gives the last event that the segments up to head hold. Without a head it is 0.
func SegmentEnd(ctx context.Context, blobs Blobs, head string) (int64, error) {
	if head == "" {
		return 0, nil
	}
	lines, err := Segments(ctx, blobs, head)
	return int64(len(lines)), err
}

// SegmentError says which segment cannot be read, and why.
type SegmentError struct {
	Digest string
	Err    error
}

func (e *SegmentError) Error() string { return fmt.Sprintf("segment %s: %v", e.Digest, e.Err) }

// Unwrap gives the cause.
func (e *SegmentError) Unwrap() error { return e.Err }

// Segments reads the journal that a head stands for, from the first line on.
func Segments(ctx context.Context, blobs Blobs, head string) ([]string, error) {
	var parts [][]string
	var behind *Segment // the one read before, which follows in the journal
	for head != "" {
		raw, err := blobs.Get(ctx, head)
		if err != nil {
			return nil, &SegmentError{head, err}
		}
		var s Segment
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, &SegmentError{head, fmt.Errorf("it is %w: %v", ErrDamaged, err)}
		}
		if s.Version != SegmentVersion {
			return nil, fmt.Errorf("segment %s has version %d; this program reads version %d", head, s.Version, SegmentVersion)
		}
		if s.Prev.Over(s.Lines) != s.Chain {
			return nil, &SegmentError{head, fmt.Errorf("it is %w: its lines do not give its chain", ErrDamaged)}
		}
		if behind != nil && (behind.Prev != s.Chain || behind.First != s.Last+1 || behind.RunID != s.RunID) {
			return nil, &SegmentError{head, fmt.Errorf("it is %w: it does not end where the next one begins", ErrDamaged)}
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
