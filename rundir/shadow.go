package rundir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// shadow lists what the projector writes for the same events, file by file. The projector itself makes the list, so there is one opinion about what
// a directory holds; nothing is written, and only the lists of inputs and of pictures are read.
type shadow struct {
	p     *projector
	w     *batchWriter
	files map[string]shadowFile
	more  bool // the lines that meta.json has not seen are being taken: what was expected before is still all right
	err   error
	blobs map[string]string // of the store: the file that each was first written to; nil: not asked for
}

// shadowFile is what one file is expected to hold.
type shadowFile struct {
	digests []string // of the bytes; any of them will do
	object  []byte   // a JSON object that is made, and not in the store: what the file says of it must be so
	tree    string   // it is the manifest of this tree
	blob    bool     // the digest is that of a blob in the store
	gone    bool     // a line that meta.json has not seen moves it
}

// newShadow begins the list of a directory. deep is its store; nil: lists are read from the directory alone.
func newShadow(ctx context.Context, d Dir, deep Blobs) *shadow {
	s := &shadow{files: map[string]shadowFile{}}
	s.p = &projector{ctx: ctx, dir: d, blobs: &shadowBlobs{dir: d, store: deep}, book: newState(), anew: true, shadow: s}
	s.w = &batchWriter{disk: d.Disk, list: s.list}
	if deep != nil {
		s.blobs = map[string]string{}
	}
	return s
}

// take folds one line.
func (s *shadow) take(line string) {
	if s.err != nil {
		return
	}
	p := s.p
	p.extend([]string{line})
	e := p.unseen[0]
	p.unseen, p.chains = nil, p.chains[len(p.chains)-1:]
	before := p.meta.State
	p.meta.fold(e)
	if s.err = p.evidence(s.w, e, before); s.err != nil {
		return
	}
	if s.err = p.applyBook(s.w, e); s.err == nil {
		s.err = s.w.flush()
	}
}

// list notes a file that is written.
func (s *shadow) list(f wholeFile) {
	rel, err := filepath.Rel(s.p.dir.Root, f.path)
	if err != nil {
		s.err = err
		return
	}
	name := filepath.ToSlash(rel)
	now := shadowFile{tree: f.tree, blob: f.digest != ""}
	switch {
	case f.digest != "":
		now.digests = []string{f.digest}
		if s.blobs != nil && s.blobs[f.digest] == "" {
			s.blobs[f.digest] = name
		}
	case f.tree != "":
	case strings.HasPrefix(name, checkpointsDir+"/"):
		return // made of the records, whose form is that of the release that wrote them: the record in state.json has the digests
	default:
		now.digests = []string{digest(f.data)}
		if path.Ext(name) == ".json" {
			now.object = f.data
		}
	}
	if was, there := s.files[name]; s.more && there {
		now.digests = append(now.digests, was.digests...)
	} else if s.more {
		return // it may not be written yet
	}
	s.files[name] = now
}

// move notes that a file is set aside.
func (s *shadow) move(from, to string) {
	f, there := s.files[from]
	switch {
	case !there:
	case s.more:
		f.gone = true
		s.files[from] = f
	default:
		delete(s.files, from)
		s.files[to] = f
	}
}

// in are the files of a folder, by name.
func (s *shadow) in(folder string) []string {
	var names []string
	for name := range s.files {
		if path.Dir(name) == folder {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// shadowBlobs gives the lists that some events name by their digest: from the directory, else from the store. One that neither has is empty; the file
// that it is in is expected all the same.
type shadowBlobs struct {
	Blobs // writes nothing
	dir   Dir
	store Blobs
	lists map[string][]byte // of the directory, by digest
}

func (b *shadowBlobs) Get(ctx context.Context, want string) ([]byte, error) {
	if err := b.read(); err != nil {
		return nil, err
	}
	if raw, there := b.lists[want]; there {
		return raw, nil
	}
	if b.store != nil {
		if raw, err := b.store.Get(ctx, want); !lost(err) {
			return raw, err
		}
	}
	return []byte("null"), nil
}

// read reads every list of the directory, once.
func (b *shadowBlobs) read() error {
	if b.lists != nil {
		return nil
	}
	b.lists = map[string][]byte{}
	skip := []string{b.dir.Path(checkpointsDir), b.dir.Path(archivesDir), b.dir.Path(InputsDir)}
	err := filepath.WalkDir(b.dir.Path(orchestrator), func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // moved meanwhile
		case err != nil:
			return err
		case e.IsDir() && slices.Contains(skip, name):
			return fs.SkipDir
		case e.Name() != shotsFile && e.Name() != path.Base(InputsFile):
			return nil
		}
		raw, err := os.ReadFile(name)
		if err == nil {
			b.lists[digest(raw)] = raw
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return err
}

// judgeShadow compares the files of the directory with the list.
func (x *examined) judgeShadow() error {
	s := x.shadow
	if s == nil || x.has(ChainMismatch, StreamLineUnreadable, StreamSeqGap, StreamSeqDuplicate) {
		return nil // there is nothing to compare with
	}
	if s.err != nil {
		return s.err
	}
	names := make([]string, 0, len(s.files))
	for name := range s.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := x.judgeShadowed(name, s.files[name]); err != nil {
			return err
		}
	}
	return nil
}

func (x *examined) judgeShadowed(name string, f shadowFile) error {
	if name == x.stream.artifact || f.gone || x.named(name) {
		return nil // an artifact may be edited
	}
	if f.tree != "" {
		return x.judgeManifest(name, f)
	}
	have, err := x.dir.digestOf(name)
	if err != nil || slices.Contains(f.digests, have) {
		return err
	}
	if f.object != nil && have != "" {
		if fits, err := x.dir.fits(name, f.object); fits || err != nil {
			return err
		}
	}
	if strings.Contains(name, "~") { // what was set aside may lie beside it, where a revert was repeated
		original := path.Join(path.Dir(path.Dir(name)), asideEnd.ReplaceAllString(path.Base(path.Dir(name)), ""), path.Base(name))
		if there, err := x.dir.setAsideAs(original, f.digests[0], false); there || err != nil {
			return err
		}
	}
	said := name + " is missing"
	if have != "" {
		said = name + " is not what the run recorded: its sha-256 is " + have[:12] + ", not " + f.digests[0][:min(12, len(f.digests[0]))]
	}
	x.lags(codeOf(name), fileOf(name), said)
	return nil
}

// fits says that all that a JSON file says is so. An earlier release may have left keys out.
func (d Dir) fits(name string, want []byte) (bool, error) {
	raw, err := d.readRaw(name)
	if err != nil {
		return false, err
	}
	have, herr := parseObject(raw)
	whole, werr := parseObject(want)
	if herr != nil || werr != nil {
		return false, nil
	}
	for _, k := range have.keys {
		if v, there := whole.values[k]; !there || !sameJSON(v, have.values[k]) {
			return false, nil
		}
	}
	for _, k := range whole.keys {
		if _, there := have.values[k]; !there && !slices.Contains([]string{"null", `""`, "0", "false", "[]", "{}"}, string(whole.values[k])) {
			return false, nil
		}
	}
	return true, nil
}

// judgeManifest reads the manifest of a turn's tree, which names the tree that its lines give.
func (x *examined) judgeManifest(name string, f shadowFile) error {
	if x.opts.ReadTree == nil {
		return nil
	}
	raw, err := os.ReadFile(x.dir.Path(name))
	if err != nil {
		return err
	}
	if err := x.opts.ReadTree(raw); err != nil {
		x.lags(SnapshotDamaged, name, name+" was changed: "+err.Error())
	}
	return nil
}

// named says that a finding is of a file already, or of its folder.
func (x *examined) named(name string) bool {
	return slices.ContainsFunc(slices.Concat(x.found, x.lag), func(i Issue) bool {
		return i.file != "" && (i.file == name || strings.HasPrefix(name, i.file+"/"))
	})
}

// codeOf is the finding of a file that is not what it should be.
func codeOf(name string) Code {
	switch folder := path.Dir(name); {
	case strings.HasPrefix(name, checkpointsDir+"/"):
		return CheckpointDamaged
	case strings.HasPrefix(name, snapshotsDir+"/"):
		return SnapshotDamaged
	case folder == ".", folder == orchestrator, folder == decisionsDir, folder == editsDir, strings.HasPrefix(name, InputsDir+"/"):
		return DerivedFileDamaged
	}
	return EvidenceDamaged
}

// fileOf is what is made again: a checkpoint as a whole.
func fileOf(name string) string {
	if strings.HasPrefix(name, checkpointsDir+"/") {
		return path.Dir(name)
	}
	return name
}
