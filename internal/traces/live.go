package traces

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/passbook-run/passbook/rundir"
)

// Live exports the spans of runs when they end, as their events are written to run directories. The directory is the
// queue: while a collector does not answer, lines wait on disk, and nothing else waits. A worker that restarts
// reads the earlier lines again, so the ids of spans that are open stay the same.
type Live struct {
	send   func(context.Context, []*Span) error
	count  Counter
	report func(error)
	retry  time.Duration // after the first failure; doubled up to 30 s

	mu    sync.Mutex
	dirty map[string]int64 // directories with new lines: the number of the first
	wake  chan struct{}
	tails map[string]*tail
	quiet bool // a failure was reported, and nothing was sent since
}

// Counter counts spans.
type Counter interface {
	SpansExported(n int)
	SpansDropped(n int)
}

// tail is the position up to which a run is read.
type tail struct {
	fold *Fold
	at   int64 // offset of the next line
	seq  int64 // of the last line
}

const (
	mostDirs   = 1000 // that wait
	mostTries  = 10   // of one batch
	longest    = 30 * time.Second
	gather     = 200 * time.Millisecond
	lastChance = time.Second // to send what is left when the worker stops
)

// NewLive returns an exporter. Errors are reported once, until spans are accepted again.
func NewLive(send func(context.Context, []*Span) error, count Counter, report func(error)) *Live {
	return &Live{send: send, count: count, report: report, retry: time.Second, dirty: map[string]int64{},
		wake: make(chan struct{}, 1), tails: map[string]*tail{}}
}

// Written notes that a directory has new lines from a number on. It returns at once.
func (l *Live) Written(dir string, first int64) {
	l.mu.Lock()
	earlier, known := l.dirty[dir]
	switch {
	case !known && len(l.dirty) < mostDirs, known && first < earlier:
		l.dirty[dir] = first
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run exports until ctx ends.
func (l *Live) Run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-l.wake:
			pause(ctx, gather)
			l.flush(ctx)
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastChance)
	defer cancel()
	l.flush(last)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (l *Live) flush(ctx context.Context) {
	l.mu.Lock()
	dirty := l.dirty
	l.dirty = map[string]int64{}
	l.mu.Unlock()
	for dir, first := range dirty {
		spans, err := l.read(dir, first)
		if err != nil {
			delete(l.tails, dir)
			l.fails(err)
		}
		for len(spans) > 0 {
			n := min(len(spans), Batch)
			l.deliver(ctx, spans[:n])
			spans = spans[n:]
		}
	}
}

// read returns the spans that end with lines from first on.
func (l *Live) read(dir string, first int64) (spans []*Span, err error) {
	d, t := rundir.At(dir), l.tails[dir]
	if t == nil {
		t = &tail{}
		l.tails[dir] = t
	}
	for line, err := range d.Lines(t.at) {
		if err != nil {
			return spans, err
		}
		t.at, t.seq = line.End, t.seq+1
		if line.Err != nil {
			continue
		}
		e := line.Event.Clone().At(t.seq)
		if t.fold == nil {
			t.fold = NewFold(RunID(d, e))
		}
		if ended := t.fold.Add(e); t.seq >= first {
			spans = append(spans, ended...)
		}
	}
	if t.fold != nil && t.fold.Open() == 0 {
		delete(l.tails, dir) // the run has ended
	}
	return spans, nil
}

// deliver sends a batch. A collector that does not answer gets it again, one that keeps refusing it does not.
func (l *Live) deliver(ctx context.Context, spans []*Span) {
	wait := l.retry
	for range mostTries {
		err := l.send(ctx, spans)
		if err == nil {
			l.quiet = false
			l.count.SpansExported(len(spans))
			return
		}
		if ctx.Err() != nil {
			break
		}
		l.fails(err)
		pause(ctx, wait)
		wait = min(2*wait, longest)
	}
	l.count.SpansDropped(len(spans))
}

func (l *Live) fails(err error) {
	if !l.quiet && !errors.Is(err, context.Canceled) {
		l.quiet = true
		l.report(err)
	}
}

// Endpoint returns the address that OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT names; empty: it
// names none, or traces are disabled.
func Endpoint() string {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return ""
	}
	if traces := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); traces != "" {
		return traces // it is the whole address
	}
	if base := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); base != "" {
		return strings.TrimSuffix(base, "/") + tracesPath
	}
	return ""
}
