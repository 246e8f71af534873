package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
)

// Collection says what is to be swept out of a store.
type Collection struct {
	StateDir  string        // whose index of runs counts
	Roots     []string      // folders that are searched for run directories as well
	Forget    []string      // runs whose directories were deleted on purpose
	Removing  []string      // runs that count as removed, although their directories are there
	OlderThan time.Duration // what is younger stays: somebody may be about to name it
	Now       time.Time
	Delete    bool // else nothing is changed
}

// Collected is what a collection found and did.
type Collected struct {
	Store   string    `json:"store"`
	Deleted bool      `json:"deleted"` // false: it was a dry run
	Before  time.Time `json:"before"`  // what was written later stays
	HeldBy  string    `json:"held_by"` // the open run because of which that is earlier than it was asked for; empty: none
	Runs    []Holder  `json:"runs"`    // whose blobs are kept
	Unknown []Unknown `json:"unknown"` // runs that the store has something of, and whose directories were not found
	Broken  []string  `json:"broken"`  // what could not be read, so that what it names is not known

	Kept    Amount        `json:"kept"`
	Fresh   Amount        `json:"fresh"` // nobody names it, and it is too young
	Garbage Amount        `json:"garbage"`
	Objects []GarbageItem `json:"objects"` // the garbage, one by one, the biggest first
	Removed Amount        `json:"removed"`
}

// Holder is a run directory that was found.
type Holder struct {
	RunID     string `json:"run_id"`
	Directory string `json:"directory"`
}

// Unknown is a run that the store has something of, and whose directory was not found.
type Unknown struct {
	RunID    string `json:"run_id"`
	Names    int    `json:"names"`    // of its calls and checkpoints, and its own
	Segments int    `json:"segments"` // that no journal at hand leads to
	Missing  string `json:"missing"`  // where this machine remembers its directory; empty: it does not
	Blocks   bool   `json:"blocks"`   // what it needs is not known, so nothing is deleted
}

// Amount is how much of something there is.
type Amount struct {
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

func (a *Amount) add(o store.Object) {
	a.Objects++
	a.Bytes += o.Size
}

// GarbageItem is one object that nobody needs.
type GarbageItem struct {
	Name    string    `json:"name"`
	Size    int64     `json:"size"`
	Written time.Time `json:"written"`
}

// Collect finds what no run needs: it marks whatever the records of all run directories name, and what that names, and so on, and sweeps the
// rest. Calls, checkpoints and segments of runs whose directories are not found are kept, and named; of one that this machine remembers they are all
// that it needs, see absent. Of any other nobody can tell what else it needs, nor of what cannot be read: then nothing is deleted, with a RefusedError,
// until it is found, removed or forgotten.
func Collect(ctx context.Context, s *store.Store, c Collection) (Collected, error) {
	g := &collector{Collection: c, store: s, known: map[string]bool{}, kin: map[string]bool{}, removed: map[string]bool{}, left: map[string]bool{}, claims: map[string]run.Claim{}, unknown: map[string]*Unknown{}, reached: newReached(s, map[store.Digest]store.Object{})}
	g.out = Collected{Store: s.URL(), Before: c.Now.Add(-c.OlderThan), Runs: []Holder{}, Unknown: []Unknown{}, Broken: []string{}, Objects: []GarbageItem{}}
	if err := s.Walk(ctx, g.see); err != nil { // before the directories: what comes later is fresh
		return g.out, err
	}
	for _, step := range []func(context.Context) error{g.registrations, g.directories, g.markNames, g.reached.follow, g.markSegments, g.absent} {
		if err := step(ctx); err != nil {
			return g.out, err
		}
	}
	garbage := g.sort()
	if err := g.mayForget(); err != nil {
		return g.out, err
	}
	if !c.Delete {
		return g.out, nil
	}
	if err := g.mayDelete(); err != nil {
		return g.out, err
	}
	return g.out, g.sweep(ctx, garbage)
}

// Freed is how much less of the store is needed once runs are removed.
func Freed(ctx context.Context, s *store.Store, c Collection, runs []string) (Amount, error) {
	c.Delete, c.Removing = false, nil
	with, err := Collect(ctx, s, c)
	if err != nil {
		return Amount{}, err
	}
	c.Removing = runs
	without, err := Collect(ctx, s, c)
	return Amount{Objects: with.Kept.Objects - without.Kept.Objects, Bytes: with.Kept.Bytes - without.Kept.Bytes}, err
}

// collector is one collection at work.
type collector struct {
	Collection
	store   *store.Store
	reached *reached
	names   []store.Object
	known   map[string]bool      // runs with a directory
	kin     map[string]bool      // runs that those come of: their calls and checkpoints may be asked for
	removed map[string]bool      // runs that `starter remove` has removed
	left    map[string]bool      // runs of which the store has more than the note that they were removed
	claims  map[string]run.Claim // as the store registered them
	unknown map[string]*Unknown
	out     Collected
}

func (g *collector) see(o store.Object) error {
	if o.Digest != "" {
		g.reached.blobs[o.Digest] = o
	} else {
		g.names = append(g.names, o)
	}
	return nil
}

func (g *collector) broken(format string, args ...any) {
	g.out.Broken = append(g.out.Broken, fmt.Sprintf(format, args...))
}

// registrations reads which runs use the store, and which were removed.
func (g *collector) registrations(ctx context.Context) error {
	for _, o := range g.names {
		if id, is := strings.CutPrefix(o.Name, removedPrefix); is {
			g.removed[id] = true
			continue
		}
		if id, of := runOf(o.Name); of {
			g.left[id] = true
		}
		id, is := strings.CutPrefix(o.Name, runsPrefix)
		if !is {
			continue
		}
		r, err := registration(ctx, g.store, id)
		if err == nil {
			g.claims[id] = r.Claim
		} else if !errors.Is(err, store.ErrMissing) {
			g.broken("%v", err)
		}
	}
	for id, claim := range g.claims {
		for _, of := range []string{claim.ThreadID, claim.SourceRun} {
			if of != id && !g.dropped(id) {
				g.kin[of] = true
			}
		}
	}
	return nil
}

// dropped says that nobody wants a run any more.
func (g *collector) dropped(id string) bool {
	return g.removed[id] || slices.Contains(g.Forget, id) || slices.Contains(g.Removing, id)
}

// directories marks what the directories of all runs name.
func (g *collector) directories(ctx context.Context) error {
	remembered, err := indexed(g.StateDir)
	if err != nil {
		return err
	}
	dirs := slices.Collect(maps.Values(remembered))
	for _, root := range g.Roots {
		found, err := runsBelow(root)
		if err != nil {
			return err
		}
		dirs = append(dirs, found...)
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		if err := ctx.Err(); err != nil {
			return err
		}
		g.directory(rundir.At(dir))
	}
	for id, dir := range remembered {
		if !g.known[id] && !g.dropped(id) {
			g.unknown[id] = &Unknown{RunID: id, Missing: dir}
		}
	}
	return nil
}

// directory marks what a run directory names, and those of the runs that were archived in it.
func (g *collector) directory(d rundir.Dir) {
	archived, err := d.Archived()
	if err != nil {
		g.broken("%v", err)
	}
	for _, a := range archived {
		g.directory(a)
	}
	claim, err := d.Claim()
	if errors.Is(err, rundir.ErrNoRun) || errors.Is(err, fs.ErrNotExist) {
		return // gone, or free again
	}
	if err == nil && slices.Contains(g.Removing, claim.RunID) {
		return
	}
	if err == nil {
		err = d.Records(func(_ string, r io.Reader) error { return g.reached.names(r) })
	}
	var now rundir.Now
	if err == nil {
		now, err = d.Now()
	}
	if err == nil {
		err = d.Lost(now.State)
	}
	if err != nil {
		if !g.dropped(claim.RunID) {
			g.broken("%v", err)
		}
		return
	}
	g.known[claim.RunID], g.kin[claim.ThreadID], g.kin[claim.SourceRun] = true, true, true
	g.out.Runs = append(g.out.Runs, Holder{RunID: claim.RunID, Directory: d.Root})
	g.hold(claim.RunID, claim.CreatedAt, now.State)
}

// hold keeps what was written since the last event of an open run: its next events may name it, and may have waited for the disk for long.
func (g *collector) hold(id, claimed string, s run.State) {
	if s.TS == "" {
		s.TS = claimed // nothing is written down yet
	}
	if s.Status.Closed() && s.Status != "" || s.TS == "" {
		return
	}
	last, err := time.Parse(run.TimeFormat, s.TS)
	if err != nil {
		g.broken("run %s: the time of its last event: %v", id, err)
		return
	}
	if before := last.Add(-g.OlderThan); before.Before(g.out.Before) {
		g.out.Before, g.out.HeldBy = before, id
	}
}

// runsBelow finds the run directories below a folder. It looks into none of them.
func runsBelow(root string) (dirs []string, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil && path != root {
			return fmt.Errorf("search %s for runs: %w", root, err)
		}
		if err != nil || !e.IsDir() {
			return err
		}
		if _, err := os.Stat(filepath.Join(path, rundir.ClaimFile)); err == nil {
			dirs = append(dirs, path)
			return fs.SkipDir
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dirs, err
}

// markNames marks what calls name. Those of forgotten runs are garbage.
func (g *collector) markNames(ctx context.Context) error {
	for _, o := range g.names {
		id, of := runOf(o.Name)
		if of && g.forgotten(id) {
			continue
		}
		if of {
			g.met(id, func(u *Unknown) { u.Names++ })
		}
		raw, err := g.store.ReadName(ctx, o.Name)
		if errors.Is(err, store.ErrMissing) {
			continue
		}
		if err != nil {
			return err
		}
		if err := g.reached.names(strings.NewReader(string(raw))); err != nil {
			return err
		}
	}
	return nil
}

// absent says what becomes of runs whose directories this machine remembers and does not find. What the store knows of one by name is all that it needs
// once it is over: its calls, its checkpoints, and the whole journal in segments. One that may be open has named more in a journal that is not at hand,
// all of it written since it began.
func (g *collector) absent(ctx context.Context) error {
	for id, u := range g.unknown {
		if u.Blocks = u.Missing == ""; u.Blocks || u.Names == 0 && u.Segments == 0 {
			continue
		}
		marks, err := rundir.Marks(ctx, activities.Blobs(g.store), id)
		if err != nil {
			return err
		}
		over := false
		if len(marks) > 0 {
			newest, err := rundir.LoadCheckpoint(ctx, activities.Blobs(g.store), id, marks[len(marks)-1].ID)
			over = err == nil && newest.State.Status.Closed() && newest.State.Status != run.Interrupted
		}
		switch began := g.claims[id].CreatedAt; {
		case over:
		case began == "":
			u.Blocks = true
		default:
			g.hold(id, began, run.State{})
		}
	}
	return nil
}

// met counts something of a run whose directory was not found.
func (g *collector) met(id string, count func(*Unknown)) {
	if g.known[id] || g.dropped(id) {
		return
	}
	if g.unknown[id] == nil {
		g.unknown[id] = &Unknown{RunID: id}
	}
	count(g.unknown[id])
}

// forgotten says that nobody needs a run any more. One that others come of is needed as long as they are there.
func (g *collector) forgotten(id string) bool {
	return g.dropped(id) && !g.known[id] && !g.kin[id]
}

// runOf gives the run that a name belongs to.
func runOf(name string) (id string, is bool) {
	for _, prefix := range []string{"calls/", "checkpoints/", "late/", runsPrefix, removedPrefix} {
		if rest, has := strings.CutPrefix(name, prefix); has {
			id, _, _ = strings.Cut(rest, "/")
			return id, true
		}
	}
	return "", false
}

// markSegments keeps every piece of a journal, and what it names: history may lead to it where no directory does.
func (g *collector) markSegments(ctx context.Context) error {
	for d := range g.reached.blobs {
		if g.reached.marked[d] {
			continue
		}
		id, err := g.segment(ctx, d)
		if err != nil {
			return err
		}
		if id == "" {
			continue
		}
		if g.left[id] = true; g.forgotten(id) {
			continue
		}
		g.met(id, func(u *Unknown) { u.Segments++ })
		g.reached.mark(d)
	}
	return g.reached.follow(ctx)
}

// segment gives the run whose events an unmarked blob holds.
func (g *collector) segment(ctx context.Context, d store.Digest) (string, error) {
	look := &heading{}
	err := g.store.Copy(ctx, d, look)
	if err != nil && !errors.Is(err, errPlain) && !errors.Is(err, store.ErrMissing) && !errors.Is(err, store.ErrDamaged) {
		return "", err
	}
	return rundir.SegmentOf(look.head), nil
}

// heading reads the beginning of a blob.
type heading struct{ head []byte }

func (h *heading) Write(data []byte) (int, error) {
	h.head = append(h.head, data...)
	if len(h.head) >= headSize {
		return 0, errPlain
	}
	return len(data), nil
}
