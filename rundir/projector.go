package rundir

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/run"
)

// projector holds a locked directory while it is written.
type projector struct {
	ctx     context.Context
	dir     Dir
	blobs   Blobs
	meta    Meta          // as far as it was committed
	book    PipelineState // as far as it was written
	anew    bool          // the book was not: everything is made from the first event on
	unseen  []run.Event   // on disk, not in meta
	chains  []run.Chain   // up to each of them
	last    int64         // last seq on disk
	chain   run.Chain
	size    int64
	torn    []byte
	shadow  *shadow  // nil: files are written; else they are only listed
	vouched int      // epoch of the meta.json that was read: its digests hold
	changed bool     // state.json has not the bytes that meta.json speaks of
	spares  bool     // a file whose bytes are lost stays as it is: nothing can make it
	healed  []string // what was damaged, and is made again from the events
	beyond  *Meta    // meta.json, where events.jsonl does not reach as far as it says
}

// heal notes that a derived file is damaged: it is made again.
func (p *projector) heal(format string, args ...any) {
	p.healed = append(p.healed, fmt.Sprintf(format, args...)+": made again from "+EventsFile)
}

// open reads what there is. The cost does not grow with the length of the run: meta.json says how far everything is, and only what stands
// behind it is read.
func (d Dir) open(ctx context.Context, blobs Blobs) (*projector, error) {
	p := &projector{ctx: ctx, dir: d, blobs: blobs}
	meta, err := d.Meta()
	if err != nil && !missing(err) {
		return nil, err
	}
	if err == nil {
		err = d.strange(meta)
	}
	if err == nil {
		p.meta = meta
	} else if errors.Is(err, ErrDamaged) {
		p.heal("%v", err)
	}
	p.last, p.chain, p.size, p.vouched = p.meta.Events.Seq, p.meta.Events.Chain, p.meta.Events.Size, p.meta.Epoch
	return p, p.readRest()
}

// readRest reads the lines that meta.json has not seen. If the stream is shorter than meta.json says, or no line ends there, the whole of it is
// unseen.
func (p *projector) readRest() error {
	if ends, err := p.dir.lineEnds(p.size); err != nil {
		return err
	} else if !ends {
		p.heal("%s does not reach as far as %s says", EventsFile, MetaFile)
		was := p.meta
		p.beyond = &was
		p.meta, p.last, p.chain, p.size = p.meta.unfolded(), 0, "", 0
	}
	rest, err := p.dir.readStream(p.size)
	if err != nil {
		return err
	}
	p.size, p.torn = rest.size, rest.torn
	p.extend(rest.lines)
	return nil
}

// readBook reads the records as of meta.json, as far as this batch needs them. If state.json does not stand where meta.json says, or a log has
// shrunk, everything is made again from the first event on: that is rare, and always right.
func (p *projector) readBook(due bool) error {
	if b := p.meta.Behind; b != nil && !due && b.Book.sound() && b.Book.LastSeq == p.meta.Events.Seq && !p.shrunk() {
		p.book = b.Book
		return nil
	}
	stands := p.meta.Events.Seq
	if p.meta.Behind != nil {
		stands = p.meta.Behind.Seq
	}
	book, err := p.written()
	if err == nil && book.LastSeq == stands && p.changed {
		if err := p.keepState(); err != nil {
			return err
		}
		err = fmt.Errorf("%s is %w: its checksum is not the one in %s", p.dir.Path(StateFile), ErrDamaged, MetaFile)
	}
	if err != nil && !missing(err) {
		return err
	}
	if err == nil && book.LastSeq == stands && !p.shrunk() {
		p.book = book
		if p.meta.Behind != nil {
			p.book, err = p.dir.goneOn(book, p.meta)
		}
		return err
	}
	p.book, p.anew = newState(), true
	if p.meta.Events.Seq == 0 {
		return nil
	}
	switch {
	case err != nil:
		p.heal("%v", err)
	case p.shrunk():
		p.heal("a log is shorter than %s says", MetaFile)
	}
	p.meta, p.last, p.chain, p.size, p.unseen, p.chains = p.meta.unfolded(), 0, "", 0, nil, nil
	return p.readRest()
}

// keepState keeps a copy of a state.json that was changed.
func (p *projector) keepState() error {
	raw, err := p.dir.readRaw(StateFile)
	if err != nil {
		return err
	}
	return p.dir.Disk.WriteAll([]durable.File{{Path: p.dir.Path(tornDir + "/state-damaged-" + digest(raw)[:8] + ".json"), Data: raw, Perm: filePerm, DirPerm: dirPerm}})
}

// lenient reads a line as an event; a line that is none becomes an event that changes nothing.
func lenient(line string) run.Event {
	e, err := run.ParseEvent([]byte(line))
	if err != nil {
		return run.Event{}
	}
	return e
}

// extend takes note of lines that are on disk.
func (p *projector) extend(lines []string) {
	for _, line := range lines {
		p.last++
		p.chain = p.chain.Then(line)
		e := lenient(line)
		e.Seq = p.last
		p.unseen, p.chains = append(p.unseen, e), append(p.chains, p.chain)
	}
}

// chainAt is the chain up to a line that was read.
func (p *projector) chainAt(seq int64) run.Chain {
	return p.chains[int64(len(p.chains))-1-(p.last-seq)]
}

func (p *projector) tail() run.Tail { return run.Tail{Seq: p.last, Chain: p.chain} }

// state is the small state as of the last line on disk.
func (p *projector) state() run.State {
	s := p.meta.State
	for _, e := range p.unseen {
		s = run.Apply(s, e)
	}
	return s
}

// lock takes the directory's lock, waiting for whoever writes at the moment.
func (d Dir) lock(ctx context.Context, what string) (*durable.Lock, error) {
	l, err := durable.WaitLock(ctx, d.Path(LockFile), durable.Self(what, time.Now()))
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", d.Root, err)
	}
	return l, nil
}
