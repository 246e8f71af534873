package activities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/run"
)

// maxRepeats is how many times in a row an agent may make the same call with the same result, while no file changes.
const maxRepeats = 20

// repeatsCause is why such an agent is ended.
const repeatsCause = "the agent repeats itself"

// toolCall is what two calls are compared by.
type toolCall struct{ name, input, result string }

// repeats counts how often an agent has made the same call in a row.
type repeats struct {
	parser adapter.Parser
	open   map[string]toolCall // by id, without results
	shown  map[string]string   // what they work on
	last   toolCall
	text   string // of the last one
	count  int
	since  time.Time // at the latest, of the first one of them; zero: before this worker
}

func newRepeats(kind string) *repeats {
	ad, ok := adapter.Find(kind)
	if !ok || !ad.Stream || ad.New == nil || ad.Name == adapter.Text {
		return nil
	}
	return &repeats{parser: ad.New(), open: map[string]toolCall{}, shown: map[string]string{}}
}

// take reads more output that arrived at a time.
func (r *repeats) take(output []byte, at time.Time) {
	for _, f := range r.parser.Parse(output) {
		switch {
		case f.Kind != adapter.KindTool:
		case f.Parent != "":
			r.count = 0 // a subagent does something else
		case f.State == adapter.ToolStarted:
			r.open[f.ID], r.shown[f.ID] = toolCall{name: f.Name, input: f.Digest}, strings.TrimSpace(f.Name+" "+f.Text)
		default:
			c, known := r.open[f.ID]
			if c.result = string(f.State) + f.Digest; !known || c != r.last {
				r.last, r.text, r.count, r.since = c, r.shown[f.ID], 0, at
			}
			r.count++
			delete(r.open, f.ID)
			delete(r.shown, f.ID)
		}
	}
}

// stuck reports whether the agent repeats itself: it makes the same call again and again, and no file in its folder has
// changed since the first time.
func (r *repeats) stuck(folder string) bool {
	if r.count < maxRepeats {
		return false
	}
	if r.since.IsZero() || changedSince(folder, r.since) {
		r.count, r.last = 0, toolCall{}
		return false
	}
	return true
}

// changedSince reports whether a file below a folder, but for those of git, was changed since a time.
func changedSince(folder string, since time.Time) bool {
	found := errors.New("changed")
	return filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it is gone, or cannot be read
		}
		if e.Name() == ".git" {
			return skipOf(e)
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(since) {
			return found
		}
		return nil
	}) != nil
}

func skipOf(e fs.DirEntry) error {
	if e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// repeatsEvery is how often the output of an agent is read.
const repeatsEvery = time.Second

// endIfStuck ends the agent of a call that repeats itself, until the function that it returns is called.
func (a *Activities) endIfStuck(ctx context.Context, st *runningCall) (stop func()) {
	r := newRepeats(st.kind)
	if st.command() || r == nil || a.machine != nil { // it has one order of all steps
		return func() {}
	}
	ended := make(chan struct{})
	go func() {
		var offset int64
		seen := time.Time{}
		for tick := time.NewTicker(repeatsEvery); ; {
			select {
			case <-ended:
				tick.Stop()
				return
			case <-tick.C:
			}
			output, err := readFrom(filepath.Join(st.dir, calls.StdoutFile), offset)
			if err != nil {
				continue
			}
			r.take(output, seen)
			offset, seen = offset+int64(len(output)), a.cfg.Now()
			if r.stuck(st.work) {
				a.cancelCall(ctx, st.l.Call, repeatsCause)
				return
			}
		}
	}()
	return func() { close(ended) }
}

// readFrom reads what a file has behind an offset.
func readFrom(path string, offset int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	_, err = f.Seek(offset, io.SeekStart)
	var read []byte
	if err == nil {
		read, err = io.ReadAll(f)
	}
	return read, errors.Join(err, f.Close())
}

// repeated returns what is said about the calls of an agent that was ended because it repeated itself.
func (a *Activities) repeated(st *runningCall, stdout []byte) string {
	r := newRepeats(st.kind)
	if r == nil {
		return ""
	}
	r.take(stdout, time.Time{})
	return fmt.Sprintf("%d times the same call with the same result: %s", r.count, a.cfg.Redact(run.OneLine(r.text)))
}

// toldOnce returns the error of a delivery that was ended because its agent repeated itself: the next one continues its
// session, with a warning. nil: it cannot, or it was warned before.
func (a *Activities) toldOnce(ctx context.Context, st *runningCall, stdout []byte) error {
	if st.session != nil && st.session.Told {
		return nil
	}
	none := a.interruptedBy(ctx, st, stdout, repeatsCause, "you repeat yourself, "+a.repeated(st, stdout)+
		". Nothing changes by it: do something else, or answer with what you know and what is in the way")
	if none.end.Session == nil {
		return nil
	}
	none.end.Session.Told, none.again = true, true
	return none
}

// stalled is the failure of an agent that repeated itself again.
func (a *Activities) stalled(st *runningCall, stdout []byte) *agent.Failure {
	return &agent.Failure{Category: run.CategoryStalled, Permanent: true,
		Message: "the agent repeats itself, and does so again after a warning: " + a.repeated(st, stdout)}
}
