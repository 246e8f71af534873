package rundir

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/run"
)

// metaRead is meta.json as one check has read it.
type metaRead struct {
	raw    []byte // nil: missing
	object *object
	err    error // it is no JSON object, or not what Passbook writes
	typed  Meta  // of Passbook's own directories
}

// good says that it was read.
func (m metaRead) good() bool { return m.object != nil && m.err == nil }

func (m metaRead) status() run.Status { return run.Status(m.object.text("status")) }

// handoff is the open question that meta.json names. There is one if phase_handoff is an object.
func (m metaRead) handoff() (id string, there bool) {
	if !m.good() || !bytes.HasPrefix(m.object.values["phase_handoff"], []byte("{")) {
		return "", false
	}
	h, err := parseObject(m.object.values["phase_handoff"])
	if err != nil {
		return "", false
	}
	if id = h.text("id"); id == "" {
		id = h.text("handoff_id")
	}
	return id, true
}

func (x *examined) readMeta() error {
	_, err := x.dir.Claim()
	if err != nil && !errors.Is(err, ErrNoRun) {
		return err
	}
	x.own = err == nil
	if !x.own && !x.dir.Foreign() {
		return err
	}
	if x.meta.raw, err = x.dir.metaBytes(); err != nil || x.meta.raw == nil {
		return err
	}
	x.meta.object, x.meta.err = parseObject(x.meta.raw)
	if x.meta.err == nil && x.own {
		x.meta.err = json.Unmarshal(x.meta.raw, &x.meta.typed)
	}
	if x.own && x.meta.err == nil {
		x.meta.err = x.dir.strange(x.meta.typed)
	}
	if v := x.meta.typed.Version; v > MetaVersion {
		return fmt.Errorf("%s has version %d, and this program knows %d: use the one that wrote it, or a newer one", x.dir.Path(MetaFile), v, MetaVersion)
	}
	return nil
}

func (d Dir) there(name string) bool {
	_, err := os.Stat(d.Path(name))
	return err == nil
}

// metaBytes is meta.json; nil: there is none.
func (d Dir) metaBytes() ([]byte, error) { return d.readRaw(MetaFile) }

// scanned is what the stream holds: the lines that meta.json has seen, and what stands behind them.
type scanned struct {
	lines, size int64 // that meta.json has seen; all, if it does not say
	chain       run.Chain
	want        Meta      // what these lines give, in Passbook's own directories
	fold        *run.Fold // what they give in others; nil: ours
	work        run.CrossWork
	artifact    string
	checkpoints map[string]kept
	turns       []string // digests of the trees that turns ended with, from turn 0 on
	calls       calls

	beyond int64 // complete lines behind those
	torn   int64 // bytes behind the last line feed
	after  run.State

	last                      int64 // highest seq so far
	unreadable, gaps, repeats places
}

// places are numbers of lines.
type places struct {
	n     int
	first []int64 // at most three
}

func (p *places) add(line int64) {
	if p.n++; p.n <= 3 {
		p.first = append(p.first, line)
	}
}

func (p places) String() string {
	words := make([]string, len(p.first))
	for i, n := range p.first {
		words[i] = fmt.Sprint(n)
	}
	text := "line " + strings.Join(words, ", ")
	if p.n > len(p.first) {
		text += fmt.Sprintf(" and %d more", p.n-len(p.first))
	}
	return text
}

// readStream folds the stream line by line; only one line is in memory.
func (x *examined) readStream(ctx context.Context) error {
	x.stream = scanned{checkpoints: map[string]kept{}}
	if !x.own {
		x.stream.fold = x.dir.Fold()
	}
	f, err := durable.Open(x.dir.Path(EventsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			x.stream.torn = int64(len(line))
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", f.Name(), err)
		}
		x.take(line[:len(line)-1])
	}
}

// take folds one line.
func (x *examined) take(line []byte) {
	s := &x.stream
	n := s.lines + s.beyond + 1
	e, err := run.ParseEvent(line)
	s.number(n, e.Seq, err)
	if x.own {
		e.Seq = n // a line that is no event keeps its place
	}
	end := s.size + int64(len(line)) + 1
	if x.own && x.meta.good() && (s.beyond > 0 || end > x.meta.typed.Events.Size) {
		s.takeBeyond(e)
		if x.shadow != nil {
			x.shadow.more = true
			x.shadow.take(string(line))
		}
		return
	}
	if x.shadow != nil {
		x.shadow.take(string(line))
	}
	s.lines, s.size = s.lines+1, end
	if s.fold != nil {
		if err == nil {
			s.fold.Apply(e)
			s.work.Note(e)
		}
		return
	}
	s.chain = s.chain.Then(string(line))
	before := s.want.State
	s.want.fold(e)
	s.note(e, before)
}

// state is the small state that the lines give.
func (s *scanned) state() run.State {
	if s.fold != nil {
		return s.fold.State()
	}
	return s.want.State
}

func (s *scanned) snapshot() run.Snapshot {
	if s.fold != nil {
		return s.fold.Snapshot()
	}
	return run.Snapped(s.want.State, s.want.History)
}

// takeBeyond takes note of a line that meta.json has not seen.
func (s *scanned) takeBeyond(e run.Event) {
	if s.beyond == 0 {
		s.after = s.want.State
	}
	s.beyond++
	s.after = run.Apply(s.after, e)
	if e.Kind == run.KindCheckpointCreated {
		var c run.CheckpointCreated
		e.Decode(&c)
		delete(s.checkpoints, c.ID) // it is being made anew
	}
}

// number follows the numbering. A line that cannot be read keeps its place in it.
func (s *scanned) number(line, seq int64, unreadable error) {
	want := s.last + 1
	switch {
	case unreadable != nil:
		s.unreadable.add(line)
		s.last = want
	case seq > want || seq < 1:
		s.gaps.add(line)
		s.last = max(seq, want)
	case seq < want:
		s.repeats.add(line)
	default:
		s.last = seq
	}
}

// kept is what the directory of a checkpoint must hold.
type kept struct {
	seq      int64
	artifact string // digest; empty: none
	notes    []run.Notes
}

// note remembers what the files of the directory are compared with.
func (s *scanned) note(e run.Event, before run.State) {
	s.calls.note(e)
	switch e.Kind {
	case run.KindRunStart:
		var p run.RunStart
		e.Decode(&p)
		if p.Artifact != nil {
			s.artifact = p.Artifact.File
		}
		if p.Workspace != nil {
			s.turns = append([]string{p.Workspace.Tree.Digest}, s.turns[min(1, len(s.turns)):]...) // after a reset to before the start, turns keep their numbers
		}
	case run.KindPassEnd:
		s.turn(e, before)
	case run.KindCheckpointCreated:
		var c run.CheckpointCreated
		e.Decode(&c)
		k := kept{seq: e.Seq, notes: before.Notes}
		if before.Artifact != nil {
			k.artifact = before.Artifact.Digest
		}
		s.checkpoints[c.ID] = k
	case run.KindRunReverted:
		var r run.RunReverted
		if e.Decode(&r); r.State != nil { // the folders of what is left behind are set aside
			maps.DeleteFunc(s.checkpoints, func(id string, k kept) bool { return k.seq > r.To && !lasting(id) })
		}
	}
}

func (s *scanned) turn(e run.Event, before run.State) {
	var end run.PassEnd
	e.Decode(&end)
	if tree, ok := treeAfter(end, before); ok {
		s.turns = append(s.turns, tree)
	}
}

// settle says which lag is a finding: none beside a writer, and none that has gone meanwhile. See [Dir.Check].
func (x *examined) settle(alone bool) error {
	if len(x.lag) == 0 {
		return nil
	}
	if !alone {
		held, err := durable.Held(x.dir.Path(LockFile))
		if err != nil || held {
			return err
		}
		again, err := x.dir.metaBytes()
		if err != nil || !bytes.Equal(again, x.meta.raw) {
			return err
		}
	}
	x.found = append(x.found, x.lag...)
	return nil
}
