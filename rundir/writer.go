package rundir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// exporter holds the lock of a directory and its fold. It appends lines to events.jsonl and makes every other file from
// the events and the store, so a process that is killed at any point leaves a directory that the next export completes.
type exporter struct {
	ctx   context.Context
	dir   Dir
	blobs Blobs
	fold  *Fold
	head  string // newest segment

	tail   run.Tail // of events.jsonl
	size   int64
	torn   []byte   // what follows its last line
	unseen []string // lines that are not exported
	broken bool     // the exported lines are not those that meta.json has seen

	whole    bool     // every file is exported again
	moves    bool     // what a whole export replaces is kept in torn/
	spares   bool     // files whose bytes are lost stay as they are
	healed   []string // what was damaged and is made again
	edits    []Edit
	first    string            // digest of the artifact before the unseen events
	wrote    map[string]bool   // digests that the artifact had before them and after each
	links    []string          // to be made
	kept     []string          // files that were moved to torn/
	lost     []string          // files whose bytes are lost
	rows     map[string][]byte // of the unseen events, by log
	unsynced bool              // files may be missing after a power failure

	meta, state []byte // meta.json and state.json as written last; nil: unknown
	had         []byte // meta.json before the unseen events; nil: not known
	otherState  bool   // state.json is not what was written
	strict      bool   // a list of files that cannot be read is an error
	rebooted    bool   // the machine was started again before everything was on disk
}

// exportMark is export.json: files that were written since Seq, during the boot, may be lost with the machine. Without it
// everything is on disk. It is no part of a rebuilt directory.
type exportMark struct {
	Version int    `json:"version"`
	Seq     int64  `json:"seq"`
	Boot    string `json:"boot"`
}

// open reads the directory for writing. Without a fold in memory it folds the whole journal.
func (d Dir) open(ctx context.Context, blobs Blobs) (*exporter, error) {
	raw, err := d.ReadRaw(MetaFile)
	if err != nil {
		return nil, err
	}
	meta, err := d.Meta()
	if err == nil {
		if err := d.KnownMeta(meta); err != nil {
			return nil, err
		}
		err = Strange(d, meta)
	} else if !disk.Missing(err) {
		return nil, err
	}
	if w := d.Folds.take(d.Root, raw); w != nil && err == nil {
		w.ctx, w.dir, w.blobs, w.healed, w.edits = ctx, d, blobs, nil, nil
		if again, err := w.catchUp(); again || err != nil {
			return w, errors.Join(err, w.compareLogs())
		}
	}
	w := &exporter{ctx: ctx, dir: d, blobs: blobs, head: meta.SegmentHead, meta: raw}
	if errors.Is(err, disk.ErrDamaged) {
		w.heal("%v", err)
	}
	if err != nil {
		meta = Meta{}
	}
	return w, errors.Join(w.restarted(), w.read(meta))
}

// heal notes that a file is damaged and made again.
func (w *exporter) heal(format string, args ...any) {
	w.healed = append(w.healed, fmt.Sprintf(format, args...)+": made again from "+EventsFile)
}

// catchUp reads the lines after those that this process has folded; false: the file is not the one that it has seen.
func (w *exporter) catchUp() (bool, error) {
	ends, err := LineEnds(w.dir, EventsFile, w.fold.Size)
	if err != nil || !ends {
		return false, err
	}
	rest, err := ReadStream(w.dir, EventsFile, w.fold.Size)
	if err != nil {
		return false, err
	}
	w.tail, w.size, w.torn, w.unseen = w.fold.Tail, rest.Size, rest.Torn, rest.Lines
	w.tail.Chain, w.tail.Seq = w.tail.Chain.Over(rest.Lines), w.tail.Seq+int64(len(rest.Lines))
	return true, nil
}

// read folds the lines that meta.json has seen; those after them are unseen.
func (w *exporter) read(meta Meta) error {
	all, err := ReadStream(w.dir, EventsFile, 0)
	if err != nil {
		return err
	}
	n, seen := int64(len(all.Lines)), meta.Events.Seq
	replaced := n < seen && all.Size >= meta.Events.Size
	if n < seen && !replaced {
		w.heal("%s is shorter than its mark in %s", EventsFile, MetaFile)
		seen = 0
	}
	w.size, w.torn, w.unseen = all.Size, all.Torn, all.Lines[min(seen, n):]
	if err := w.start(all.Lines[:min(seen, n)]); err != nil {
		return err
	}
	w.tail = w.fold.Tail
	if w.broken = replaced || seen > 0 && w.tail.Chain != meta.Events.Chain; w.broken {
		w.fold.Tail = run.Tail{Seq: seen, Chain: meta.Events.Chain} // as they were written
		w.tail = w.fold.Tail
	}
	w.tail = run.Tail{Seq: w.tail.Seq + int64(len(w.unseen)), Chain: w.tail.Chain.Over(w.unseen)}
	switch {
	case seen == 0:
		w.whole = n > 0
		return nil
	case w.rebooted:
		return nil
	}
	return errors.Join(w.compareLogs(), w.compareState())
}

// start folds lines from the first one.
func (w *exporter) start(lines []string) error {
	w.fold, w.rows = newFold(diskSource{w}), map[string][]byte{}
	for _, line := range lines {
		if err := w.fold.take(line); err != nil {
			return err
		}
	}
	clear(w.fold.changed)
	return nil
}

// compareLogs looks for a log that has lost rows.
func (w *exporter) compareLogs() error {
	for file, l := range w.fold.Logs {
		fi, err := w.dir.Stat(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil && l.Size > 0 || err == nil && fi.Size() < l.Size {
			w.heal("%s is shorter than what was written", file)
			w.whole = true
		}
	}
	return nil
}

// compareState looks for another state.json.
func (w *exporter) compareState() error {
	raw, err := w.dir.ReadRaw(StateFile)
	if err != nil {
		return err
	}
	state, err := w.dir.Parse(raw)
	if err == nil && (state.LastSeq > w.fold.Tail.Seq || state.LastSeq < w.fold.Tail.Seq && w.every() > 1) {
		return nil // a projection was interrupted, or it is not written with every batch
	}
	want, err := disk.Marshal(w.fold.State)
	switch {
	case err != nil:
		return err
	case bytes.Equal(raw, want):
		w.state = raw
		return nil
	case raw == nil:
		w.heal("%s is missing", StateFile)
	default:
		w.healState(raw)
	}
	w.whole, w.moves, w.spares = true, true, true // other files may have been changed too
	return nil
}

// healState notes that state.json is not what was written.
func (w *exporter) healState(have []byte) {
	_, err := w.dir.Parse(have)
	if err == nil {
		err = fmt.Errorf("%s is %w: it is not what was written", w.dir.Path(StateFile), disk.ErrDamaged)
	}
	w.heal("%v", err)
	w.otherState = true
}

// diskSource has the journal of the directory and the lists of the store.
type diskSource struct{ w *exporter }

func (s diskSource) Lines(last int64) ([]string, error) {
	all, err := ReadStream(s.w.dir, EventsFile, 0)
	return all.Lines[:min(last, int64(len(all.Lines)))], err
}

func (s diskSource) List(digest string) ([]byte, error) {
	raw, err := s.w.blobs.Get(s.w.ctx, digest)
	if Unreadable(err) && s.w.strict { // of an event that is being written
		return nil, fmt.Errorf("%w: %v", errList, err)
	}
	return raw, err
}

var errList = errors.New("a list of files cannot be read")

// append writes lines in one write. A piece at the end of the file is completed if it is the beginning of the next line;
// otherwise it is moved to a separate file.
func (w *exporter) append(lines []string) error {
	data := []byte(strings.Join(lines, "\n") + "\n")
	if len(w.torn) > 0 && !(len(lines) > 0 && bytes.HasPrefix(data, w.torn)) {
		name := fmt.Sprintf("%s/events-after-%d-%s.txt", TornDir, w.tail.Seq, disk.Digest(w.torn)[:8])
		if err := w.dir.inside().Mkdir(w.dir.Path(TornDir), DirPerm); err != nil {
			return err
		}
		if err := w.dir.inside().CutTail(w.dir.Path(EventsFile), w.size, w.dir.Path(name)); err != nil {
			return err
		}
	}
	w.torn = nil
	if len(lines) == 0 {
		return nil
	}
	size, err := w.dir.inside().Append(w.dir.Path(EventsFile), w.size, data, FilePerm)
	if err != nil {
		return fmt.Errorf("append events %d to %d: %w", w.tail.Seq+1, w.tail.Seq+int64(len(lines)), err)
	}
	w.size, w.unseen = size, append(w.unseen, lines...)
	w.tail = run.Tail{Seq: w.tail.Seq + int64(len(lines)), Chain: w.tail.Chain.Over(lines)}
	return nil
}

// export writes what follows from the unseen events, or everything: files, then logs, then state.json, and meta.json
// last. It can be interrupted anywhere and repeated.
func (w *exporter) export() error {
	list, err := w.advance()
	if err != nil {
		return err
	}
	if err := w.deferSync(); err != nil {
		return err
	}
	for _, write := range []func() error{w.keepEdit, w.writeFiles, func() error { return w.keepCheckpoints(list) },
		w.writeLogs, w.writeLinks, w.writeState, w.settle, w.writeMeta} {
		if err := write(); err != nil {
			return err
		}
	}
	w.unseen, w.whole, w.moves, w.spares, w.rebooted, w.otherState = nil, false, false, false, false, false
	w.rows = map[string][]byte{}
	clear(w.fold.changed)
	return nil
}

// advance folds the unseen lines, or all, and returns the checkpoints among them. What the unseen lines have changed is in
// the fold.
func (w *exporter) advance() (list []run.Checkpoint, err error) {
	lines, seen, written := w.unseen, 0, w.fold.Tail
	if w.whole {
		all, err := diskSource{w}.Lines(w.tail.Seq)
		if err != nil {
			return nil, err
		}
		lines, seen = all, len(all)-len(w.unseen)
		w.fold, w.rows = newFold(diskSource{w}), map[string][]byte{}
	}
	w.first = run.DigestOf(w.fold.Header.State.Artifact)
	w.wrote = map[string]bool{w.first: true}
	w.fold.rows = func(file string, rows []byte) { w.rows[file] = append(w.rows[file], rows...) }
	w.strict = !w.spares
	w.fold.keep = func(data []byte) error {
		_, err := w.blobs.Put(w.ctx, data)
		return err
	}
	defer func() { w.fold.rows, w.fold.keep, w.strict = nil, nil, false }()
	for i, line := range lines {
		if err := w.fold.take(line); err != nil {
			return nil, err
		}
		artifact := run.DigestOf(w.fold.Header.State.Artifact)
		if i == seen-1 {
			w.fold.Tail = written
			if w.had, err = w.fold.Meta(w.fold.Tail.Chain, w.head); err != nil {
				return nil, err
			}
			w.first, w.wrote = artifact, map[string]bool{}
			clear(w.fold.changed)
		}
		w.wrote[artifact] = true
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		if c, ok := checkpointAt(w.fold.Header.State, w.fold.Tail.Chain, line, next); ok {
			list = append(list, c)
		}
	}
	return list, nil
}

// writeFiles writes the files that the events have changed, or all. Those that are gone are removed last.
func (w *exporter) writeFiles() error {
	var write, gone []string
	for _, name := range sortedNames(w.fold.changed) {
		if _, there := w.fold.Files[name]; !there {
			gone = append(gone, name)
		} else if !w.whole {
			write = append(write, name)
		}
	}
	if w.whole {
		write = sortedNames(w.fold.Files)
	}
	const atOnce = 64 // all files of a call are open at the same time
	for names := range slices.Chunk(write, atOnce) {
		if err := w.writeSome(names); err != nil {
			return err
		}
	}
	for _, name := range gone {
		err := w.dir.inside().Remove(w.dir.Path(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (w *exporter) writeSome(names []string) error {
	var files []disk.File
	var paths []string
	for _, name := range names {
		file := w.fold.Files[name]
		paths = append(paths, w.dir.Path(name))
		if stays, err := w.stays(name, file); err != nil {
			return err
		} else if stays {
			continue
		}
		switch {
		case file.Link != "":
			w.links = append(w.links, name)
			continue
		case file.Folder:
			if err := w.layDown(name, file); err != nil {
				return err
			}
			continue
		}
		data, err := w.content(file)
		if w.spares && Unreadable(err) {
			w.lost = append(w.lost, name)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.dir.Path(name), err)
		}
		if w.moves {
			if err := w.moveAside(name); err != nil {
				return err
			}
		}
		files = append(files, w.file(name, data, file.Role))
	}
	if err := w.dir.inside().CleanTempsOf(paths...); err != nil {
		return err
	}
	return w.dir.inside().WriteAll(files)
}

func (w *exporter) file(name string, data []byte, role Role) disk.File {
	file := disk.File{Path: w.dir.Path(name), Data: data, Perm: FilePerm, DirPerm: DirPerm,
		Unsynced: w.unsynced && (role == Evidence || role == Aside)}
	if slices.Contains([]string{StateFile, MetaFile, CrossFile}, name) {
		file.Verify = disk.VerifyState()
	}
	return file
}

// stays reports whether a file is not written, because everything is exported again and the file has its content, or is
// one that was synced or that people edit, and no event has changed it since.
func (w *exporter) stays(name string, file File) (bool, error) {
	if !w.whole {
		return false, nil
	}
	info, err := w.dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (info.Mode()&fs.ModeSymlink != 0 || info.IsDir() != file.Folder) {
		return false, nil
	}
	if _, changed := w.fold.changed[name]; err != nil || file.Folder ||
		!changed && (file.Role == Edited || w.rebooted && file.Role == Derived) {
		return err == nil, err
	}
	want := file.Sum()
	if file.Tree != "" {
		raw, err := w.content(file)
		if err != nil {
			return false, nil //nolint:nilerr // its writer meets the error again
		}
		want = disk.Digest(raw)
	}
	have, err := w.dir.DigestOf(name)
	return have == want, err
}

// moveAside keeps what is at the place of a file, whatever it is, in torn/.
func (w *exporter) moveAside(name string) error {
	info, err := w.dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	to, stamp := path.Join(TornDir, strings.ReplaceAll(name, "/", "-")), ""
	if info.Mode().IsRegular() {
		digest, err := w.dir.DigestOf(name)
		if err != nil {
			return err
		}
		stamp = "-damaged-" + digest[:8]
	}
	ext := path.Ext(to)
	to = strings.TrimSuffix(to, ext) + stamp + ext
	if _, err := w.dir.Lstat(to); err == nil && stamp != "" { // the same bytes are kept already
		return w.dir.inside().Remove(w.dir.Path(name))
	}
	for n, free := 2, to; ; n++ {
		if _, err := w.dir.Lstat(free); err == nil {
			free = fmt.Sprintf("%s~%d", to, n)
			continue
		}
		w.kept = append(w.kept, free)
		if err := w.dir.inside().Mkdir(w.dir.Path(TornDir), DirPerm); err != nil {
			return err
		}
		return w.dir.inside().Rename(w.dir.Path(name), w.dir.Path(free))
	}
}

// layDown makes the folder of a tree.
func (w *exporter) layDown(name string, file File) error {
	to := w.dir.Path(name)
	if err := w.dir.inside().Mkdir(filepath.Dir(to), DirPerm); err != nil {
		return err
	}
	if err := w.blobs.LayDown(w.ctx, file.Tree, to); err != nil {
		return err
	}
	return w.dir.inside().SettleAll(to)
}

// writeLinks makes links, after the files that they lead to.
func (w *exporter) writeLinks() error {
	for _, name := range w.links {
		target := filepath.FromSlash(w.fold.Files[name].Link)
		if to, err := os.Readlink(w.dir.Path(name)); err == nil && to == target {
			continue
		}
		if err := w.moveAside(name); err != nil {
			return err
		}
		if err := w.dir.inside().Symlink(target, w.dir.Path(name)); err != nil {
			return err
		}
	}
	w.links = nil
	return nil
}

// content returns the bytes of a file: from the store, or else from a file of the directory with the same bytes.
func (w *exporter) content(file File) ([]byte, error) {
	switch {
	case file.Tree != "":
		return w.blobs.Manifest(w.ctx, file.Tree)
	case file.Digest == "":
		return file.Text, nil
	}
	raw, err := w.blobs.Get(w.ctx, file.Digest)
	if !Unreadable(err) {
		return raw, err
	}
	for _, files := range []map[string]File{w.fold.Files, w.fold.changed} {
		for _, name := range sortedNames(files) {
			if files[name].Digest != file.Digest {
				continue
			}
			if raw, rerr := w.dir.ReadFile(name); rerr == nil && disk.Digest(raw) == file.Digest {
				return raw, nil
			}
		}
	}
	return nil, err
}

// writeLogs appends the rows of the unseen events. A log that does not end where they begin is made again; what was
// there is kept.
func (w *exporter) writeLogs() error {
	first := w.fold.Tail.Seq == int64(len(w.unseen))
	if first || w.whole {
		if err := w.dir.inside().Mkdir(w.dir.Path(LogsDir), DirPerm); err != nil {
			return err
		}
	}
	var all []disk.Addition
	for _, file := range Growing() {
		rows := w.rows[file]
		if len(rows) == 0 && !w.whole && !first {
			continue
		}
		if w.whole {
			have, err := w.regular(file)
			if err != nil {
				return err
			}
			if have == nil || !bytes.HasPrefix(rows, have) {
				if err := w.moveAside(file); err != nil {
					return err
				}
			}
		}
		all = append(all, disk.Addition{Path: w.dir.Path(file), Offset: w.fold.Logs[file].Size - int64(len(rows)),
			Data: rows, Perm: FilePerm, Unsynced: w.unsynced})
	}
	_, err := w.dir.inside().AppendAll(all)
	if !w.whole && errors.Is(err, disk.ErrDiffers) {
		w.heal("a log has other rows than were written")
		return w.exportAll()
	}
	return err
}

// exportAll exports every file again, besides what export has still to write.
func (w *exporter) exportAll() error {
	w.whole, w.moves, w.spares, w.unseen = true, true, true, nil
	if _, err := w.advance(); err != nil {
		return err
	}
	err := errors.Join(w.writeFiles(), w.writeLogs())
	w.moves = false
	return err
}

// maxWhole is the number of passes up to which state.json is written with every batch.
const maxWhole = 1000

// due reports whether state.json is written: at each start and end of a pass, or in a long run at every second, third …
// pass and whenever the run does not work.
func (w *exporter) due() bool {
	s := &w.fold.Header.State
	if !w.works() || w.whole {
		return true
	}
	if every := w.every(); every <= 1 || (s.Passes.LastSettled+s.Rounds)%every == 0 {
		return true
	}
	return slices.ContainsFunc(w.unseen, func(line string) bool {
		k := ParseAny(line).Kind
		return k == run.KindRunStart || k == run.KindCheckpointCreated || k == run.KindRunReverted
	})
}

// regular reads a file; nil if it is missing, or another kind of file.
func (w *exporter) regular(name string) ([]byte, error) {
	if info, err := w.dir.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	return w.dir.ReadRaw(name)
}

// every is 3 if every third pass writes state.json.
func (w *exporter) every() int {
	s := &w.fold.Header.State
	return (s.Passes.LastSettled + s.Rounds + maxWhole - 1) / maxWhole
}

func (w *exporter) writeState() error {
	if !w.due() {
		return nil
	}
	raw, err := disk.Marshal(w.fold.State)
	if err != nil {
		return err
	}
	have, err := w.regular(StateFile)
	if err != nil {
		return err
	}
	switch {
	case w.state == nil || bytes.Equal(have, w.state) || bytes.Equal(have, raw):
	case have == nil:
		w.heal("%s is missing", StateFile)
	default:
		w.healState(have)
	}
	if w.otherState || w.moves && !bytes.Equal(have, raw) {
		if err := w.moveAside(StateFile); err != nil {
			return err
		}
	}
	w.state = raw
	return w.replace(StateFile, raw)
}

func (w *exporter) writeMeta() error {
	raw, err := w.fold.Meta(w.tail.Chain, w.head)
	if err != nil {
		return err
	}
	if have, err := w.regular(MetaFile); err != nil {
		return err
	} else if w.moves && have != nil && !bytes.Equal(have, raw) && !bytes.Equal(have, w.had) { // a copy: readers find the file at any time
		kept := path.Join(TornDir, "meta-damaged-"+disk.Digest(have)[:8]+".json")
		if err := w.dir.inside().WriteAll([]disk.File{w.file(kept, have, Derived)}); err != nil {
			return err
		}
		w.kept = append(w.kept, kept)
	}
	w.meta = raw
	return w.replace(MetaFile, raw)
}

// replace writes a whole JSON file and reads it back before it counts (requirement 002 §3.3).
func (w *exporter) replace(name string, raw []byte) error {
	if err := w.dir.inside().CleanTempsOf(w.dir.Path(name)); err != nil {
		return err
	}
	return w.dir.inside().WriteAll([]disk.File{w.file(name, raw, Derived)})
}

// While a run works, a projection syncs the journal, state.json, meta.json and the files that people edit. It does not
// sync what can be made again from the journal and the store: logs, the evidence of passes, checkpoints. The death of a
// process loses none of it. export.json names the boot of the machine; the first projection after another boot exports
// everything again. When the run pauses or ends, the file system is synced.

// restarted notes that the machine was started again before everything was on disk.
func (w *exporter) restarted() error {
	var was exportMark
	err := w.dir.ReadJSON(ExportFile, &was)
	if err != nil && !disk.Missing(err) {
		return err
	}
	if w.unsynced = was.Boot != ""; w.unsynced && was.Boot != w.dir.boot() {
		w.heal("the machine was started again before all files were on disk")
		w.whole, w.spares, w.rebooted = true, true, true
	}
	return nil
}

// deferSync names this boot before the first unsynced file is written.
func (w *exporter) deferSync() error {
	if w.dir.boot() == "" || w.unsynced || !w.whole && !w.works() {
		return nil
	}
	w.unsynced = true
	raw, err := disk.Marshal(exportMark{Version: 1, Seq: w.tail.Seq, Boot: w.dir.boot()})
	if err != nil {
		return err
	}
	return w.replace(ExportFile, raw)
}

// works reports whether the run works after the exported events.
func (w *exporter) works() bool {
	s := w.fold.Header.State.Status
	return s == run.Running || s == run.Replaying
}

// settle makes the files of earlier batches durable when the run does not work.
func (w *exporter) settle() error {
	if !w.unsynced || w.works() && !w.whole {
		return nil
	}
	if err := w.dir.inside().SyncFileSystem(w.dir.Root); err != nil {
		return err
	}
	if names, ok := w.blobs.(unsyncedNames); ok {
		if err := names.Sync(); err != nil {
			return err
		}
	}
	w.unsynced = false
	return w.dir.inside().Remove(w.dir.Path(ExportFile))
}

// unsyncedNames is a store that can make names durable later.
type unsyncedNames interface {
	NameUnsynced(ctx context.Context, name string, data []byte) error
	Sync() error
}

// keepCheckpoints stores checkpoints: one small object each, whatever the length of the run.
func (w *exporter) keepCheckpoints(list []run.Checkpoint) error {
	for _, c := range list {
		raw, err := json.Marshal(c)
		if err == nil {
			err = w.keepCheckpoint(checkpointName(c, raw), raw)
		}
		if err != nil {
			return fmt.Errorf("store checkpoint %s: %w", c.ID, err)
		}
	}
	return nil
}

func (w *exporter) keepCheckpoint(name string, raw []byte) error {
	if store, ok := w.blobs.(Replacer); ok && w.whole {
		if have, err := store.ReadName(w.ctx, name); err == nil && bytes.Equal(have, raw) {
			return nil
		}
		return store.Replace(w.ctx, name, raw)
	}
	if store, ok := w.blobs.(unsyncedNames); ok && w.unsynced {
		return store.NameUnsynced(w.ctx, name, raw)
	}
	return w.blobs.Name(w.ctx, name, raw)
}

func sortedNames[V any](files map[string]V) []string { return slices.Sorted(maps.Keys(files)) }
