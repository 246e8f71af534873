package rundir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// exporter holds the lock of a directory and its fold. It appends lines to events.jsonl and makes every other file from
// the events and the store, so a process that is killed at any point leaves a directory that the next export completes.
type exporter struct {
	ctx   context.Context
	dir   Dir
	blobs Blobs
	truth Truth // nil: only the segments contain the written lines
	fold  *Fold // of every line as it was written, as far as that is known
	head  string
	size  int64  // of events.jsonl up to the last line feed
	torn  []byte // what follows it
	seen  int64  // events that meta.json has seen: the others are not exported
	first string // digest of the artifact after the events that meta.json has seen

	cold   bool     // every file is compared: in the first export of a process
	force  bool     // see openCold
	broken bool     // events.jsonl has other lines than meta.json has seen
	intact []string // those lines as they were written; nil: not broken, or not known

	// of the lines after those that meta.json has seen
	wrote    map[string]bool   // digests that the artifact had
	marks    []run.Checkpoint  // the checkpoints
	rows     map[string][]byte // of each log; in a cold export those of all lines
	occasion bool              // one of them is one for state.json

	meta, state []byte // meta.json and state.json as they are
	otherMeta   bool   // meta.json is not what was written
	wanted      []byte // state.json as of the last event that it names
	stands      int64  // that event
	sizes       map[string]int64
	kept        []string // files that were moved to torn/
	healed      []string // what was damaged and is made again
	edits       []Edit
	links       []string // to be made
	unsynced    bool     // files may be missing after a power failure
}

// open reads the directory for writing. A fold in memory counts if meta.json, state.json and the logs are as this process
// left them.
func (d Dir) open(ctx context.Context, blobs Blobs, truth Truth) (*exporter, error) {
	w := d.Folds.take(d.Root)
	if w == nil {
		return d.openCold(ctx, blobs, truth, false)
	}
	w.ctx, w.dir, w.blobs, w.truth, w.healed, w.edits, w.kept = ctx, d, blobs, truth, nil, nil, nil
	again, err := w.unchanged()
	if err != nil || again {
		return w, err
	}
	return d.openCold(ctx, blobs, truth, false)
}

// unchanged reports whether the files are as this process left them, and folds the lines after those that it knows.
func (w *exporter) unchanged() (bool, error) {
	for name, want := range map[string][]byte{MetaFile: w.meta, StateFile: w.state} {
		have, err := w.regular(name)
		if err != nil || have == nil || !bytes.Equal(have, want) {
			return false, err
		}
	}
	for file, l := range w.fold.Logs {
		if fi, err := w.dir.Stat(file); err != nil || fi.Size() < l.Size {
			return false, nil //nolint:nilerr // the whole export meets the error again
		}
	}
	ends, err := LineEnds(w.dir, EventsFile, w.size)
	if err != nil || !ends {
		return false, err
	}
	rest, err := ReadStream(w.dir, EventsFile, w.size)
	if err != nil {
		return false, err
	}
	w.size, w.torn = rest.Size, rest.Torn
	return true, w.take(rest.Lines)
}

// openCold folds the whole journal, and lets the next export compare every file. Lines that were changed are taken from the
// segments or from truth. If neither has them, no file is compared: nothing is made again from a journal that was
// changed. With force, files whose bytes the store has lost stay as they are.
func (d Dir) openCold(ctx context.Context, blobs Blobs, truth Truth, force bool) (*exporter, error) {
	w := &exporter{ctx: ctx, dir: d, blobs: blobs, truth: truth, unsynced: true, force: force}
	meta, err := d.Meta()
	if err == nil {
		err = Strange(d, meta)
	}
	switch {
	case err == nil:
		w.head = meta.SegmentHead
	case !disk.Missing(err):
		return nil, err
	case errors.Is(err, disk.ErrDamaged):
		meta = Meta{}
		w.heal("%v", err)
		w.otherMeta = true
	}
	for name, raw := range map[string]*[]byte{MetaFile: &w.meta, StateFile: &w.state} {
		if *raw, err = w.regular(name); err != nil {
			return nil, err
		}
	}
	if state, err := d.Parse(w.state); err == nil {
		w.stands = state.LastSeq
	}
	return w, w.read(meta)
}

// heal notes that a file is damaged and made again.
func (w *exporter) heal(format string, args ...any) {
	w.healed = append(w.healed, fmt.Sprintf(format, args...)+": made again from the events")
}

// read folds every line. Those after the ones that meta.json has seen are not exported.
func (w *exporter) read(meta Meta) error {
	of := meta.Events
	all, err := ReadStream(w.dir, EventsFile, 0)
	if err != nil {
		return err
	}
	n := int64(len(all.Lines))
	if n < of.Seq && all.Size < of.Size {
		w.heal("%s is shorter than its mark in %s", EventsFile, MetaFile)
		of = EventsMark{}
	}
	w.size, w.torn, w.seen = all.Size, all.Torn, of.Seq
	tail := run.Tail{Seq: of.Seq, Chain: of.Chain}
	before, after := all.Lines[:min(of.Seq, n)], all.Lines[min(of.Seq, n):]
	w.intact = nil
	if w.broken = of.Seq > 0 && !Ends(before, tail); w.broken {
		after = NumberedBehind(all.Lines, of.Seq)
		if w.intact, _, _, err = written(w.ctx, w.blobs, w.head, tail, before, w.truth); err != nil {
			return err
		}
		if w.intact != nil {
			before = w.intact
		}
	}
	w.cold = w.known()
	w.fold, w.rows = newFold(exporterSource{w}), map[string][]byte{}
	w.fold.rows = func(file string, rows []byte) { w.rows[file] = append(w.rows[file], rows...) }
	for _, line := range before {
		if err := w.step(ParseAny(line), line); err != nil {
			return err
		}
	}
	if !w.known() {
		if err := w.accept(meta); err != nil {
			return err
		}
	}
	w.fold.keep = func(data []byte) error {
		_, err := w.blobs.Put(w.ctx, data)
		return err
	}
	if err := w.compareMeta(); err != nil {
		return err
	}
	w.settled()
	return w.take(after)
}

// known reports whether the lines that meta.json has seen are known as they were written.
func (w *exporter) known() bool { return !w.broken || w.intact != nil }

// accept continues meta.json, state.json and the logs as they are, because the lines before are not known.
func (w *exporter) accept(meta Meta) error {
	w.rows = map[string][]byte{}
	w.fold.Header, w.fold.Tail, w.fold.Size = Header{Meta: meta}, run.Tail{Seq: meta.Events.Seq, Chain: meta.Events.Chain},
		meta.Events.Size
	if state, err := w.dir.Parse(w.state); err == nil && state.LastSeq == meta.Events.Seq {
		w.fold.State = state
	}
	for file, l := range w.fold.Logs {
		have, err := w.regular(file)
		if err != nil {
			return err
		}
		l.Size = int64(len(have))
	}
	return nil
}

// compareMeta looks for another meta.json than was written.
func (w *exporter) compareMeta() error {
	if !w.known() || w.seen == 0 || w.meta == nil {
		return nil
	}
	want, err := w.fold.Meta(w.fold.Tail.Chain, w.head)
	if err == nil && !bytes.Equal(w.meta, want) {
		w.heal("%s is not what was written", MetaFile)
		w.otherMeta = true
	}
	return err
}

// step folds one line.
func (w *exporter) step(e run.Event, line string) (err error) {
	err = w.fold.takeEvent(e.At(w.fold.Tail.Seq+1).Decoded(), line)
	if err == nil && w.fold.Tail.Seq == w.stands {
		w.wanted, err = disk.Marshal(w.fold.State)
	}
	return err
}

// take folds lines that are not exported.
func (w *exporter) take(lines []string) error {
	for _, line := range lines {
		e := ParseAny(line)
		if n := len(w.marks); n > 0 && w.marks[n-1].Seq == w.fold.Tail.Seq && e.Kind.PartOfPass() &&
			w.marks[n-1].ID == run.UnnamedID(w.fold.Tail.Seq) {
			w.marks = w.marks[:n-1] // it comes after this event
		}
		if err := w.step(e, line); err != nil {
			return err
		}
		w.wrote[run.DigestOf(w.fold.Header.State.Artifact)] = true
		if c, ok := checkpointAt(w.fold.Header.State, w.fold.Tail.Chain, line, ""); ok {
			w.marks = append(w.marks, c)
		}
		w.occasion = w.occasion || e.Kind == run.KindRunStart || e.Kind == run.KindCheckpointCreated || e.Kind == run.KindRunReverted
	}
	return nil
}

// settled notes that everything that follows from the lines so far is exported.
func (w *exporter) settled() {
	w.seen, w.first = w.fold.Tail.Seq, run.DigestOf(w.fold.Header.State.Artifact)
	w.marks, w.occasion, w.wrote = nil, false, map[string]bool{w.first: true}
	w.sizes = map[string]int64{}
	for file, l := range w.fold.Logs {
		w.sizes[file] = l.Size
	}
	clear(w.fold.changed)
}

// beyond is the number of lines that are not exported.
func (w *exporter) beyond() int64 { return w.fold.Tail.Seq - w.seen }

// exporterSource has the journal of the directory and the lists of the store.
type exporterSource struct{ w *exporter }

func (s exporterSource) Lines(last int64) ([]string, error) {
	all, err := ReadStream(s.w.dir, EventsFile, 0)
	lines := all.Lines
	if s.w.intact != nil {
		lines = slices.Concat(s.w.intact, NumberedBehind(lines, int64(len(s.w.intact))))
	}
	return lines[:min(last, int64(len(lines)))], err
}

func (s exporterSource) List(digest string) ([]byte, error) {
	raw, err := s.w.blobs.Get(s.w.ctx, digest)
	if Unreadable(err) && s.w.fold.keep != nil && !s.w.force { // of an event that is not exported
		return nil, fmt.Errorf("%w: %v", errList, err)
	}
	return raw, err
}

var errList = errors.New("a list of files cannot be read")

// regular reads a file; nil if it is missing, or another kind of file.
func (w *exporter) regular(name string) ([]byte, error) {
	if info, err := w.dir.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	return w.dir.ReadRaw(name)
}
