package fsck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/object"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

func (x *examined) readMeta() error {
	_, err := x.dir.Claim()
	if err != nil {
		return err
	}
	if x.meta.raw, err = x.dir.ReadRaw(layout.MetaFile); err != nil || x.meta.raw == nil {
		return err
	}
	x.meta.object, x.meta.err = object.ParseObject(x.meta.raw)
	if x.meta.err == nil {
		x.meta.err = json.Unmarshal(x.meta.raw, &x.meta.typed)
	}
	if x.meta.err == nil {
		x.meta.err = projector.Strange(x.dir.Dir, x.meta.typed)
	}
	return x.dir.Known()
}

// readStream folds the stream line by line; only one line is in memory.
func (x *examined) readStream(ctx context.Context) error {
	x.stream = scanned{checkpoints: map[string]kept{}}
	f, err := journal.Open(x.dir, layout.EventsFile, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for line, err := range f.Lines() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", x.dir.Path(layout.EventsFile), err)
		}
		x.take(line)
	}
	x.stream.torn = int64(len(f.Torn()))
	x.stream.want.Derive()
	x.stream.further.Derive()
	return nil
}

// take folds one line.
func (x *examined) take(line *run.Line) {
	s, e := &x.stream, line.Event
	s.number(line.Number, e.Seq, line.Err)
	e.Seq = line.Number // a line that is not an event keeps its place
	if x.meta.good() && (s.beyond > 0 || line.End > x.meta.typed.Events.Size) {
		s.takeBeyond(e, line)
		if x.shadow != nil {
			x.shadow.More = true
			x.shadow.Take(e, s.further.chain, &s.further.Meta)
		}
		return
	}
	s.lines, s.size = line.Number, line.End
	s.chain = line.Chain(s.chain)
	before := s.want.State
	s.want.Fold(e)
	s.note(e, &before)
	if x.shadow != nil {
		x.shadow.Take(e, s.chain, &s.want.Meta)
	}
}

// takeBeyond takes note of a line that meta.json has not seen.
func (s *scanned) takeBeyond(e run.Event, line *run.Line) {
	if s.beyond == 0 {
		s.further.Meta, s.further.chain = s.want.Meta, s.chain
	}
	s.beyond++
	s.further.chain = line.Chain(s.further.chain)
	s.further.Fold(e)
	if e.Kind == run.KindCheckpointCreated {
		var c run.CheckpointCreated
		e.Decode(&c)
		delete(s.checkpoints, c.ID) // it is being recreated
	}
}

// number follows the numbering. A line that cannot be read keeps its place in it.
func (s *scanned) number(line, seq int64, unreadable error) {
	want := s.last + 1
	switch {
	case unreadable != nil && errors.As(unreadable, new(*run.NameError)):
		s.misnamed.add(line)
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

// note remembers what the files of the directory are compared with.
func (s *scanned) note(e run.Event, before *run.State) {
	s.calls.note(e)
	switch e.Kind {
	case run.KindRunStart:
		var p run.RunStart
		e.Decode(&p)
		if p.Artifact != nil {
			s.artifact = p.Artifact.File
		}
		if p.Workspace != nil {
			// after a reset to before the start, turns keep their numbers
			s.turns = append([]string{p.Workspace.Tree.Digest}, s.turns[min(1, len(s.turns)):]...)
		}
	case run.KindPassEnd:
		s.turn(e, before)
	case run.KindCheckpointCreated:
		var c run.CheckpointCreated
		e.Decode(&c)
		k := kept{seq: e.Seq, notes: slices.Clone(before.Notes)}
		if before.Artifact != nil {
			k.artifact = before.Artifact.Digest
		}
		s.checkpoints[c.ID] = k
	case run.KindRunReverted:
		var r run.RunReverted
		if e.Decode(&r); r.State != nil { // the folders of reverted passes are superseded
			maps.DeleteFunc(s.checkpoints, func(id string, k kept) bool {
				return k.seq > r.To &&
					!projector.Lasting(id)
			})
		}
	}
}

func (s *scanned) turn(e run.Event, before *run.State) {
	end := run.PayloadOf[run.PassEnd](e)
	if tree, ok := projector.TreeAfter(end, *before); ok {
		s.turns = append(s.turns, tree)
	}
}

// settle adds lag to the findings, unless a process is writing or the lag has gone. See [Dir.Check].
func (x *examined) settle(alone bool) error {
	if len(x.lag) == 0 {
		return nil
	}
	if !alone {
		held, err := x.dir.Locked()
		if err != nil || held {
			return err
		}
		again, err := x.dir.ReadRaw(layout.MetaFile)
		if err != nil || !bytes.Equal(again, x.meta.raw) {
			return err
		}
	}
	x.found = append(x.found, x.lag...)
	return nil
}
