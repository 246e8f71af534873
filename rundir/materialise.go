package rundir

import (
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/run"
)

// materialise writes everything that follows from the unseen events: evidence, artifact, notes, checkpoints, then the logs, then state.json,
// and meta.json last. It can be cut off anywhere and done again.
func (p *projector) materialise() error {
	due := p.due()
	if err := p.readBook(due); err != nil {
		return err
	}
	from := Behind{Seq: p.meta.Events.Seq, Size: p.meta.Events.Size, State: p.meta.State}
	load := func(d string) ([]byte, error) { return p.blobs.Get(p.ctx, d) }
	w, logs := &batchWriter{disk: p.dir.Disk, load: load, spares: p.spares}, newLogbook(load)
	var marks []run.Checkpoint
	for i, e := range p.unseen {
		if i > 0 && e.Kind == run.KindCheckpointCreated && !p.anew { // where all is made again, readers know later records already
			if err := p.saveBefore(w); err != nil {
				return err
			}
		}
		before, had := p.meta.State, p.book.counted()
		p.meta.fold(e)
		marks = p.markHead(marks, i)
		if err := p.evidence(w, e, before); err != nil {
			return fmt.Errorf("write what follows from event %d (%s): %w", e.Seq, e.Kind, err)
		}
		pending := p.book.PendingErrors
		if err := p.applyBook(w, e); err != nil {
			return err
		}
		p.meta.Summary.take(e, had, &p.book)
		logs.log(entry{Event: e, before: before, after: p.meta.State, book: &p.book, pending: pending})
	}
	if err := p.keepMarks(marks); err != nil {
		return err
	}
	if err := p.growAll(logs); err != nil {
		return err
	}
	if err := p.keepBook(w, due, from); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	return p.writeMeta()
}

// keepBook queues state.json, behind everything else, or says in meta.json how far behind it stays.
func (p *projector) keepBook(w *batchWriter, due bool, from Behind) error {
	if due || from.Seq == 0 {
		p.meta.Behind = nil
		return p.queueBook(w)
	}
	if p.meta.Behind == nil {
		p.meta.Behind = &from
	}
	p.meta.Behind.Book = p.book.light()
	return nil
}

// saveBefore writes state.json for what came before a checkpoint of the same batch: it is written for a pass and for a checkpoint (requirement
// 002 §1.1). A crash behind it leaves it ahead of meta.json.
func (p *projector) saveBefore(w *batchWriter) error {
	if err := p.queueBook(w); err != nil {
		return err
	}
	return w.flush()
}

// queueBook queues state.json to be read back before it counts (requirement 002 §3.3).
func (p *projector) queueBook(w *batchWriter) error {
	raw, err := p.book.encode()
	if err != nil {
		return err
	}
	verify := durable.VerifyState()
	if len(p.book.older) > 0 {
		verify.Parse = p.book.older.parse
	}
	p.meta.Records = markOf(raw)
	w.add(wholeFile{path: p.dir.Path(StateFile), data: raw, verify: verify})
	return nil
}

func (p *projector) writeMeta() error {
	p.meta.Events = EventsMark{Seq: p.last, Chain: p.chain, Size: p.size}
	if err := p.digestFixed(); err != nil {
		return err
	}
	p.meta.Digest = ""
	raw, err := marshal(p.meta)
	if err != nil {
		return err
	}
	p.meta.Digest = digest(raw)
	return p.replace(MetaFile, sealed(raw, p.meta.Digest))
}

// applyBook folds one event into the records. Before a revert takes them back, the evidence of what it leaves behind is set aside.
func (p *projector) applyBook(w *batchWriter, e run.Event) error {
	if e.Kind == run.KindRunReverted {
		if err := w.flush(); err != nil {
			return err
		}
		if err := p.setRevertedAside(w, e); err != nil {
			return err
		}
	}
	return p.foldBook(e)
}

// foldBook folds one event into the records. A revert takes them back to where it goes.
func (p *projector) foldBook(e run.Event) error {
	if e.Kind == run.KindRunReverted {
		if err := p.revertBook(e); err != nil {
			return fmt.Errorf("take the records back at event %d: %w", e.Seq, err)
		}
	}
	if err := p.book.unfold(e); err != nil {
		return err
	}
	p.book.apply(e, p.meta.State)
	return nil
}

// replace writes a whole JSON file and reads it back before it counts (requirement 002 §3.3).
func (p *projector) replace(name string, raw []byte) error {
	if err := p.dir.Disk.CleanTempsOf(p.dir.Path(name)); err != nil {
		return err
	}
	return p.dir.Disk.WriteAll([]durable.File{{Path: p.dir.Path(name), Data: raw, Perm: filePerm, Verify: durable.VerifyState()}})
}

// batchWriter collects whole files, so that each folder is synced once. Blobs are read when they are written, a few at a time: a directory
// that is made again from the first event on need not fit into memory.
type batchWriter struct {
	disk  durable.Disk
	load  func(digest string) ([]byte, error)
	files []wholeFile
	index map[string]int
	list  func(wholeFile) // not nil: files are listed, and not written

	spares bool // files whose bytes are lost are left as they are
}

// wholeFile is a file to be written: a blob of the store, what load gives when it is written, or data.
type wholeFile struct {
	path   string
	digest string
	tree   string // that load lists
	load   func() ([]byte, error)
	data   []byte
	verify *durable.Verify
}

// add queues a file; a later one of the same path replaces it.
func (w *batchWriter) add(f wholeFile) {
	if w.index == nil {
		w.index = map[string]int{}
	}
	if i, ok := w.index[f.path]; ok {
		w.files[i] = f
		return
	}
	w.index[f.path] = len(w.files)
	w.files = append(w.files, f)
}

func (w *batchWriter) flush() error {
	if w.list != nil {
		for _, f := range w.files {
			w.list(f)
		}
		w.files, w.index = nil, nil
		return nil
	}
	const atOnce = 64 // every file of a call is open at the same time
	for files := range slices.Chunk(w.files, atOnce) {
		whole, err := w.read(files)
		if err != nil {
			return err
		}
		if err := w.write(whole); err != nil {
			return err
		}
	}
	w.files, w.index = nil, nil
	return nil
}

// read gets the bytes of some files.
func (w *batchWriter) read(files []wholeFile) ([]durable.File, error) {
	out := make([]durable.File, 0, len(files))
	for _, f := range files {
		data, err := f.data, error(nil)
		switch {
		case f.digest != "":
			data, err = w.load(f.digest)
		case f.load != nil:
			data, err = f.load()
		}
		if w.spares && unreadable(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		out = append(out, durable.File{Path: f.path, Data: data, Perm: filePerm, DirPerm: dirPerm, Verify: f.verify})
	}
	return out, nil
}

// write replaces the files, and removes what a crash left of earlier attempts at them.
func (w *batchWriter) write(files []durable.File) error {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	if err := w.disk.CleanTempsOf(paths...); err != nil {
		return err
	}
	return w.disk.WriteAll(files)
}
