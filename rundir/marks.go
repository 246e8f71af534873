package rundir

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/run"
)

// Names is the part of a store that finds checkpoints: named objects.
type Names interface {
	ReadName(ctx context.Context, name string) ([]byte, error)
	ListNames(ctx context.Context, prefix string) ([]string, error)
}

// checkpointFolder is the folder in the store for the checkpoints of a run.
func checkpointFolder(runID string) string { return "checkpoints/" + runID + "/" }

var plainID = lazyregexp.New(`^[a-zA-Z0-9._~-]{1,100}$`)

// checkpointName is the name of a checkpoint in the store: seq, digest of its bytes, ID. A journal that diverged may
// have two with the same seq.
func checkpointName(c run.Checkpoint, raw []byte) string {
	return fmt.Sprintf("%s%012d.%.16s.%s", checkpointFolder(c.RunID), c.Seq, disk.Digest(raw), MarkID(c.ID))
}

// MarkID is a checkpoint's ID as part of a name.
func MarkID(id string) string {
	if plainID.MatchString(id) {
		return id
	}
	return "id-" + disk.Digest([]byte(id))[:16]
}

// checkpointAt is the checkpoint that a line has made, unless the next line belongs to the same step. s and chain are those
// after the line.
func checkpointAt(s run.State, chain run.Chain, line, next string) (run.Checkpoint, bool) {
	if s.Checkpoint == nil || s.Checkpoint.Seq != s.Seq || s.RunID == "" {
		return run.Checkpoint{}, false // before the first event there is none
	}
	c, ok := run.NewCheckpoint(s.Clone(), chain)
	if next != "" && c.ID == run.UnnamedID(c.Seq) && ParseAny(next).Kind.PartOfPass() {
		return c, false // the checkpoint comes after the next event
	}
	if e := ParseAny(line); e.Kind == run.KindRunStart {
		start := run.PayloadOf[run.RunStart](e)
		c.Start = &start
	}
	return c, ok
}

// Mark is a listed checkpoint: its position in the journal, and its name.
type Mark struct {
	ID   string `json:"id"`
	Seq  int64  `json:"seq"`
	Name string
	Sum  string // first 16 characters of its digest
}

// Marks lists the checkpoints of a run in the store, oldest first.
func Marks(ctx context.Context, names Names, runID string) ([]Mark, error) {
	list, err := names.ListNames(ctx, checkpointFolder(runID))
	if err != nil {
		return nil, fmt.Errorf("list the checkpoints of run %s: %w", runID, err)
	}
	var out []Mark
	for _, name := range list {
		part := strings.SplitN(path.Base(name), ".", 3)
		if len(part) != 3 {
			continue
		}
		seq, err := strconv.ParseInt(part[0], 10, 64)
		if err != nil {
			continue
		}
		out = append(out, Mark{ID: part[2], Seq: seq, Name: name, Sum: part[1]})
	}
	slices.SortFunc(out, func(a, b Mark) int { return int(a.Seq - b.Seq) })
	return out, nil
}

// NoCheckpointError reports that a run has no checkpoint of that name.
type NoCheckpointError struct {
	RunID, ID string
	Known     []string // the named checkpoints
	Near      []string // those before and after the event that an unnamed ID names, such as one inside a lane
}

func (e *NoCheckpointError) Error() string {
	text := fmt.Sprintf("run %s has no checkpoint %s", e.RunID, e.ID)
	switch {
	case len(e.Near) == 1:
		return text + "; the nearest one is " + e.Near[0]
	case len(e.Near) > 0:
		return text + "; the nearest ones are " + strings.Join(e.Near, " and ")
	case len(e.Known) == 0:
		return text + ", and no named one at all"
	}
	return text + ": there are " + strings.Join(e.Known, ", ") + " (and cp-<seq> after every step)"
}

// near returns the last checkpoint before the event that an unnamed ID names, and the first one after it.
func near(marks []Mark, id string) (all []string) {
	number, found := strings.CutPrefix(id, "cp-")
	seq, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil {
		return nil
	}
	after := slices.IndexFunc(marks, func(m Mark) bool { return m.Seq > seq })
	if after < 0 {
		after = len(marks)
	}
	for _, m := range marks[max(0, after-1):min(after+1, len(marks))] {
		all = append(all, m.ID)
	}
	return all
}

// LoadCheckpoint reads the newest checkpoint of that name from the store. A named one also has the name of its event.
func LoadCheckpoint(ctx context.Context, names Names, runID, id string) (run.Checkpoint, error) {
	marks, err := Marks(ctx, names, runID)
	if err != nil {
		return run.Checkpoint{}, err
	}
	missing := &NoCheckpointError{RunID: runID, ID: id, Near: near(marks, id)}
	for _, m := range slices.Backward(marks) {
		if m.ID == MarkID(id) || run.UnnamedID(m.Seq) == id {
			return m.Load(ctx, names, runID, id)
		}
		if m.ID != run.UnnamedID(m.Seq) && !slices.Contains(missing.Known, m.ID) {
			missing.Known = append([]string{m.ID}, missing.Known...)
		}
	}
	return run.Checkpoint{}, missing
}

func (m Mark) Load(ctx context.Context, names Names, runID, id string) (run.Checkpoint, error) {
	raw, err := names.ReadName(ctx, m.Name)
	if err != nil {
		return run.Checkpoint{}, fmt.Errorf("checkpoint %s of run %s: %w", id, runID, err)
	}
	if disk.Digest(raw)[:16] != m.Sum {
		return run.Checkpoint{},
			fmt.Errorf("checkpoint %s of run %s (%s in the store) is %w: its bytes are not those that were stored", id,
				runID, m.Name, disk.ErrDamaged)
	}
	return run.ReadCheckpoint(raw, runID, id)
}

// FindCheckpoint finds a checkpoint by its name or its boundary: pass-35 is the state before that pass, round-2 (or
// cycle-2) the state before that round of the repeated stage. If several match, the newest counts.
func FindCheckpoint(ctx context.Context, names Names, runID, id string) (run.Checkpoint, error) {
	c, err := LoadCheckpoint(ctx, names, runID, id)
	var none *NoCheckpointError
	at, is := boundary(id)
	if !errors.As(err, &none) || !is {
		return c, err
	}
	marks, merr := Marks(ctx, names, runID)
	if merr != nil {
		return c, merr
	}
	var before roundStart
	for _, m := range slices.Backward(marks) {
		c, lerr := m.Load(ctx, names, runID, m.ID)
		if lerr == nil && (at(c.State) || before.is(id, c.State)) {
			return c, nil
		}
	}
	return run.Checkpoint{}, err
}

// roundStart finds the state before a round of the last repeated stage, in states from the newest on. A run without
// named checkpoints has no state between two rounds: one batch closes a round and opens the next.
type roundStart struct {
	reached bool // a newer state is in that round, or after it
}

func (r *roundStart) is(id string, s run.State) bool {
	number, ok := strings.CutPrefix(id, "round-")
	n, err := strconv.Atoi(number)
	loop := -1
	for i, stage := range s.Stages {
		if stage.Rounds > 0 {
			loop = i
		}
	}
	if !ok || err != nil || n < 1 || loop < 0 {
		return false
	}
	at := slices.IndexFunc(s.Stages, func(stage run.StageRef) bool { return stage.Name == s.Phase })
	if at > loop || at == loop && s.Round >= n {
		r.reached = true
		return false
	}
	return r.reached
}

// boundary parses a boundary between steps.
func boundary(id string) (at func(run.State) bool, ok bool) {
	what, number, _ := strings.Cut(id, "-")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return nil, false
	}
	switch what {
	case "pass":
		return func(s run.State) bool { return s.Passes.LastSettled == n-1 && n <= s.Passes.Total }, true
	case "cycle", "round":
		return func(s run.State) bool {
			return s.Rounds == n-1 && s.Passes.LastSettled == s.Passes.Total && !s.PhaseOpen
		}, true
	}
	return nil, false
}

// VerifyStored returns an error unless the store has everything that a checkpoint refers to by digest, undamaged. Trees
// are checked elsewhere.
func VerifyStored(ctx context.Context, blobs Blobs, c run.Checkpoint) error {
	for _, n := range needs(run.RunStart{}, c.State) {
		if _, err := blobs.Get(ctx, n.digest); disk.Lost(err) {
			return fmt.Errorf("checkpoint %s is %w: %s integrity check failed: %v", c.ID, disk.ErrDamaged,
				strings.TrimPrefix(n.what, "the "), err)
		} else if err != nil {
			return err
		}
	}
	return nil
}
