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

// append writes lines in one write. A piece at the end of the file is completed if it is the beginning of the next line;
// otherwise it is moved to a separate file.
func (w *exporter) append(lines []string) error {
	data := []byte(strings.Join(lines, "\n") + "\n")
	tail := w.fold.Tail
	if len(w.torn) > 0 && !(len(lines) > 0 && bytes.HasPrefix(data, w.torn)) {
		name := fmt.Sprintf("%s/events-after-%d-%s.txt", TornDir, tail.Seq, disk.Digest(w.torn)[:8])
		if err := w.dir.cutTail(EventsFile, w.size, name); err != nil {
			return err
		}
	}
	w.torn = nil
	if len(lines) == 0 {
		return nil
	}
	size, err := w.dir.inside().Append(w.dir.Path(EventsFile), w.size, data, FilePerm)
	if err != nil {
		return fmt.Errorf("append events %d to %d: %w", tail.Seq+1, tail.Seq+int64(len(lines)), err)
	}
	w.size = size
	return w.take(lines)
}

// export writes what follows from the lines that are not exported, and in a cold export everything that differs: files,
// then logs, then state.json, and meta.json last. It can be interrupted anywhere and repeated.
//
// While a run works, an export syncs the journal, state.json, meta.json and the files that people edit. It does not
// sync what can be made again from the journal and the store: logs, the evidence of passes, checkpoints. The death of a
// process loses none of it, and after a power failure the first export of the next process makes it again. When the run
// pauses or ends, the file system is synced.
func (w *exporter) export() error {
	err := w.write()
	if !w.cold && errors.Is(err, disk.ErrDiffers) {
		next, oerr := w.dir.openCold(w.ctx, w.blobs, w.truth, true)
		if oerr != nil {
			return oerr
		}
		next.head, next.edits = w.head, w.edits
		*w = *next
		err = w.write()
	}
	return err
}

func (w *exporter) write() error {
	w.unsynced = w.unsynced || w.works()
	for _, write := range []func() error{w.keepEdit, w.writeFiles, w.keepCheckpoints, w.writeLogs, w.writeLinks,
		w.writeState, w.syncAll, w.writeMeta} {
		if err := write(); err != nil {
			return err
		}
	}
	w.cold, w.rows = false, map[string][]byte{}
	w.settled()
	return nil
}

// writeFiles writes the files that the events have changed, or all that differ. Those that are gone are removed last.
func (w *exporter) writeFiles() error {
	var write, gone []string
	for _, name := range sortedNames(w.fold.changed) {
		if _, there := w.fold.Files[name]; !there {
			gone = append(gone, name)
		} else if !w.cold {
			write = append(write, name)
		}
	}
	if w.cold {
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
		aside := false
		if w.cold {
			var stays bool
			var err error
			if stays, aside, err = w.compare(name); err != nil || stays {
				if err != nil {
					return err
				}
				continue
			}
		}
		paths = append(paths, w.dir.Path(name))
		if file.Link != "" {
			w.links = append(w.links, name)
			continue
		}
		var data []byte
		if !file.Folder {
			_, changed := w.fold.changed[name]
			var err error
			if data, err = w.content(file); Unreadable(err) && (w.force || !changed) {
				continue // what is there stays
			} else if err != nil {
				return fmt.Errorf("%s: %w", w.dir.Path(name), err)
			}
		}
		if aside {
			if err := w.moveAside(name); err != nil {
				return err
			}
		}
		if file.Folder {
			if err := w.layDown(name, file); err != nil {
				return err
			}
			continue
		}
		files = append(files, w.file(name, data, file.Role))
	}
	if err := w.dir.inside().CleanTempsOf(paths...); err != nil {
		return err
	}
	return w.dir.inside().WriteAll(files)
}

// compare reports whether a file stays as it is, because it does not differ or because people edit it; and otherwise
// whether what is there is moved to torn/, because no event of the run has written it.
func (w *exporter) compare(name string) (stays, aside bool, err error) {
	file := w.fold.Files[name]
	wrong, before, err := w.fold.differs(w.dir, name, func(manifest []byte) error {
		want, err := w.content(file)
		if err == nil && !bytes.Equal(manifest, want) {
			err = disk.ErrDamaged
		}
		return err
	})
	_, changed := w.fold.changed[name]
	switch {
	case err != nil || wrong == "":
		return true, false, err
	case changed && (before || file.Role == Edited):
		return false, false, nil
	case file.Role == Edited && wrong != missing:
		return true, false, nil
	case !changed || wrong != missing:
		w.heal("%s %s", name, wrong)
	}
	return false, wrong != missing, nil
}

func (w *exporter) file(name string, data []byte, role Role) disk.File {
	return disk.File{Path: w.dir.Path(name), Data: data, Perm: FilePerm, DirPerm: DirPerm,
		State:    slices.Contains([]string{StateFile, MetaFile, CrossFile}, name),
		Unsynced: w.unsynced && (role == Evidence || role == Aside)}
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

// writeLogs appends the rows of the lines that are not exported. In a cold export a log that does not begin with its rows
// is moved to torn/.
func (w *exporter) writeLogs() error {
	first := w.seen == 0
	if first || w.cold {
		if err := w.dir.inside().Mkdir(w.dir.Path(LogsDir), DirPerm); err != nil {
			return err
		}
	}
	var all []disk.Addition
	for _, file := range Growing() {
		rows := w.rows[file]
		if len(rows) == 0 && !w.cold && !first {
			continue
		}
		if w.cold {
			if err := w.compareLog(file, rows); err != nil {
				return err
			}
		}
		all = append(all, disk.Addition{Path: w.dir.Path(file), Offset: w.fold.Logs[file].Size - int64(len(rows)),
			Data: rows, Perm: FilePerm, Unsynced: w.unsynced})
	}
	_, err := w.dir.inside().AppendAll(all)
	return err
}

func (w *exporter) compareLog(file string, rows []byte) error {
	have, err := w.regular(file)
	if err != nil {
		return err
	}
	if int64(len(have)) < w.sizes[file] {
		w.heal("%s is shorter than what was written", file)
	} else if !bytes.HasPrefix(rows, have) {
		w.heal("%s has other rows than were written", file)
	}
	if have == nil || !bytes.HasPrefix(rows, have) {
		return w.moveAside(file)
	}
	return nil
}

// maxWhole is the number of passes up to which state.json is written with every batch.
const maxWhole = 1000

// every is 3 if every third pass writes state.json.
func (f *Fold) every() int {
	s := &f.Header.State
	return (s.Passes.LastSettled + s.Rounds + maxWhole - 1) / maxWhole
}

// due reports whether state.json is written: at each start and end of a pass, or in a long run at every second, third …
// pass and whenever the run does not work.
func (w *exporter) due() bool {
	s, every := &w.fold.Header.State, w.fold.every()
	return w.cold || w.occasion || !w.works() || every <= 1 || (s.Passes.LastSettled+s.Rounds)%every == 0
}

func (w *exporter) writeState() error {
	if !w.due() {
		return nil
	}
	raw, err := disk.Marshal(w.fold.State)
	if err != nil {
		return err
	}
	older := w.state != nil && bytes.Equal(w.state, w.wanted) && (w.beyond() > 0 || w.fold.every() > 1)
	if w.cold && !bytes.Equal(w.state, raw) && !older {
		if err := w.healState(); err != nil {
			return err
		}
	}
	w.state = raw
	return w.replace(StateFile, raw)
}

// healState keeps a state.json that is not what was written.
func (w *exporter) healState() error {
	_, err := w.dir.Parse(w.state)
	switch {
	case w.state == nil && w.seen > 0:
		w.heal("%s is missing", StateFile)
	case w.state != nil && err == nil:
		w.heal("%s is not what was written", StateFile)
	case w.state != nil:
		w.heal("%v", err)
	}
	return w.moveAside(StateFile)
}

func (w *exporter) writeMeta() error {
	raw, err := w.fold.Meta(w.fold.Tail.Chain, w.head)
	if err != nil {
		return err
	}
	if w.otherMeta && w.meta != nil && !bytes.Equal(w.meta, raw) { // a copy: readers find the file at any time
		kept := path.Join(TornDir, "meta-damaged-"+disk.Digest(w.meta)[:8]+".json")
		if err := w.dir.inside().WriteAll([]disk.File{w.file(kept, w.meta, Derived)}); err != nil {
			return err
		}
		w.kept = append(w.kept, kept)
	}
	w.meta, w.otherMeta = raw, false
	return w.replace(MetaFile, raw)
}

// replace writes a whole JSON file and reads it back before it counts (requirement 002 §3.3).
func (w *exporter) replace(name string, raw []byte) error {
	if err := w.dir.inside().CleanTempsOf(w.dir.Path(name)); err != nil {
		return err
	}
	return w.dir.inside().WriteAll([]disk.File{w.file(name, raw, Derived)})
}

// works reports whether the run works after the last line.
func (w *exporter) works() bool { return w.fold.works() }

func (f *Fold) works() bool {
	s := f.Header.State.Status
	return s == run.Running || s == run.Replaying
}

// syncAll makes the files of earlier batches durable when the run does not work.
func (w *exporter) syncAll() error {
	if !w.unsynced || w.works() {
		return nil
	}
	w.unsynced = false
	return w.dir.inside().SyncFileSystem(w.dir.Root)
}

// keepCheckpoints stores the checkpoints of the lines that are not exported.
func (w *exporter) keepCheckpoints() error {
	for _, c := range w.marks {
		if err := KeepCheckpoint(w.ctx, w.blobs, c); err != nil {
			return err
		}
	}
	return nil
}

// KeepCheckpoint stores a checkpoint: one small object, whatever the length of the run.
func KeepCheckpoint(ctx context.Context, blobs Blobs, c run.Checkpoint) error {
	raw, err := json.Marshal(c)
	if err == nil {
		err = blobs.Name(ctx, checkpointName(c, raw), raw)
	}
	if err != nil {
		return fmt.Errorf("store checkpoint %s: %w", c.ID, err)
	}
	return nil
}

func sortedNames[V any](files map[string]V) []string { return slices.Sorted(maps.Keys(files)) }
