package rundir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// Check compares a directory with what follows from its events, and reports each difference with a code. It only reads:
// it creates and writes nothing, does not block other processes, and needs no server.
//
// A live writer causes no false alarm, and no retry is needed. meta.json is read first. The events that it has seen never
// change, because the journal only grows and is on disk before meta.json. So the fold of exactly these events results in
// exactly this meta.json, whatever is appended concurrently. Every other file may be ahead of it while a projection
// writes. So a difference of a file is a finding only if, after everything was read, no process holds the lock and
// meta.json is unchanged.
//
// An error means that something could not be read: there is no run (rundir.ErrNoRun), run.json is invalid, or the disk
// fails. The findings in the directories of lanes are among those of their run.
func Check(ctx context.Context, d Dir, o CheckOptions) (Report, error) {
	c, err := examine(ctx, d, o, false)
	if err == nil {
		err = c.judgeLanes(ctx)
	}
	if err != nil {
		return Report{}, err
	}
	return c.report(), nil
}

// check is a directory as read by one check, and its findings.
type check struct {
	dir  Dir
	opts CheckOptions

	raw    []byte // meta.json; nil: missing
	meta   Meta
	unread error // meta.json is not one

	fold     *Fold // of all events
	lines    int64 // events that meta.json has seen, or all
	seen     seen  // what follows from them
	blobs    map[string]string
	state    []byte
	wanted   []byte // state.json as of its last event; nil: not known
	numbered int64  // highest number so far
	bad      []place
	ended    map[string]bool // directories of lanes that have ended
	torn     int

	answers   []Decision
	cross     *CrossCheckpoint // nil: the run is not one across projects
	parent    *run.CrossParent
	effective run.EffectiveStatus
	found     []Issue
	lag       []Issue // findings, unless a process is writing
}

// seen is what follows from the events that meta.json has seen.
type seen struct {
	state    run.State
	history  run.History
	tail     run.Tail
	size     int64
	meta     []byte
	artifact string
	logs     map[string]Log
}

// place is what is wrong with lines of the journal.
type place struct {
	what  string
	lines []int64
}

// examine reads everything and judges it. alone means that the caller holds the directory's lock.
func examine(ctx context.Context, d Dir, o CheckOptions, alone bool) (*check, error) {
	c := &check{dir: d, opts: o, ended: map[string]bool{}}
	if err := c.readMeta(); err != nil {
		return nil, err
	}
	if err := c.readJournal(ctx); err != nil {
		return nil, err
	}
	var err error
	if c.answers, err = d.Decisions(); err != nil {
		return nil, err
	}
	if err := errors.Join(c.readCross(), c.readProjects()); err != nil {
		return nil, err
	}
	c.effective = run.NewEffectiveStatus(c.seen.state.Status, liveness(o.EffectiveStatus), o.EffectiveStatus.Detail)
	if c.fold.Tail.Seq == 0 {
		c.effective.ShownStatus = run.Pending.Shown()
	}
	c.judgeJournal()
	if err := c.judgeRecorded(); err != nil {
		return nil, err
	}
	c.judgeShapes()
	if err := errors.Join(c.judgeClaim(), c.judgeSegments(ctx), c.judgeFiles(), c.judgeStore(ctx)); err != nil {
		return nil, err
	}
	return c, c.settle(alone)
}

func liveness(s run.EffectiveStatus) run.Liveness {
	if s.Liveness == "" {
		return run.LiveUnknown
	}
	return s.Liveness
}

func (c *check) readMeta() error {
	if _, err := c.dir.Claim(); err != nil {
		return err
	}
	var err error
	if c.raw, err = c.dir.ReadRaw(MetaFile); err != nil || c.raw == nil {
		return err
	}
	c.unread = json.Unmarshal(c.raw, &c.meta)
	if c.unread == nil {
		c.unread = Strange(c.dir, c.meta)
	}
	return c.dir.Known()
}

// good reports whether meta.json was read.
func (c *check) good() bool { return c.raw != nil && c.unread == nil }

// readJournal folds the journal line by line.
func (c *check) readJournal(ctx context.Context) (err error) {
	if c.state, err = c.dir.ReadRaw(StateFile); err != nil {
		return err
	}
	book, err := c.dir.Parse(c.state)
	stands := book.LastSeq
	if err != nil {
		stands = -1
	}
	source := &dirSource{dir: c.dir}
	c.fold = newFold(source)
	if c.opts.Deep != nil {
		c.fold.source, c.fold.blobs = deepSource{source, ctx, c.opts.Deep}, map[string]string{}
	}
	f, err := OpenLines(c.dir, EventsFile, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for line, err := range f.Lines() {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && c.good() && c.lines == 0 && line.Number > c.meta.Events.Seq {
			err = c.see()
		}
		if err == nil {
			err = c.take(line)
		}
		if err == nil && line.Number == stands {
			c.wanted, err = disk.Marshal(c.fold.State)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", c.dir.Path(EventsFile), err)
		}
	}
	c.torn = len(f.Torn())
	if c.lines == 0 {
		return c.see()
	}
	return nil
}

// deepSource has the lists of the directory and of its store.
type deepSource struct {
	*dirSource
	ctx   context.Context
	store Blobs
}

func (s deepSource) List(digest string) ([]byte, error) {
	if raw, err := s.dirSource.List(digest); err == nil {
		return raw, nil
	}
	return s.store.Get(s.ctx, digest)
}

func (c *check) take(line *run.Line) error {
	n := line.Number
	switch want := c.numbered + 1; {
	case errors.As(line.Err, new(*run.NameError)):
		c.wrong("names no file of a run directory", n)
	case line.Err != nil:
		c.wrong("not a JSON object", n)
		c.numbered = want
	case line.Event.Seq > want || line.Event.Seq < 1:
		c.wrong("numbers are missing before, or in", n)
		c.numbered = max(line.Event.Seq, want)
	case line.Event.Seq < want:
		c.wrong("the number was there before", n)
	default:
		c.numbered = want
	}
	c.lane(&line.Event)
	return c.fold.takeEvent(line.Event.At(n), string(line.Bytes))
}

func (c *check) wrong(what string, line int64) {
	i := slices.IndexFunc(c.bad, func(p place) bool { return p.what == what })
	if i < 0 {
		i, c.bad = len(c.bad), append(c.bad, place{what: what})
	}
	c.bad[i].lines = append(c.bad[i].lines, line)
}

// see notes what follows from the events that meta.json has seen.
func (c *check) see() error {
	chain := c.fold.Tail.Chain
	if c.good() {
		chain = c.meta.Events.Chain // judgeJournal compares it
	}
	raw, err := c.fold.Meta(chain, c.meta.SegmentHead)
	c.lines = c.fold.Tail.Seq
	c.seen = seen{state: c.fold.Header.State.Clone(), history: c.fold.Header.History, tail: c.fold.Tail, size: c.fold.Size,
		meta: raw, artifact: run.DigestOf(c.fold.Header.State.Artifact), logs: map[string]Log{}}
	for file, l := range c.fold.Logs {
		c.seen.logs[file] = Log{Size: l.Size, digest: l.Digest(), Gap: l.Gap}
	}
	clear(c.fold.changed)
	c.blobs, c.fold.blobs = c.fold.blobs, nil
	return err
}

// beyond is the number of events that meta.json has not seen.
func (c *check) beyond() int64 { return c.fold.Tail.Seq - c.lines }

func (c *check) find(code Code, file, message string) {
	c.found = append(c.found, c.issue(code, file, message))
}

// differs adds a finding that counts only if no process is writing.
func (c *check) differs(file, format string, args ...any) {
	if !slices.ContainsFunc(c.lag, func(i Issue) bool { return i.File == file && file != "" }) {
		c.lag = append(c.lag, c.issue(FileDiffers, file, fmt.Sprintf(format, args...)))
	}
}

func (c *check) issue(code Code, file, message string) Issue {
	r, _ := ruleOf(code)
	i := Issue{Code: code, Severity: r.severity, File: file, Message: message, Hint: c.commands(r.hint)}
	if code == JournalDamaged && c.fold.Tail.Seq == 0 {
		i.Hint = c.journalHint()
	}
	return i
}

// journalHint is how the lines come back that neither the directory nor the store has: a directory without any is written
// in place.
func (c *check) journalHint() string {
	if c.fold.Tail.Seq == 0 {
		return c.commands("starter rebuild RUN-ID --output-dir RUN, from Temporal's history")
	}
	return c.commands("starter rebuild RUN-ID --output-dir OTHER, from Temporal's history, and compare the two")
}

// commands names the run in the commands of a hint.
func (c *check) commands(hint string) string {
	return strings.NewReplacer("RUN-ID", shell.Quote(c.runID()), "RUN", shell.Quote(c.dir.Root)).Replace(hint)
}

// runID is the run's ID, or, if run.json is damaged, the name of its directory.
func (c *check) runID() string {
	if claim, err := c.dir.Claim(); err == nil {
		return claim.RunID
	}
	return filepath.Base(c.dir.Root)
}

func (c *check) has(code Code) bool {
	return slices.ContainsFunc(c.found, func(i Issue) bool { return i.Code == code })
}

func (c *check) report() Report {
	r := Report{
		Snapshot: run.Snapped(c.seen.state, c.seen.history), MetaStatus: c.meta.Status, OK: true,
		Issues: append([]Issue{}, sorted(c.found)...), EffectiveStatus: c.effective, CrossParent: c.parent,
	}
	for _, i := range r.Issues {
		r.OK = r.OK && i.Severity == SeverityInfo
	}
	return r
}

// settle adds differences of files to the findings, unless a process is writing or has written.
func (c *check) settle(alone bool) error {
	if len(c.lag) == 0 {
		return nil
	}
	if !alone {
		held, err := c.dir.Locked()
		if err != nil || held {
			return err
		}
		again, err := c.dir.ReadRaw(MetaFile)
		if err != nil || !bytes.Equal(again, c.raw) {
			return err
		}
	}
	c.found = append(c.found, c.lag...)
	return nil
}

// judgeJournal compares the lines with their numbers, and with the chain in meta.json.
func (c *check) judgeJournal() {
	for _, p := range c.bad {
		where := fmt.Sprint(p.lines[0])
		for _, n := range p.lines[1:min(3, len(p.lines))] {
			where += fmt.Sprintf(", %d", n)
		}
		if more := len(p.lines) - 3; more > 0 {
			where += fmt.Sprintf(" and %d more", more)
		}
		issue := c.issue(JournalDamaged, EventsFile, fmt.Sprintf("%s: line %s of %s", p.what, where, EventsFile))
		if p.lines[0] > c.lines {
			c.lag = append(c.lag, issue)
		} else {
			c.found = append(c.found, issue)
		}
	}
	if e := c.meta.Events; c.good() {
		at := fmt.Sprintf("%s has seen %d events in %d bytes, and %s ", MetaFile, e.Seq, e.Size, EventsFile)
		switch {
		case c.lines < e.Seq:
			c.find(JournalDamaged, EventsFile, at+fmt.Sprintf("has %d in %d bytes", c.lines, c.seen.size))
		case c.seen.tail.Chain != e.Chain:
			c.find(JournalDamaged, EventsFile, at+"has other bytes there: a line was changed")
		}
	}
	if remains := Remains(c.dir); c.fold.Tail.Seq == 0 && c.raw == nil && remains != "" {
		c.lag = append(c.lag, c.issue(JournalDamaged, EventsFile, fmt.Sprintf("%s has no event and %s is missing, "+
			"and %s is there: the run has left more than its claim", EventsFile, MetaFile, remains)))
	}
	if c.torn > 0 {
		c.differs(EventsFile, "%d bytes behind the last line of %s are not a line", c.torn, EventsFile)
	}
}

// judgeRecorded reports the damage that the journal records.
func (c *check) judgeRecorded() error {
	found, err := c.dir.Damage(c.seen.state)
	for _, d := range found {
		c.find(DamageRecorded, "", d.String())
	}
	return err
}

// judgeClaim compares run.json and owner.json with the events.
func (c *check) judgeClaim() error {
	claim, err := c.dir.Claim()
	if err != nil {
		return err
	}
	if id := c.seen.state.RunID; id != "" && id != claim.RunID && !c.has(JournalDamaged) {
		c.find(ClaimDamaged, ClaimFile, fmt.Sprintf("%s is of run %s, and the events are those of run %s",
			ClaimFile, claim.RunID, id))
	}
	for _, name := range []string{ClaimFile, OwnerFile} {
		raw, err := c.dir.ReadRaw(name)
		if err != nil {
			return err
		}
		if Unsealed(raw) {
			c.lag = append(c.lag, c.issue(ClaimDamaged, name, name+" was changed: its digest is that of other bytes"))
		}
	}
	owner, err := c.dir.Owner()
	var unreadable *UnreadableError
	switch epoch := c.seen.state.Epoch; {
	case errors.As(err, &unreadable):
		c.lag = append(c.lag, c.issue(ClaimDamaged, OwnerFile, fmt.Sprintf("%s cannot be read: %v", OwnerFile,
			unreadable.Err)))
	case err != nil:
		return err
	case epoch > 1 && owner.RunID != claim.RunID, epoch > 1 && owner.Epoch < epoch:
		c.lag = append(c.lag, c.issue(ClaimDamaged, OwnerFile, fmt.Sprintf("%s is of epoch %d of run %q, and the "+
			"events are in epoch %d of run %s", OwnerFile, owner.Epoch, owner.RunID, epoch, claim.RunID)))
	}
	return nil
}

// judgeFiles compares every file with what follows from the events. If the journal was changed, there is nothing to
// compare with.
func (c *check) judgeFiles() error {
	if c.has(JournalDamaged) {
		return nil
	}
	c.judgeMeta()
	if c.fold.Tail.Seq == 0 {
		return c.judgePromotions()
	}
	c.judgeState()
	for _, name := range sortedNames(c.fold.Files) {
		if err := c.judgeFile(name, c.fold.Files[name]); err != nil {
			return err
		}
	}
	for _, file := range sortedNames(c.seen.logs) {
		if err := c.judgeLog(file, c.seen.logs[file]); err != nil {
			return err
		}
	}
	return c.judgePromotions()
}

func (c *check) judgeMeta() {
	switch {
	case c.raw == nil && c.fold.Tail.Seq > 0:
		c.differs(MetaFile, "there are %d events and no %s", c.fold.Tail.Seq, MetaFile)
	case c.unread != nil:
		c.find(FileDiffers, MetaFile, fmt.Sprintf("%s cannot be read: %v", MetaFile, c.unread))
	case c.raw != nil && !bytes.Equal(c.raw, c.seen.meta):
		c.find(FileDiffers, MetaFile, c.strange())
	case c.beyond() > 0:
		c.differs(MetaFile, "%s lacks the last %d of %d events", MetaFile, c.beyond(), c.fold.Tail.Seq)
	}
}

// strange describes how meta.json differs.
func (c *check) strange() string {
	if c.status() != c.seen.state.Status {
		return fmt.Sprintf("the status is %s in the events, and %q in %s", c.seen.state.Status, c.status(), MetaFile)
	}
	var have, want map[string]any
	if err := errors.Join(json.Unmarshal(c.raw, &have), json.Unmarshal(c.seen.meta, &want)); err != nil {
		return err.Error()
	}
	keys := slices.DeleteFunc(slices.AppendSeq(sortedNames(want), maps.Keys(have)), func(key string) bool {
		return reflect.DeepEqual(have[key], want[key])
	})
	slices.Sort(keys)
	if len(keys) == 0 {
		return MetaFile + " is not what was written"
	}
	return fmt.Sprintf("%s is not what the events give: %s", MetaFile, strings.Join(slices.Compact(keys), ", "))
}

func (c *check) judgeState() {
	switch {
	case c.state == nil:
		c.differs(StateFile, "%s is missing", StateFile)
	case c.wanted == nil:
		c.differs(StateFile, "%s is not one of this run", StateFile)
	case !bytes.Equal(c.state, c.wanted):
		c.differs(StateFile, "%s is not what was written", StateFile)
	}
	if book, err := c.dir.Parse(c.state); err == nil && book.LastSeq < c.lines {
		if c.fold.every() <= 1 || !c.fold.works() {
			c.differs(StateFile, "%s is at event %d, and %s at %d", StateFile, book.LastSeq, MetaFile,
				c.lines)
		}
	}
}

// judgeFile compares one file. It may have its content of before where events that meta.json has not seen change it.
func (c *check) judgeFile(name string, file File) error {
	wrong, before, err := c.fold.differs(c.dir, name, c.opts.ReadTree)
	switch {
	case err != nil || wrong == "" || before:
		return err
	case file.Role == Edited && wrong != missing:
		c.lag = append(c.lag, c.issue(ArtifactEdited, name, name+" "+wrong))
	default:
		c.differs(name, "%s %s", name, wrong)
	}
	return nil
}

// judgeLog compares a log with its rows. While lines of the journal are being written, rows may be too.
func (c *check) judgeLog(file string, want Log) error {
	info, err := c.dir.Lstat(file)
	if err == nil && !info.Mode().IsRegular() {
		c.differs(file, "%s is not a file", file)
		return nil
	}
	raw, err := c.dir.ReadRaw(file)
	if err != nil || want.Gap {
		return err
	}
	if raw == nil {
		c.differs(file, "%s is missing", file)
		return nil
	}
	size := int64(len(raw))
	switch {
	case size < want.Size:
		c.differs(file, "%s has %d bytes, and %d were written", file, size, want.Size)
	case disk.Digest(raw[:want.Size]) != want.digest:
		c.differs(file, "%s is not what was written: a line of its first %d bytes was changed", file, want.Size)
	case size > want.Size && c.beyond() == 0:
		c.differs(file, "%s has %d bytes that the run did not write", file, size-want.Size)
	}
	return nil
}

// judgePromotions reads promotions.jsonl, the only file of rows that does not follow from events: its rows are numbered
// from 1, and each refers to this run's result.
func (c *check) judgePromotions() error {
	all, err := ReadStream(c.dir, PromotionsFile, 0)
	if err != nil {
		return err
	}
	result, _ := ResultOf(c.seen.state, "", "")
	for i, line := range all.Lines {
		e, eerr := run.ParseLine(line)
		p, perr := Promotion(line)
		if eerr != nil || perr != nil || e.Seq != int64(i)+1 || result.Digest != "" && p.Result != result.Digest {
			c.promotion("line %d of %s is not row %d of this run's result", i+1, PromotionsFile, i+1)
		}
	}
	if len(all.Torn) > 0 {
		c.promotion("%s ends in %d bytes that are not a whole line", PromotionsFile, len(all.Torn))
	}
	return nil
}

func (c *check) promotion(format string, args ...any) {
	i := c.issue(FileDiffers, PromotionsFile, fmt.Sprintf(format, args...))
	i.Hint = "correct the line, or remove it: nothing else records promotions"
	c.lag = append(c.lag, i)
}
