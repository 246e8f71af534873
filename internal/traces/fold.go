package traces

import (
	"cmp"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/passbook-run/passbook/run"
)

// Fold makes the spans of a run from its events, in their order.
type Fold struct {
	runID string
	trace []byte
	now   time.Time // of the event
	root  []byte    // id of the first span
	epoch *open     // nil: none is open
	stage *open
	round *open
	pause *open // or the wait for a limit
	lanes map[string]*open
	// by step, member, lane, round and redo
	passes    map[passKey]*pass
	questions map[string]*open
	calls     map[string]bool // keys of spans of calls that have ended
	ended     []*Span
}

type passKey struct {
	step, member, lane string
	round, redo        int
}

// pass is an open pass with its open attempt; nil: none.
type pass struct {
	*open
	attempt *open
	number  int    // of the attempt
	agent   string // for display
}

// NewFold begins with the first event of a run.
func NewFold(runID string) *Fold {
	id, err := hex.DecodeString(ID(runID))
	if err != nil {
		panic(err) // it is made of hex digits
	}
	f := &Fold{runID: runID, trace: id, calls: map[string]bool{}}
	f.forget()
	return f
}

func (f *Fold) forget() {
	f.lanes, f.passes, f.questions = map[string]*open{}, map[passKey]*pass{}, map[string]*open{}
}

// Open counts the spans that have not ended.
func (f *Fold) Open() int {
	n := len(f.lanes) + len(f.questions) + len(f.passes)
	for _, p := range f.passes {
		if p.attempt != nil {
			n++
		}
	}
	for _, o := range []*open{f.epoch, f.stage, f.round, f.pause} {
		if o != nil {
			n++
		}
	}
	return n
}

// Add returns the spans that end with the next event.
func (f *Fold) Add(e run.Event) []*Span {
	f.ended = nil
	if at, ok := timeOf(e.TS); ok && at.After(f.now) {
		f.now = at
	}
	if question, ok := e.Question(); ok {
		f.ask(e, question)
		return f.ended
	}
	if decision, ok := e.Decision(); ok {
		f.decide(e, decision)
		return f.ended
	}
	switch e.Kind {
	case run.KindRunStart, run.KindRunStarted:
		f.begin(e, run.PayloadOf[run.RunStart](e))
	case run.KindRunResumed:
		f.resume(e, run.PayloadOf[run.RunResumed](e))
	case run.KindRunEnd, run.KindRunHalted:
		p := run.PayloadOf[run.RunEnd](e)
		f.finish(cmp.Or(p.Status, run.Halted), p.Reason)
	case run.KindRunInterrupted:
		f.finish(run.Interrupted, run.PayloadOf[run.RunInterrupted](e).Reason)
	case run.KindRunPaused:
		p := run.PayloadOf[run.RunPaused](e)
		f.suspend(e, "pause", p.Reason, "")
	case run.KindRunLimited:
		p := run.PayloadOf[run.RunLimited](e)
		f.suspend(e, "wait for limit", string(p.Kind), p.Account)
	case run.KindRunUnlimited:
		f.end(&f.pause)
	case run.KindRunReverted:
		f.leave()
		f.note(e)
	case run.KindPhaseStart:
		p := run.PayloadOf[run.PhaseStart](e)
		f.enter(e, p.Round, "")
	case run.KindPhaseEnd:
		f.endPhase(run.PayloadOf[run.PhaseEnd](e))
	case run.KindLaneStarted:
		f.startLane(e, run.PayloadOf[run.LaneStarted](e))
	case run.KindLaneEnded:
		f.endLane(e, run.PayloadOf[run.LaneEnded](e))
	case run.KindPassStart:
		f.startPass(e, run.PayloadOf[run.PassStart](e))
	case run.KindPassAttempt:
		f.attempt(e, run.PayloadOf[run.PassAttempt](e))
	case run.KindPassEnd:
		f.endPass(e, run.PayloadOf[run.PassEnd](e))
	default:
		f.note(e)
	}
	return f.ended
}

// timeOf reads the time of an event, also as other programs write it.
func timeOf(ts string) (time.Time, bool) {
	for _, form := range []string{run.TimeFormat, time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if at, err := time.Parse(form, ts); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// start opens a span inside another one. key is unique in the run.
func (f *Fold) start(name, key string, up *open) *open {
	o := &open{up: up, Span: &Span{
		TraceId: f.trace, SpanId: spanID(f.runID, key), Name: valid(name), Kind: tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanos(f.now), Flags: sampled,
	}}
	if up != nil {
		o.ParentSpanId = up.SpanId
	}
	return o
}

// sampled is the flag of OTLP for a span that is recorded.
const sampled = 1

// valid returns a text that OTLP can encode.
func valid(s string) string { return strings.ToValidUTF8(s, "�") }

// end ends the span at its place, if there is one.
func (f *Fold) end(at **open) {
	if *at != nil {
		f.close(*at, f.now)
		*at = nil
	}
}

func (f *Fold) close(o *open, at time.Time) {
	o.EndTimeUnixNano = max(nanos(at), o.StartTimeUnixNano)
	for up := o.up; up != nil; up = up.up {
		if at.After(up.busy) {
			up.busy = at
		}
	}
	f.ended = append(f.ended, o.Span)
}

func (f *Fold) begin(e run.Event, p run.RunStart) {
	if f.epoch != nil {
		return
	}
	f.openEpoch(e)
	f.epoch.Name = valid(strings.TrimSpace("run " + p.Pipeline))
	f.epoch.put(text("passbook.pipeline", p.Pipeline), text("passbook.run.kind", p.RunKind),
		number("passbook.epoch", int64(p.Epoch)), text("passbook.build", p.Build),
		text("passbook.environment", p.Environment))
	if from, mode := p.Origin(); from != "" {
		f.epoch.put(text("passbook.origin.run.id", from), text("passbook.origin.mode", mode))
	}
}

// openEpoch opens the span of a start of the run. The spans of later starts are children of the first one.
func (f *Fold) openEpoch(e run.Event) {
	f.epoch = f.start("run", seqKey("epoch", e.Seq), nil)
	f.epoch.put(text("passbook.run.id", f.runID))
	if f.root == nil {
		f.root = f.epoch.SpanId
		return
	}
	f.epoch.ParentSpanId = f.root
}

// within returns the innermost open span of the run itself. A stream without a start has one from its first event.
func (f *Fold) within(e run.Event) *open {
	if f.epoch == nil {
		f.openEpoch(e)
	}
	return cmp.Or(f.round, f.stage, f.epoch)
}

func (f *Fold) resume(e run.Event, p run.RunResumed) {
	f.end(&f.pause)
	if f.epoch == nil {
		f.openEpoch(e)
		f.epoch.Name = "run resumed"
		f.epoch.put(number("passbook.epoch", int64(p.Epoch)))
	}
}

func (f *Fold) suspend(e run.Event, name, reason, account string) {
	up := f.within(e)
	f.end(&f.pause)
	f.pause = f.start(name, seqKey("pause", e.Seq), up)
	f.pause.put(text("passbook.reason", reason), text("passbook.account", account))
}

func (f *Fold) finish(status run.Status, reason string) {
	if f.epoch == nil {
		return
	}
	f.leave()
	f.epoch.put(text("passbook.run.status", string(status)), text("passbook.reason", reason))
	if status == run.Failed || status == run.Interrupted {
		f.epoch.fails(string(status), reason)
	}
	f.end(&f.epoch)
}

// leave ends everything inside the run.
func (f *Fold) leave() {
	for _, key := range slices.SortedFunc(maps.Keys(f.passes), passKey.compare) {
		p := f.passes[key]
		f.end(&p.attempt)
		p.put(isTrue("passbook.abandoned"))
		f.close(p.open, f.now)
	}
	for _, all := range []map[string]*open{f.lanes, f.questions} {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			f.close(all[key], f.now)
		}
	}
	f.forget()
	f.end(&f.pause)
	f.end(&f.round)
	f.end(&f.stage)
}

func (k passKey) compare(o passKey) int {
	return cmp.Or(cmp.Compare(k.step, o.step), cmp.Compare(k.member, o.member), cmp.Compare(k.lane, o.lane),
		cmp.Compare(k.round, o.round), cmp.Compare(k.redo, o.redo))
}

// note adds an event to the span of the run, if it is about more than the work of a pass.
func (f *Fold) note(e run.Event) {
	if f.epoch == nil || e.Kind.PartOfPass() {
		return
	}
	f.epoch.note(string(e.Kind), f.now, number("passbook.seq", e.Seq))
}
