package rundir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// Fold is what a run directory contains after an event: the fold of its journal, and of the lists in the store that the
// journal names. Every file of a directory is made from it, one event at a time or all at once.
type Fold struct {
	Header Header        // meta.json
	State  PipelineState // state.json
	Tail   run.Tail
	Size   int64           // of events.jsonl
	Files  map[string]File // all others except the logs, by name
	Logs   map[string]*Log

	source  source
	named   map[int64]CheckpointRecord     // of the event with that number
	changed map[string]File                // files that were set or removed, as they were before
	blobs   map[string]string              // every blob of a file so far, with the name of the file; nil: not noted
	keep    func(data []byte) error        // stores what Files names by digest, unless the caller of the run has stored it; nil: it is stored
	rows    func(file string, rows []byte) // takes the rows of an event; nil: they are not needed
}

// source has what a journal refers to.
type source interface {
	// Lines returns the journal up to an event.
	Lines(last int64) ([]string, error)
	// List returns a blob that lists files.
	List(digest string) ([]byte, error)
}

// Role distinguishes the files of a directory.
type Role int

const (
	Derived Role = iota
	// Evidence of a pass, a round or a checkpoint: a revert moves it to a folder with a number.
	Evidence
	// Aside is what a revert has moved.
	Aside
	// Edited is a file that people edit: the artifact.
	Edited
)

// File is the content of a file: a blob, the manifest of a tree or the tree itself, a link, or Text.
type File struct {
	Digest string // of the bytes; empty: Text counts
	Tree   string // digest of a tree; the file is its manifest
	Folder bool   // the tree itself
	Link   string // target
	Text   []byte
	Role   Role
	seq    int64 // of the event that has set it
}

// Log is how much of a log follows from the events so far.
type Log struct {
	Size int64
	sum  hash.Hash
	Gap  bool // rows are unknown, because a list that an event refers to is lost

	digest string // of a copy
}

// Digest is the SHA-256 of the first Size bytes.
func (l *Log) Digest() string { return hex.EncodeToString(l.sum.Sum(nil)) }

func newFold(s source) *Fold {
	f := &Fold{State: NewState(), Files: map[string]File{}, Logs: map[string]*Log{}, source: s,
		named: map[int64]CheckpointRecord{}, changed: map[string]File{}}
	for _, file := range Growing() {
		f.Logs[file] = &Log{sum: sha256.New()}
	}
	return f
}

// take folds the next line. Lines that are no events keep their place.
func (f *Fold) take(line string) error {
	return f.takeEvent(ParseAny(line).At(f.Tail.Seq+1).Decoded(), line)
}

func (f *Fold) takeEvent(e run.Event, line string) error {
	f.Tail = run.Tail{Seq: e.Seq, Chain: f.Tail.Chain.Then(line)}
	f.Size += int64(len(line)) + 1
	before, pending := f.Header.State, f.State.PendingErrors
	f.Header.Fold(e)
	if err := f.derive(e, before); err != nil {
		return fmt.Errorf("what follows from event %d (%s): %w", e.Seq, e.Kind, err)
	}
	FoldRecords(&f.State, e, &f.Header.State)
	return f.log(e, &before, pending)
}

// log adds the rows of an event.
func (f *Fold) log(e run.Event, before *run.State, pending []ErrorRecord) error {
	rows, err := RowsOf(e, before, &f.Header.State, &f.State, pending, func(digest string) ([]byte, error) {
		raw, err := f.source.List(digest)
		if Unreadable(err) {
			f.Logs[ProvenanceFile].Gap = true
			return []byte("null"), nil
		}
		return raw, err
	})
	for file, added := range rows {
		l := f.Logs[file]
		l.Size += int64(len(added))
		l.sum.Write(added)
		if f.rows != nil {
			f.rows(file, added)
		}
	}
	return err
}

// Meta is meta.json. chain is that over the lines as they were written, and segmentHead the newest segment.
func (f *Fold) Meta(chain run.Chain, segmentHead string) ([]byte, error) {
	f.Header.Derive()
	m := f.Header.Meta
	m.Events = EventsMark{Seq: f.Tail.Seq, Chain: chain, Size: f.Size}
	m.Summary, m.SegmentHead = Summarize(&f.State), segmentHead
	return disk.Marshal(m)
}

// set changes a file, to be written even if it is the same.
func (f *Fold) set(name string, file File) {
	name = path.Clean(name)
	f.touch(name)
	if file.seq == 0 {
		file.seq = f.Tail.Seq
	}
	f.Files[name] = file
	if f.blobs != nil && file.Digest != "" {
		f.blobs[file.Digest] = name
	}
}

func (f *Fold) remove(name string) {
	f.touch(name)
	delete(f.Files, name)
}

func (f *Fold) touch(name string) {
	if _, known := f.changed[name]; !known {
		f.changed[name] = f.Files[name]
	}
}

// revert goes back to the files and records of the target's event. Evidence that is not theirs moves to folders with
// numbers, pass-025~1, pass-025~2, so that a repeated pass overwrites nothing. What a revert does not undo stays: the
// history of errors, the numbers of folders and of turns.
func (f *Fold) revert(e run.Event) error {
	var r run.RunReverted
	if e.Decode(&r); r.State == nil {
		return nil
	}
	past, err := f.at(min(r.To, e.Seq-1))
	if err != nil {
		return err
	}
	numbers := map[string]string{}
	for _, name := range sortedNames(f.Files) {
		file := f.Files[name]
		if file.Role != Evidence || past.Files[name].seq == file.seq {
			continue
		}
		dir := path.Dir(name)
		if numbers[dir] == "" {
			f.State.Superseded[dir]++
			numbers[dir] = "~" + strconv.Itoa(f.State.Superseded[dir])
		}
		f.remove(name)
		file.Role = Aside
		f.set(path.Join(dir+numbers[dir], path.Base(name)), file)
	}
	for name, file := range past.Files {
		if file.Role == Evidence && f.Files[name].seq != file.seq {
			f.set(name, file)
		}
	}
	f.State = reverted(f.State, past.State)
	return f.restore(f.State.CurrentArtifactPath, f.Header.State)
}

// reverted are the records of then, with what a revert keeps of now.
func reverted(now, then PipelineState) PipelineState {
	errs, open := now.ErrorHistory, []ErrorRecord{}
	for _, o := range now.PendingErrors {
		if slices.Contains(then.PendingErrors, o) {
			open = append(open, o)
		} else {
			errs = append(errs, o) // its pass was superseded
		}
	}
	then.ErrorHistory, then.PendingErrors = errs, open
	then.Superseded, then.Turns = now.Superseded, now.Turns
	return then
}

// at folds the events that were in force at an event: their records and evidence, without logs.
func (f *Fold) at(last int64) (*Fold, error) {
	lines, err := f.source.Lines(last)
	if err != nil {
		return nil, err
	}
	past := newFold(f.source)
	past.named = f.named
	holds := Seqs(InForce(lines, last))
	for i, line := range lines {
		e := ParseAny(line).At(int64(i) + 1).Decoded()
		before := past.Header.State
		past.Tail.Seq = e.Seq
		past.Header.Fold(e)
		if !holds[e.Seq] || e.Kind == run.KindRunReverted {
			continue
		}
		if err := past.derive(e, before); err != nil {
			return nil, err
		}
		FoldRecords(&past.State, e, &past.Header.State)
	}
	return past, nil
}

const missing = "is missing"

// differs describes what is wrong with a file; empty: nothing. before: it is as it was before the events that have changed
// it last. readTree reads the manifest of a tree.
func (f *Fold) differs(d Dir, name string, readTree func(manifest []byte) error) (wrong string, before bool, err error) {
	if wrong, err = f.Files[name].wrong(d, name, readTree); err != nil || wrong == "" {
		return "", false, err
	}
	if was, changed := f.changed[name]; changed {
		then, err := was.wrong(d, name, readTree)
		return wrong, then == "", err
	}
	return wrong, false, nil
}

// wrong describes what is wrong with the file of a directory; empty: nothing.
func (a File) wrong(d Dir, name string, readTree func(manifest []byte) error) (string, error) {
	info, err := d.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && a.same(File{}) && a.seq == 0:
		return "", nil
	case errors.Is(err, fs.ErrNotExist):
		return missing, nil
	case err != nil:
		return "", err
	case a.Link != "":
		if to, err := os.Readlink(d.Path(name)); err != nil || to != filepath.FromSlash(a.Link) {
			return "is not a link to " + a.Link, nil //nolint:nilerr // it is another kind of file
		}
		return "", nil
	case a.Folder:
		if !info.IsDir() {
			return "is not a folder", nil
		}
		return "", nil
	case !info.Mode().IsRegular():
		return "is not a file", nil
	case a.Tree != "":
		return wrongManifest(d, name, a.Tree, readTree)
	}
	have, err := d.DigestOf(name)
	if err != nil || have == a.sum() {
		return "", err
	}
	return fmt.Sprintf("is not what the run recorded: its sha-256 is %.12s, not %.12s", have, a.sum()), nil
}

// wrongManifest reads the manifest of a tree, which contains the name of the tree that its lines describe.
func wrongManifest(d Dir, name, tree string, readTree func(manifest []byte) error) (string, error) {
	raw, err := d.ReadFile(name)
	if err != nil {
		return "", err
	}
	if !json.Valid(raw) || !bytes.HasPrefix(raw, []byte(`{"version":1,`+"\n"+`"tree":"`+tree+`",`)) {
		return fmt.Sprintf("is not of tree %.12s", tree), nil
	}
	if readTree != nil {
		if err := readTree(raw); err != nil {
			return "was changed: " + err.Error(), nil
		}
	}
	return "", nil
}

// same reports whether two files have the same content.
func (a File) same(b File) bool {
	return a.Digest == b.Digest && a.Tree == b.Tree && a.Link == b.Link && bytes.Equal(a.Text, b.Text)
}

// sum is the SHA-256 of a file's bytes.
func (a File) sum() string {
	if a.Digest == "" {
		return disk.Digest(a.Text)
	}
	return a.Digest
}
