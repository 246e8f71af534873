// Package projector writes run directories.
//
// It appends lines to events.jsonl and derives every other file from the events and the store, so a process that is
// killed at any point leaves a directory that the next projection completes.
package projector

import (
	"context"
	"errors"
	"fmt"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Projector holds the lock of a directory and its state while it writes.
type Projector struct {
	Ctx     context.Context
	Dir     Dir
	Blobs   Blobs
	meta    records.Header       // as committed
	records rundir.PipelineState // as written
	encoder encoder              // of the records
	encoded []byte               // the records now; nil: not encoded
	anew    bool                 // rebuild everything from the first event

	restarted bool        // the machine was started again before everything was on disk
	restored  int64       // up to this event, all but evidence was synced and stays
	unseen    []run.Event // on disk, but not in meta
	chains    []run.Chain // up to each of them
	last      int64       // last seq on disk
	chain     run.Chain
	size      int64
	torn      []byte
	shadow    *Shadow      // if not nil, files are listed instead of written
	vouched   int          // epoch of the meta.json that was read, whose digests are valid
	changed   bool         // state.json differs from its mark in meta.json
	Spares    bool         // a file whose bytes are lost stays unchanged
	unsynced  string       // boot during which files were written that may not be on disk
	boot      string       // of the machine; empty: everything is synced at once
	healed    []string     // damaged files that are rebuilt from the events
	edits     []Edit       // of the artifact, that were replaced
	beyond    *rundir.Meta // meta.json, if events.jsonl is shorter than its mark

	wroteMeta, wroteState []byte // meta.json and state.json as written last; nil: not written
}

// heal records that a derived file is damaged and will be rebuilt.
func (p *Projector) heal(format string, args ...any) {
	p.healed = append(p.healed, fmt.Sprintf(format, args...)+": made again from "+layout.EventsFile)
}

// Open reads the directory. The cost does not grow with the length of the run: meta.json records the progress of every
// file, and only later lines are read.
func (d Dir) Open(ctx context.Context, blobs Blobs) (*Projector, error) {
	p := &Projector{Ctx: ctx, Dir: d, Blobs: blobs}
	meta, err := d.meta()
	if err != nil && !disk.Missing(err) {
		return nil, err
	}
	if err == nil {
		if err := d.KnownMeta(meta); err != nil {
			return nil, err
		}
		err = Strange(d.Dir, meta)
	}
	if err == nil {
		p.meta = records.Header{Meta: meta}
	} else if errors.Is(err, disk.ErrDamaged) {
		p.heal("%v", err)
	}
	p.last, p.chain, p.size, p.vouched = p.meta.Events.Seq, p.meta.Events.Chain, p.meta.Events.Size, p.meta.Epoch
	return p, p.readUnseen()
}

// meta reads meta.json. What this process wrote itself is not parsed.
func (d Dir) meta() (rundir.Meta, error) {
	if d.Memory != nil {
		if raw, err := d.ReadFile(layout.MetaFile); err == nil {
			if meta := d.Memory.takeMeta(d.Root, raw); meta != nil {
				return *meta, nil
			}
		}
	}
	return d.Meta()
}

// readUnseen reads the lines after those in meta.json. If the stream is shorter than its mark, or no line ends there,
// all lines are unseen.
func (p *Projector) readUnseen() error {
	if ends, err := journal.LineEnds(p.Dir, layout.EventsFile, p.size); err != nil {
		return err
	} else if !ends {
		p.heal("%s is shorter than its mark in %s", layout.EventsFile, layout.MetaFile)
		was := p.meta.Meta
		p.beyond = &was
		p.meta, p.last, p.chain, p.size = records.Header{Meta: unfolded(p.meta.Meta)}, 0, "", 0
	}
	rest, err := journal.ReadStream(p.Dir, layout.EventsFile, p.size)
	if err != nil {
		return err
	}
	p.size, p.torn = rest.Size, rest.Torn
	p.extend(rest.Lines)
	return nil
}

// readRecords reads the records as of meta.json, as far as this batch needs them. If state.json does not match its mark
// in meta.json, or a log has shrunk, everything is rebuilt from the first event. That is rare and always correct.
func (p *Projector) readRecords(due bool) error {
	if b := p.meta.Behind; b != nil && !due && b.Records.Valid() && b.Records.LastSeq == p.meta.Events.Seq && !p.shrunk() {
		p.records = b.Records
		return nil
	}
	stands := p.meta.Events.Seq
	if p.meta.Behind != nil {
		stands = p.meta.Behind.Seq
	}
	state, err := p.written(due)
	if err == nil && state.LastSeq == stands && p.changed {
		if err := p.keepState(); err != nil {
			return err
		}
		err = fmt.Errorf("%s is %w: its checksum is not the one in %s", p.Dir.Path(layout.StateFile), disk.ErrDamaged,
			layout.MetaFile)
	}
	if err != nil && !disk.Missing(err) {
		return err
	}
	if err == nil && state.LastSeq == stands && !p.shrunk() {
		p.records = state
		if p.meta.Behind != nil {
			p.records, err = records.CatchUp(p.Dir.Dir, state, p.meta.Meta)
		}
		return err
	}
	p.records, p.anew = rundir.NewState(), true
	if p.meta.Events.Seq == 0 {
		return nil
	}
	switch {
	case err != nil:
		p.heal("%v", err)
	case p.shrunk():
		p.heal("a log is shorter than its mark in %s", layout.MetaFile)
	}
	p.meta, p.last, p.chain, p.size, p.unseen, p.chains = records.Header{Meta: unfolded(p.meta.Meta)}, 0, "", 0, nil,
		nil
	return p.readUnseen()
}

// keepState keeps a copy of a changed state.json.
func (p *Projector) keepState() error {
	raw, err := p.Dir.ReadRaw(layout.StateFile)
	if err != nil {
		return err
	}
	return p.Dir.Inside().WriteAll([]disk.File{{Path: p.Dir.Path(layout.TornDir + "/state-damaged-" +
		disk.Digest(raw)[:8] + ".json"), Data: raw, Perm: layout.FilePerm, DirPerm: layout.DirPerm}})
}

// extend adds lines that are on disk.
func (p *Projector) extend(lines []string) {
	for _, line := range lines {
		p.last++
		p.chain = p.chain.Then(line)
		e := journal.ParseAny(line)
		e.Seq = p.last
		p.unseen, p.chains = append(p.unseen, e), append(p.chains, p.chain)
	}
}

// chainAt returns the chain up to a line that was read.
func (p *Projector) chainAt(seq int64) run.Chain {
	return p.chains[int64(len(p.chains))-1-(p.last-seq)]
}

func (p *Projector) tail() run.Tail { return run.Tail{Seq: p.last, Chain: p.chain} }

// state returns the small state after the last line on disk.
func (p *Projector) state() run.State {
	if len(p.unseen) == 0 {
		return p.meta.State
	}
	fold := run.NewFold(p.meta.State, run.History{})
	for _, e := range p.unseen {
		fold.Apply(e)
	}
	return *fold.Current()
}

// Shadow lists, file by file, what the projector would write for the same events. The projector creates the list
// itself, so that there is a single definition of a directory's contents. It writes nothing and reads only the lists of
// inputs and of pictures.
type Shadow struct {
	p     *Projector
	w     *batchWriter
	Files map[string]ShadowFile
	More  bool // the events after those in meta.json are being added: earlier contents are still valid
	Err   error
	Blobs map[string]string // blobs of the store, by digest: the file first written from it; nil: not requested
}

// ShadowFile is the expected contents of one file.
type ShadowFile struct {
	Digests []string // of the bytes; any of them is valid
	Tree    string   // the file is the manifest of this tree
	Blob    bool     // the digest is that of a blob in the store
	Gone    bool     // an event after those in meta.json moves it
}
