package traces

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

// counted counts spans.
type counted struct{ exported, dropped int }

func (c *counted) SpansExported(n int) { c.exported += n }
func (c *counted) SpansDropped(n int)  { c.dropped += n }

// journalOf is a run directory that gets its lines one after the other.
type journalOf struct {
	t     *testing.T
	dir   string
	lines []string
	n     int
}

func newJournal(t *testing.T) *journalOf {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "run", "testdata", "every-kind.jsonl"))
	require.NoError(t, err)
	return &journalOf{t: t, dir: t.TempDir(), lines: strings.SplitAfter(strings.TrimSpace(string(raw))+"\n", "\n")}
}

// write adds lines and returns the number of the first.
func (j *journalOf) write(n int) int64 {
	j.t.Helper()
	f, err := os.OpenFile(filepath.Join(j.dir, "events.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(j.t, err)
	_, err = f.WriteString(strings.Join(j.lines[j.n:j.n+n], ""))
	require.NoError(j.t, err)
	require.NoError(j.t, f.Close())
	j.n += n
	return int64(j.n - n + 1)
}

// TestLiveSpansAreThoseOfAnExport: also of a worker that is replaced in the middle of a run, while the collector is
// away for a time.
func TestLiveSpansAreThoseOfAnExport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(t)
		var mu sync.Mutex
		var got []*Span
		var reports []error
		away := errors.New("collector is away")
		failures := 0
		send := func(_ context.Context, spans []*Span) error {
			mu.Lock()
			defer mu.Unlock()
			if failures > 0 {
				failures--
				return away
			}
			got = append(got, spans...)
			return nil
		}
		c := &counted{}
		worker := func() (*Live, func()) {
			l := NewLive(send, c, func(err error) { reports = append(reports, err) })
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); l.Run(ctx) }()
			return l, func() { cancel(); <-ended }
		}
		l, stop := worker()
		l.Written(j.dir, j.write(10))
		time.Sleep(time.Minute) // of the test's clock
		mu.Lock()
		require.NotEmpty(t, got, "spans are exported when they end")
		failures = 3
		mu.Unlock()
		l.Written(j.dir, j.write(10))
		l.Written(j.dir, j.write(1))
		time.Sleep(time.Minute)
		require.Equal(t, []error{away}, reports, "an outage is reported once")
		l.Written(j.dir, j.write(20))
		stop() // with lines that it has not sent yet
		l, stop = worker()
		for j.n < len(j.lines)-1 {
			l.Written(j.dir, j.write(1))
		}
		time.Sleep(time.Minute)
		stop()

		want := spansOf(NewFold("run-1"), eventsIn(t, "every-kind.jsonl"))
		require.Len(t, got, len(want))
		for i := range want {
			require.True(t, proto.Equal(want[i], got[i]), "%v\n%v", want[i], got[i])
		}
		require.Equal(t, counted{exported: len(want)}, *c)
	})
}

// TestRefusedBatchIsDropped: one batch that a collector never takes does not hold up those after it.
func TestRefusedBatchIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, c, tries := newJournal(t), &counted{}, 0
		l := NewLive(func(context.Context, []*Span) error {
			if tries++; tries <= mostTries {
				return errors.New("400 Bad Request")
			}
			return nil
		}, c, func(error) {})
		ctx, cancel := context.WithCancel(t.Context())
		go l.Run(ctx)
		l.Written(j.dir, j.write(12))
		time.Sleep(time.Hour)
		require.Zero(t, c.exported)
		require.Positive(t, c.dropped)
		l.Written(j.dir, j.write(20))
		time.Sleep(time.Hour)
		require.Positive(t, c.exported)
		cancel()
		synctest.Wait()
	})
}

// TestWrittenNeverWaits: a projection must not wait for a collector.
func TestWrittenNeverWaits(t *testing.T) {
	l := NewLive(nil, &counted{}, func(error) {})
	for i := range 3 * mostDirs {
		l.Written(fmt.Sprint("/run/", i), 1)
	}
	require.LessOrEqual(t, len(l.dirty), mostDirs)
}
