package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/passbook-run/passbook/test/bench/peer"
)

//go:embed loop.sh
var loopScript string

// bashLoop is a shell script for each workflow, which syncs each answer.
type bashLoop struct {
	dir      string
	executed atomic.Int64 // steps of loops that have ended
	mu       sync.Mutex
	all      map[string]*loopProcess
}

type loopProcess struct {
	work   peer.Work
	cmd    *exec.Cmd
	killed bool
	ended  chan struct{} // closed after err is set
	err    error
}

func (p *loopProcess) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func newBashLoop(dir, _ string) engine { return &bashLoop{dir: dir, all: map[string]*loopProcess{}} }

// start starts the loops again that were stopped.
func (b *bashLoop) start(ctx context.Context) error {
	return errors.Join(os.MkdirAll(b.dir, 0o755), b.rework(ctx))
}

// begin starts the script of a workflow, which continues where its journal ends.
func (b *bashLoop) begin(id string, w peer.Work) error {
	args := append([]string{"-c", loopScript, "loop.sh", filepath.Join(b.dir, id), strconv.Itoa(w.Steps),
		strconv.Itoa(w.Wait)}, w.Agent...)
	p := &loopProcess{work: w, cmd: exec.Command("bash", args...), ended: make(chan struct{})}
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all[id] = p
	return nil
}

func (b *bashLoop) of(id string) (*loopProcess, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.all[id]
	if p == nil {
		return nil, fmt.Errorf("no loop %s", id)
	}
	return p, nil
}

func (b *bashLoop) do(ctx context.Context, q peer.Request) (peer.Reply, error) {
	r, err := peer.Do(ctx, b, q)
	r.Executed = b.executed.Load()
	return r, err
}

func (b *bashLoop) Start(_ context.Context, id string, w peer.Work) (string, error) {
	return id, b.begin(id, w)
}

func (b *bashLoop) Await(ctx context.Context, name string) (int, error) {
	p, err := b.of(name)
	if err != nil {
		return 0, err
	}
	select {
	case <-p.ended:
		err = p.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return 0, err
	}
	journal, err := os.ReadFile(filepath.Join(b.dir, name, "journal"))
	answers := bytes.Count(journal, []byte("\n"))
	b.executed.Add(int64(answers))
	return answers, err
}

func (b *bashLoop) Wake(_ context.Context, name string) error {
	f, err := os.OpenFile(filepath.Join(b.dir, name, "wake"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("go\n")
	return errors.Join(err, f.Close())
}

func (b *bashLoop) Fork(context.Context, string, int) (string, error) { return "", peer.ErrNotOffered }

func (b *bashLoop) Revert(context.Context, string, int) error { return peer.ErrNotOffered }

// kill ends all loops.
func (b *bashLoop) kill() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, p := range b.all {
		if p.running() {
			p.killed = true
			if err := p.cmd.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
				errs = append(errs, err)
			}
			<-p.ended
		}
	}
	return errors.Join(errs...)
}

// rework starts the loops again that have been killed.
func (b *bashLoop) rework(context.Context) error {
	b.mu.Lock()
	killed := map[string]peer.Work{}
	for id, p := range b.all {
		if p.killed {
			killed[id] = p.work
		}
	}
	b.mu.Unlock()
	for id, w := range killed {
		if err := b.begin(id, w); err != nil {
			return err
		}
	}
	return nil
}

func (b *bashLoop) stop(context.Context) error { return b.kill() }

func (b *bashLoop) processes() (pids []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.all {
		if p.running() {
			pids = append(pids, p.cmd.Process.Pid)
		}
	}
	return pids
}

func (b *bashLoop) stored() (map[string]int64, error) {
	n, err := bytesIn(b.dir)
	return map[string]int64{"journal": n}, err
}
