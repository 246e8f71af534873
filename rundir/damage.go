package rundir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// Truth gives the journal as the segments in the store and the history of its execution hold it. It is asked only where a directory is damaged.
type Truth func(ctx context.Context) ([]string, error)

// verify compares the lines on disk with the chain that they were written with, and reads the segments up to head. It names what is not as it was
// written; nothing is changed.
func (p *projector) verify(head string, truth Truth) ([]run.JournalDamage, error) {
	all, err := p.dir.readStream(0)
	if err != nil {
		return nil, err
	}
	var found []run.JournalDamage
	stored, err := Segments(p.ctx, p.blobs, head)
	if unreadable(err) {
		found = append(found, segmentDamage(head, err))
	} else if err != nil {
		return nil, err
	}
	if tail := p.tail(); int64(len(all.lines)) != tail.Seq || run.Chain("").Over(all.lines) != tail.Chain {
		whole, err := p.intact(tail, all.lines, stored, truth)
		if err != nil {
			return nil, err
		}
		found = append(found, lineDamage(all.lines, whole, tail)...)
	}
	return found, nil
}

// intact gives the lines up to a tail as they were written: those on disk; or those of the segments, with what the disk holds behind them; or those that
// truth knows. nil: none of them gives the tail's chain.
func (p *projector) intact(tail run.Tail, disk, stored []string, truth Truth) ([]string, error) {
	for _, lines := range [][]string{disk, slices.Concat(stored, numberedBehind(disk, int64(len(stored))))} {
		if ends(lines, tail) {
			return lines[:tail.Seq], nil
		}
	}
	if truth == nil {
		return nil, nil
	}
	lines, err := truth(p.ctx)
	switch {
	case errors.As(err, new(*HistoryGapError)) || unreadable(err):
		return nil, nil // neither store nor history has them all
	case err != nil || !ends(lines, tail):
		return nil, err
	}
	return lines[:tail.Seq], nil
}

// ends says that the first lines are the journal up to a tail.
func ends(lines []string, tail run.Tail) bool {
	return int64(len(lines)) >= tail.Seq && run.Chain("").Over(lines[:tail.Seq]) == tail.Chain
}

// numberedBehind gives the lines that say of themselves that they come after an event.
func numberedBehind(lines []string, seq int64) []string {
	first := slices.IndexFunc(lines, func(l string) bool { return lenient(l).Seq == seq+1 })
	if first < 0 {
		return nil
	}
	return lines[first:]
}

// unreadable says that a segment is gone or not what was stored, so that no later try can read it.
func unreadable(err error) bool {
	return lost(err) || errors.Is(err, ErrDamaged)
}

// segmentDamage is the damage that a reader of segments met.
func segmentDamage(head string, err error) run.JournalDamage {
	var at *SegmentError
	if errors.As(err, &at) {
		head = at.Digest
	}
	found := err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		found = run.Missing
	}
	return run.JournalDamage{File: run.SegmentFile + head, Expected: head, Found: found}
}

// mostNamed is how many damaged lines are named one by one.
const mostNamed = 4

// lineDamage names the lines that are not what was written. Where lines are missing, or too many, it is the first: all behind it have moved. whole is
// nil where nothing knows what was written.
func lineDamage(found, whole []string, tail run.Tail) []run.JournalDamage {
	if whole == nil {
		return []run.JournalDamage{{File: EventsFile, Expected: string(tail.Chain), Found: string(run.Chain("").Over(found))}}
	}
	var all []run.JournalDamage
	for i := range max(len(found), len(whole)) {
		was, is := lineDigest(whole, i), lineDigest(found, i)
		if was == is {
			continue
		}
		all = append(all, run.JournalDamage{File: EventsFile, Line: int64(i) + 1, Expected: was, Found: is})
		if len(found) != len(whole) || len(all) == mostNamed {
			break
		}
	}
	return all
}

// lineDigest is the digest of one line.
func lineDigest(lines []string, i int) string {
	if i >= len(lines) {
		return run.Missing
	}
	return digest([]byte(lines[i]))
}

// replaceLines writes the lines of events.jsonl anew, after a copy of the file as it was found, and reads them back as unseen: everything that follows
// from them is made again. On return both are on disk; a crash leaves the old file or the new one, whole. kept is the copy, in the directory.
func (p *projector) replaceLines(lines []string) (kept string, err error) {
	old, err := p.dir.readRaw(EventsFile)
	if err != nil {
		return "", err
	}
	if len(old) > 0 {
		if err := p.dir.Disk.Mkdir(p.dir.Path(tornDir), dirPerm); err != nil {
			return "", err
		}
		kept = path.Join(tornDir, "events-damaged-"+digest(old)[:8]+".jsonl")
		if err := p.dir.Disk.WriteFile(p.dir.Path(kept), old, filePerm); err != nil {
			return "", err
		}
	}
	if err := p.dir.Disk.WriteFile(p.dir.Path(EventsFile), []byte(strings.Join(lines, "\n")+"\n"), filePerm); err != nil {
		return "", fmt.Errorf("write %s as it was: %w", EventsFile, err)
	}
	return kept, p.startOver()
}

// readRaw gives the bytes of a file; nil: there is none.
func (d Dir) readRaw(name string) ([]byte, error) {
	raw, err := os.ReadFile(d.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}

// startOver forgets how far everything derived is.
func (p *projector) startOver() error {
	p.meta, p.last, p.chain, p.size, p.torn, p.unseen, p.chains = p.meta.unfolded(), 0, "", 0, nil, nil, nil
	return p.readRest()
}

// Damage gives what the journal says of damage, and whether it has been repaired since. It reads events.jsonl only where there was damage.
func (d Dir) Damage(s run.State) ([]run.JournalDamage, error) {
	if len(s.Damage) == 0 {
		return nil, nil
	}
	all, err := d.readStream(0)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(s.Damage)
	for i, r := range out {
		if r.File == EventsFile && r.Line > 0 && lineDigest(all.lines, int(r.Line)-1) == r.Expected {
			out[i].Repaired = true
		}
	}
	return out, nil
}
